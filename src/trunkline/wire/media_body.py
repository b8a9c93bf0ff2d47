"""What requests for pictures and films are made of: JSON bodies, forms (RFC 7578), pictures as links or data URLs."""

import base64
import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.media_type import EXTENSIONS, SNIFF_BYTES, sniff

JSON = ("content-type", "application/json")
Headers = tuple[tuple[str, str], ...]


def json_request(
    target: Target, path: str, members: Mapping[str, Any], headers: Headers = (), extra: Mapping[str, Any] | None = None
) -> UpstreamRequest:
    """Build a POST with a JSON body. Members that are None are left out; `extra` gives way to ours.

    The provider's own `path`, `drop` and `rename` apply.
    """
    body = _said(target, {**(extra or {}), **{name: value for name, value in members.items() if value is not None}})
    return UpstreamRequest(target.path or path, msgspec.json.encode(body), headers=(JSON, *headers))


def form_request(  # noqa: PLR0913, PLR0917 - the parts of one form
    target: Target,
    path: str,
    members: Mapping[str, Any],
    files: Iterable[tuple[str, MediaInput]],
    key: str,
    headers: Headers = (),
) -> UpstreamRequest:
    """Build a POST with a form: members as text, files as what they are. The provider's `drop` and `rename` apply."""
    parts: list[bytes] = []
    boundary = "trunkline-" + hashlib.sha256(f"form {key}".encode()).hexdigest()[:32]
    for name, value in _said(target, {name: value for name, value in members.items() if value is not None}).items():
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        parts.append(
            f'--{boundary}\r\ncontent-disposition: form-data; name="{_quoted(name)}"\r\n\r\n{text}\r\n'.encode()
        )
    for number, (name, picture) in enumerate(files, 1):
        kind = mime_type(picture)
        head = f'content-disposition: form-data; name="{name}"; filename="{number}.{EXTENSIONS.get(kind, "bin")}"'
        parts += [f"--{boundary}\r\n{head}\r\ncontent-type: {kind}\r\n\r\n".encode(), picture.data, b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    kind = f"multipart/form-data; boundary={boundary}"
    return UpstreamRequest(path, b"".join(parts), headers=(("content-type", kind), *headers))


def get(path: str) -> UpstreamRequest:
    """Build a GET."""
    return UpstreamRequest(path, method="GET", headers=())


def link(picture: MediaInput) -> str:
    """Give a picture as a link: its own, or a data URL."""
    return picture.url or f"data:{mime_type(picture)};base64,{encoded(picture)}"


def encoded(picture: MediaInput) -> str:
    """Give a picture's bytes in base64."""
    return base64.b64encode(picture.data).decode()


def mime_type(picture: MediaInput) -> str:
    """Tell a picture's type by its first bytes, else take the client's word."""
    return sniff(picture.data[:SNIFF_BYTES]) or picture.mime_type or "application/octet-stream"


def whole_prompt(request: MediaRequest) -> str:
    """Give the prompt with what shall not be seen, for providers that have no member for that."""
    return f"{request.prompt}\n\nAvoid: {request.negative_prompt}" if request.negative_prompt else request.prompt


def pictures(request: MediaRequest) -> list[MediaInput]:
    """List the pictures to go by, without a mask; a last frame comes last."""
    return sorted((one for one in request.inputs if one.role != "mask"), key=lambda one: one.role == "last_frame")


def pictures_upto(request: MediaRequest, most: int) -> list[MediaInput]:
    """List the pictures to go by. Raises GatewayError when there are more than the provider has a place for."""
    given = pictures(request)
    if len(given) > most:
        told = f"The request has {len(given)} pictures; this model takes at most {most}."
        raise GatewayError("invalid_value", told, param="image")
    return given


def number(value: float | None) -> float | int | None:
    """Write whole numbers without a fraction: `5`, not `5.0`."""
    return int(value) if value is not None and float(value).is_integer() else value


def _said(target: Target, members: dict[str, Any]) -> dict[str, Any]:
    for name in target.drop:
        members.pop(name, None)
    for old, new in target.rename.items():
        if old in members:
            members.setdefault(new, members.pop(old))
    return members


def _quoted(name: str) -> str:
    return name.replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
