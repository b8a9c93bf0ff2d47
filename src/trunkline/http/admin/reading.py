"""What the operators' API reads: bodies and queries, typed, with errors that name what is wrong."""

import re
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct
from starlette.requests import Request

from trunkline.core.errors import GatewayError
from trunkline.http.call_headers import link_base
from trunkline.http.live import Settings

BODY_BYTES = 64 * 1024
MOST = 200
USUAL = 50
_UNKNOWN = re.compile(r"unknown field `([^`]*)`")
_PLACE = re.compile(r" - at `\$\.?([^`]*)`\Z")
T = TypeVar("T", bound=Struct)


async def read_bytes(request: Request, most: int) -> bytes:
    """Read a body. Raises GatewayError `request_too_large`."""
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > most:
            raise GatewayError("request_too_large", f"The body is larger than {most} bytes.")
        pieces.append(piece)
    return b"".join(pieces)


async def read_body(request: Request, struct: type[T]) -> T:
    """Read a JSON body. Raises GatewayError `invalid_json`, `invalid_value`, `missing_required_parameter`."""
    body = await read_bytes(request, BODY_BYTES)
    try:
        return msgspec.json.decode(body, type=struct)
    except msgspec.ValidationError as error:
        raise _wrong(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise GatewayError("invalid_json", "The body is no JSON.") from None


def _wrong(told: str) -> GatewayError:
    """Put a fault into our words: `Expected `int`, got `str` - at `$.rpm``."""
    found = _PLACE.search(told)
    place = found[1] if found else ""
    told = _PLACE.sub("", told)
    if (unknown := _UNKNOWN.search(told)) is not None:
        name = f"{place}.{unknown[1]}".lstrip(".")
        return GatewayError("invalid_value", f"There is no member `{name}`.", param=name)
    if (missing := re.search(r"missing required field `([^`]*)`", told)) is not None:
        name = f"{place}.{missing[1]}".lstrip(".")
        return GatewayError("missing_required_parameter", f"`{name}` is required.", param=name)
    return GatewayError("invalid_value", f"{told[:1].upper()}{told[1:]}.", param=place or None)


def one_of(request: Request, name: str, allowed: Any) -> str | None:
    """Read a query parameter that is one of some words (a sequence of them, or a Literal); None: absent."""
    words = get_args(allowed) or tuple(allowed)
    word = request.query_params.get(name) or None
    if word is not None and word not in words:
        raise GatewayError("invalid_value", f"`{name}` is {word!r}; allowed are {', '.join(words)}.", param=name)
    return word


def number(request: Request, name: str) -> float | None:
    """Read a query parameter that is a number of at least 0; None: absent."""
    sent = request.query_params.get(name, "")
    if not sent:
        return None
    if not re.fullmatch(r"\d{1,12}(\.\d{1,9})?", sent):
        raise GatewayError("invalid_value", f"`{name}` is {sent!r}; it must be a number, at least 0.", param=name)
    return float(sent)


def limit_of(request: Request) -> int:
    """Read how many items are wanted."""
    limit = number(request, "limit")
    if limit is not None and not (1 <= limit <= MOST and limit.is_integer()):
        raise GatewayError("invalid_value", f"`limit` is from 1 to {MOST}.", param="limit")
    return USUAL if limit is None else int(limit)


def after_of(request: Request) -> str:
    """Read where the list goes on: the id of the last one seen."""
    return request.query_params.get("cursor", "")


def listed(items: list[Mapping[str, Any]] | list[dict[str, Any]], limit: int | None = None) -> dict[str, Any]:
    """Give a page of a list; `limit` None: it is whole."""
    full = limit is not None and len(items) >= limit
    return {"items": items, "next": items[-1]["id"] if full else None}


def link_base_of(request: Request, settings: Settings) -> str:
    """Give what links begin with that are to work where the request came from."""
    return link_base(_Came(request), settings)


class _Came:
    """A request as `link_base` reads it."""

    def __init__(self, request: Request) -> None:
        self._request = request
        self.peer = request.client.host if request.client else ""

    def header(self, name: bytes) -> str:
        return self._request.headers.get(name.decode(), "")
