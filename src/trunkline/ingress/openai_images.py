"""OpenAI Images as clients speak them: what a request asks for, answers and events (wire.md section 2.1)."""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.media import MediaInput, MediaRecord, MediaRequest
from trunkline.core.route import RouteTarget
from trunkline.ingress.callback import read_callback
from trunkline.ingress.media_params import read_asked
from trunkline.ingress.media_pictures import role_of
from trunkline.ingress.media_words import read_flag
from trunkline.ingress.request_body import typed

ImagesForm = Literal["images", "edits"]
ImageAs = Literal["both", "url", "b64_json"]
"""How a picture is given; `both` where the client did not say: some read the one, some the other."""
EVENTS: dict[ImagesForm, str] = {"images": "image_generation", "edits": "image_edit"}
KEEPALIVE = b": keep-alive\n"
"""A comment line before whatever event comes next. It is no block: client libraries read those wrongly beside ids."""


class ImagesAsk(Struct, frozen=True):
    """A request of `/v1/images/generations` or `/v1/images/edits`."""

    model: str
    fields: dict[str, Raw]
    pictures: tuple[MediaInput, ...] = ()
    """That came as files."""
    stream: bool = False
    given_as: ImageAs = "both"
    callback_url: str = ""

    def read(self, item: RouteTarget) -> MediaRequest:
        """Read it for one target. Raises GatewayError (400). Who does not stream gets, and pays, no sketches."""
        request = read_asked(self.fields, "image", item, self.model, self.pictures)
        return request if self.stream else replace(request, partial_images=0)


class Drawn(Struct, frozen=True):
    """A picture as it is told: any of link and base64, and what the provider made of the prompt."""

    url: str = ""
    b64_json: str = ""
    revised_prompt: str = ""


_ANY = msgspec.json.Decoder(Any)
_GIVEN_AS: msgspec.json.Decoder[ImageAs | None] = msgspec.json.Decoder(ImageAs | None)
_NAME: msgspec.json.Decoder[str | None] = msgspec.json.Decoder(str | None)


def parse_images(fields: dict[str, Raw], files: tuple[MediaInput, ...], form: ImagesForm) -> ImagesAsk:
    """Read a request, from JSON or a form. Raises GatewayError (400) that names the member and what is allowed."""
    model = read_model(fields)
    stream = read_flag(typed(fields, "stream", _ANY, "")) if "stream" in fields else False
    if stream is None and bytes(fields["stream"]) != b"null":
        raise GatewayError("invalid_value", "`stream` must be true or false.", param="stream")
    given_as = typed(fields, "response_format", _GIVEN_AS, "`url` or `b64_json`")
    roles = (*(one.role for one in files), *map(role_of, fields))
    if form == "edits" and not any(role and role != "mask" for role in roles):
        raise GatewayError("missing_required_parameter", "`image` is required: a picture to edit.", param="image")
    return ImagesAsk(model, fields, files, bool(stream), given_as or "both", read_callback(fields))


def read_model(fields: dict[str, Raw]) -> str:
    """Read the member `model`. Raises GatewayError (400)."""
    model = typed(fields, "model", _NAME, "a string")
    if not model:
        raise GatewayError(
            "missing_required_parameter", "`model` is required; GET /v1/models lists all.", param="model"
        )
    return model


def images_body(created: int, drawn: list[Drawn], shape: Mapping[str, str], usage: Usage, warnings: list[str]) -> bytes:
    """Write the unstreamed answer; `warnings` say what is missing."""
    data = [{name: value for name, value in msgspec.structs.asdict(one).items() if value} for one in drawn]
    return msgspec.json.encode({"created": created, "data": data, **shape, **last_members(usage, warnings)})


def last_members(usage: Usage, warnings: list[str]) -> dict[str, Any]:
    """Give what stands in an answer, or in the last event of its stream, once."""
    return {"usage": usage_members(usage), **({"warnings": warnings} if warnings else {})}


def image_event(kind: str, drawn: Drawn, members: Mapping[str, Any]) -> bytes:
    """Write one event of the stream; `kind` is its type."""
    picture = {name: value for name, value in (("b64_json", drawn.b64_json), ("url", drawn.url)) if value}
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), msgspec.json.encode({"type": kind, **picture, **members}))


def error_event(error: bytes) -> bytes:
    """Write the last event of a stream that failed; `error` is the error object."""
    return b"event: error\ndata: %b\n\n" % error


def shape_of(record: MediaRecord, request: MediaRequest) -> dict[str, str]:
    """Say what a picture is like: its true size and type, and what was asked for of the rest."""
    return {
        "background": request.background or "auto",
        "output_format": record.mime_type.removeprefix("image/"),
        "quality": request.quality or "auto",
        "size": f"{record.width}x{record.height}",
    }


def usage_members(usage: Usage) -> dict[str, Any]:
    """Write usage as OpenAI Images do: tokens of text and pictures apart."""
    pictures_in, pictures_out = usage.image_input_tokens, usage.image_output_tokens or usage.completion_tokens
    return {
        "input_tokens": usage.prompt_tokens,
        "output_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
        "input_tokens_details": {"image_tokens": pictures_in, "text_tokens": usage.prompt_tokens - pictures_in},
        "output_tokens_details": {
            "image_tokens": pictures_out,
            "text_tokens": max(0, usage.completion_tokens - pictures_out),
        },
    }
