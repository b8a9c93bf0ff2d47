"""Bodies of media calls, JSON or forms: members as JSON, pictures that came as files; and whether the model fits."""

import hashlib
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput
from trunkline.core.route import Route
from trunkline.http.exchange import Exchange
from trunkline.http.multipart import Part, hash_of, is_form, read_form
from trunkline.ingress.request_body import read_fields

ELSEWHERE = {
    "text": "makes neither pictures nor films; ask POST /v1/chat/completions",
    "image": "makes pictures; ask POST /v1/images/generations",
    "video": "makes films; ask POST /v1/videos",
    "chat": "makes films within a chat only, not as jobs; ask POST /v1/chat/completions",
}


class MediaBody(Struct, frozen=True):
    """A body, read. `hash` is the same for the same body sent again."""

    fields: dict[str, Raw]
    files: tuple[MediaInput, ...]
    hash: str


def read_media_body(exchange: Exchange, allowed: tuple[str, ...]) -> MediaBody:
    """Read the body and let its bytes go; `allowed` names the files. Raises GatewayError (400)."""
    body, content_type = exchange.body, exchange.header(b"content-type")
    exchange.body = b""
    if not is_form(content_type):
        return MediaBody(read_fields(body), (), hashlib.sha256(body).hexdigest())
    parts = read_form(content_type, body)
    files = tuple(_picture(part, allowed) for part in parts if part.filename is not None)
    return MediaBody(form_fields(parts), files, hash_of(parts))


def form_fields(parts: list[Part]) -> dict[str, Raw]:
    """Give a form's texts as a JSON body has them: `a[b]` is a member of an object, `a[]` one of a list."""
    fields: dict[str, Any] = {}
    for part in parts:
        if part.filename is not None:
            continue
        text = part.data.decode("utf-8", "replace")
        name, bracket, inner = part.name.partition("[")
        inner = inner.removesuffix("]")
        if not bracket:
            fields[name] = text
        elif not inner or inner.isdecimal():
            listed = fields.setdefault(name, [])
            fields[name] = [*(listed if isinstance(listed, list) else [listed]), text]
        else:
            members = fields.setdefault(name, {})
            fields[name] = {**(members if isinstance(members, dict) else {}), inner: text}
    return {name: Raw(msgspec.json.encode(value)) for name, value in fields.items()}


def media_route(route: Route, kind: Literal["image", "video"]) -> Route:
    """Let a model of this kind pass; films that come over chat are asked for there alone.

    Raises GatewayError `invalid_value` that says where to ask instead.
    """
    is_kind = route.kind == kind
    if is_kind and (kind == "image" or any(item.target.side != "chat" for item in route.targets)):
        return route
    told = ELSEWHERE["chat" if is_kind else route.kind]
    raise GatewayError("invalid_value", f"The model {route.name!r} {told}.", param="model")


def _picture(part: Part, allowed: tuple[str, ...]) -> MediaInput:
    name = part.name.partition("[")[0]
    if name not in allowed:
        told = f"A file `{part.name[:40]}` is not taken here; allowed are {', '.join(allowed)}."
        raise GatewayError("invalid_value", told, param=part.name[:40])
    if not part.data:
        raise GatewayError("invalid_value", f"The file `{name}` is empty.", param=name)
    return MediaInput(data=part.data, mime_type=part.mime_type, role="mask" if name == "mask" else "image")
