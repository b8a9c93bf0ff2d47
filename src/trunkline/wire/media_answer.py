"""Reading what providers say of pictures and films: finished, at work, refused, or why there is nothing."""

import re
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from trunkline.core.dialect import Ready, Refused
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Usage
from trunkline.core.media import Media, MediaKind
from trunkline.core.notes import Notes
from trunkline.wire.error_body import read_error, read_error_body
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.loose import read_loose
from trunkline.wire.media_shapes import media_of
from trunkline.wire.read import as_dict, as_text
from trunkline.wire.usage import read_usage


class Answer(Struct):
    """What any JSON answer may hold; each dialect adds its own members."""

    error: Any = None
    code: Any = None
    message: Any = None


T = TypeVar("T", bound=Answer)

_FILTERED = re.compile(
    r"nsfw|content[ _-]?(policy|filter|moderat)|moderat(ion|ed)|safety|sensitive (content|word)|prohibited"
    r"|inappropriate|violat(es|ed|ion)|responsible ai|data.?inspection|违规|敏感|审核|不安全",
    re.IGNORECASE,
)
_FLAGGED = re.compile(rb"flagged|moderation", re.IGNORECASE)
_PLAIN = {"upstream_error", "invalid_request", "upstream_malformed", "bad_request", "invalid_request_error"}


def opened(status: int, body: bytes, shape: type[T]) -> T | Refused:
    """Read an answer; an error, in whatever way it is told, is a refusal."""
    if status >= 400:
        return refused(status, body)
    answer = read(body, shape)
    if answer is None:
        return malformed(status, body)
    if answer.error:
        return failed(answer, "the upstream reported an error")
    return answer


def read(body: bytes, shape: type[T]) -> T | None:
    """Read an answer's JSON object as a Struct; None where it is none."""
    try:
        return msgspec.json.decode(body, type=shape)
    except UNREADABLE:
        pass
    try:
        return msgspec.convert(read_loose(body, Notes()), shape)
    except (msgspec.ValidationError, RecursionError):
        return None


def refused(status: int, body: bytes) -> Refused:
    """Read an error answer. A 403 may be about the content, too."""
    if status == 403 and _FLAGGED.search(body[:4000]):
        answer = read(body, Answer)
        told = as_text(as_dict(answer.error).get("message") or answer.message) if answer else ""
        return filtered(told or "The provider's moderation refused the request.")
    return Refused(_filter(read_error_body(status, body)))


def malformed(status: int, body: bytes) -> Refused:
    """Say that an answer cannot be read, with its first words."""
    shown = " ".join(body[:200].decode("utf-8", "replace").split()) or "nothing"
    return Refused(
        UpstreamError("upstream_malformed", f"the upstream's answer (HTTP {status}) makes no sense: {shown}", 502)
    )


def broken_off(page: bytes) -> Refused:
    """Say that a stream ended without a result; `page` is what came in place of events."""
    if page:
        return malformed(200, page)
    return Refused(
        UpstreamError("upstream_incomplete", "the upstream's stream ended before the picture was there", 502)
    )


def failed(answer: Answer, otherwise: str) -> Refused:
    """Read why a task failed; where the answer does not tell, `otherwise` says it."""
    if not answer.error and not answer.message:
        return Refused(UpstreamError("upstream_error", otherwise, 502))
    told = {"error": answer.error} if answer.error else {"message": answer.message}
    return Refused(_filter(read_error({**told, "code": answer.code})))


def filtered(message: str) -> Refused:
    """Say that the content rules of the provider stood in the way."""
    return Refused(UpstreamError("content_filter", message, 400, "invalid_request_error"))


def nothing(kind: MediaKind, why: str = "") -> Refused:
    """Say that an answer holds no medium, with what it says instead."""
    code, what = ("upstream_no_video", "film") if kind == "video" else ("upstream_no_image", "picture")
    said = " ".join(why.split())[:500]
    return Refused(UpstreamError(code, f"the model gave no {what}" + (f": {said}" if said else ""), 502))


def ready(
    media: Iterable[Media | None], kind: MediaKind, *, usage: Usage | None = None, text: str = ""
) -> Ready | Refused:
    """Give what was found; nothing found is a refusal."""
    found = tuple(one for one in media if one is not None)
    return Ready(found, usage, text) if found else nothing(kind, text)


def medium(item: Any, kind: MediaKind) -> Media | None:
    """Read one medium of an answer that holds nothing of another kind: links without a scheme are the provider's."""
    value = as_dict(item)
    url = as_text(item) or as_text(value.get("url"))
    media = Media(kind, url=url) if url[:1] == "/" != url[1:2] else media_of(item, kind)
    if media is None:
        return None
    said = as_text(value.get("revised_prompt"))
    return replace(media, kind=kind, revised_prompt=said) if media.kind != kind or said else media


def usage_of(value: Any) -> Usage | None:
    """Read usage, also where it is a price alone."""
    counted = read_usage(value)
    if counted is not None or type(value) is not dict:
        return counted
    priced = read_usage({**value, "total_tokens": 1})
    return Usage(cost_microusd=priced.cost_microusd) if priced and priced.cost_microusd is not None else None


def _filter(error: UpstreamError) -> UpstreamError:
    """Recognise refusals of content by their words where the code does not say."""
    asks = error.status in (400, 422) or error.status >= 500
    if error.code in _PLAIN and asks and _FILTERED.search(error.message):
        return UpstreamError("content_filter", error.message, 400, "invalid_request_error", error.param)
    return error
