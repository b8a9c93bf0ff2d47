"""How the groups of endpoints become routes: who may, JSON in and out, errors in the contract's words."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from trunkline.core.errors import GatewayError
from trunkline.core.state import StorageError, UnstorableError
from trunkline.http.admin.session import Sessions
from trunkline.http.error_response import error_response

Answer = Callable[[Request], Awaitable[Any]]
"""Gives a value for JSON, None (204) or a whole response. Raises GatewayError, StorageError."""
ROOT = "/admin/api"
METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]


class Endpoint(Struct, frozen=True):
    """One method of one path under `/admin/api`."""

    method: str
    path: str
    answer: Answer
    status: int = 200


def admin_routes(sessions: Sessions, endpoints: Sequence[Endpoint]) -> list[Route]:
    """Give the routes, all but the session's own behind `sessions`."""

    def guarded(answer: Answer) -> Answer:
        async def checked(request: Request) -> Any:
            sessions.check(request)
            return await answer(request)

        return checked

    own = [
        Endpoint("GET", "/session", sessions.show),
        Endpoint("POST", "/session", sessions.log_in),
        Endpoint("DELETE", "/session", guarded(sessions.log_out)),
    ]
    inside = [Endpoint(each.method, each.path, guarded(each.answer), each.status) for each in endpoints]
    return [
        *(Route(ROOT + each.path, _spoken(each), methods=[each.method]) for each in (*own, *inside)),
        Route(ROOT + "/{path:path}", _spoken(Endpoint("", "", _unknown)), methods=METHODS),
    ]


def _spoken(endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
    async def respond(request: Request) -> Response:
        try:
            value = await endpoint.answer(request)
        except GatewayError as error:
            answer = error_response(error)
        except UnstorableError:
            answer = error_response(
                GatewayError("invalid_value", "The body has text or numbers that cannot be stored.")
            )
        except StorageError:
            told = "The database is away; try again in a moment."
            answer = error_response(GatewayError("storage_unavailable", told))
        else:
            answer = value if isinstance(value, Response) else _json(value, endpoint.status)
        answer.headers["cache-control"] = "no-store"
        answer.headers["x-content-type-options"] = "nosniff"
        return answer

    return respond


def _json(value: Any, status: int) -> Response:
    if value is None:
        return Response(status_code=204)
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    return Response(body, status_code=status, media_type="application/json")


async def _unknown(request: Request) -> Any:
    raise GatewayError("unknown_endpoint", f"{request.method} {request.url.path} is not served here.")
