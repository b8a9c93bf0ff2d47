"""Errors as HTTP answers: OpenAI's error object, the right status, headers that tell client libraries what to do."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trunkline.core.errors import GatewayError
from trunkline.http.exchange import Exchange, Headers
from trunkline.ingress.openai_chat import error_object

JSON = ("content-type", "application/json")


def error_headers(error: GatewayError) -> list[tuple[str, str]]:
    """Give the headers of an error answer."""
    return [JSON, *error.headers]


def respond_error(exchange: Exchange, error: GatewayError, headers: Headers = ()) -> None:
    """Answer a hot exchange with an error."""
    exchange.respond(error.status, [*error_headers(error), *headers], error_object(error))


def respond_json(exchange: Exchange, value: object, headers: Headers = ()) -> None:
    """Answer a hot exchange with a JSON value."""
    exchange.respond(200, [JSON, *headers], msgspec.json.encode(value))


def error_response(error: GatewayError) -> Response:
    """Give an ASGI answer for an error."""
    response = Response(error_object(error), status_code=error.status)
    for name, value in error_headers(error):
        response.headers[name] = value
    return response


async def gateway_error(_request: Request, error: Exception) -> Response:
    """Answer a GatewayError that an endpoint raised; Starlette's exception handler."""
    assert isinstance(error, GatewayError)  # noqa: S101 - registered for this class
    return error_response(error)
