"""Reading an upstream's error, in whatever shape it comes (wire.md sections 1.9, 3.1, 4.4, 5.1, 7)."""

import json
import re
from typing import Any

import msgspec

from trunkline.core.errors import KINDS, UpstreamError
from trunkline.wire.frame import ERROR_EVENTS, UNREADABLE
from trunkline.wire.media_shapes import is_pending
from trunkline.wire.read import as_count, as_dict, as_name, as_number, as_text, dicts

_CONTEXT = re.compile(
    r"context[ _-]?(size|length|window)|maximum context|prompt is too long|input is too long|too many (input )?tokens"
    r"|exceeds? (the )?(maximum|max)[^.]{0,40}tokens|token (count|limit)[^.]{0,40}exceed|reduce the length",
    re.IGNORECASE,
)
_CONTEXT_CODES = {"context_length_exceeded", "exceed_context_size_error", "1261", "string_above_max_length"}
_FILTER_CODES = {
    "content_filter", "content_policy_violation", "moderation_blocked", "1301", "1300", "data_inspection_failed",
    "datainspectionfailed", "responsibleaipolicyviolation", "safety", "image_safety", "content_filtered", "sensitive",
}  # fmt: skip
_RATE_CODES = {"1302", "1303", "1305", "rate_limit_exceeded", "resource_exhausted", "throttlingexception"}
_KINDS = {
    429: ("rate_limit", "resource_exhausted", "throttling", "quota", "too_many_requests"),
    503: ("overloaded", "unavailable"),
    504: ("timeout", "deadline_exceeded"),
    401: ("authentication", "unauthenticated", "invalid_api_key"),
    402: ("billing", "insufficient_fund"),
    403: ("permission", "accessdenied"),
    404: ("not_found", "notfound"),
    413: ("too_large", "message_too_long"),
    400: ("invalid_request", "badrequest", "invalid_argument", "exceed_context_size", "validation", "invalidparameter",
          "user_caused"),
}  # fmt: skip
_CODES = ("code", "status_code", "statusCode", "errcode", "error_code", "err_code", "errorCode", "ErrorCode", "Code",
          "errno", "retcode", "__type")  # fmt: skip
_MESSAGES = ("message", "msg", "error_msg", "errmsg", "err_msg", "retmsg", "ret_msg", "errorMessage", "status_msg",
             "error_description", "detail", "error", "reason", "title", "text", "content", "fail_reason",
             "failure_reason", "error_message", "Message", "faultstring", "exception", "err", "errorText",
             "Msg")  # fmt: skip
_BESIDE = ("message", "msg", "error_description", "detail")
_ENVELOPES = ("data", "response", "result", "header", "body", "Response")
_AROUND = ("data", "result", "response", "body", "chunk", "payload", "completion")
_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
_SOUNDS = re.compile(r"err(or|msg|_|$)|.*(error|exception)$", re.IGNORECASE)  # `ErrorMsg`, `throttlingException`
_FINE = (None, 0, "0", 200, "200", "", "success", "Success", "SUCCESS", "ok", "OK")
_WELL = {"", "ok", "success"}
_ALONE = {"message", "Message", "msg", "status", "code", "id", "request_id"}
_FLAT = {"type", "param"}
_FAILED = {"failed", "failure", "fail", "error", "expired", "cancelled", "canceled", "aborted"}
_NOT_TAKEN = re.compile(r"(image|audio) input is not supported|failed to parse (tools|messages):", re.IGNORECASE)
"""llama.cpp's words, with a 500."""
_PASSED_ON = {400, 404, 413, 422, 429}
_MOST_CHARS = 2_000
_NAME = re.compile(r"[a-z]+(_[a-z]+){1,6}", re.IGNORECASE)
_FAILING = re.compile(
    rb"\W{0,8}(?!(no|without|\d)\b)(\w{1,24}[ _-]){0,2}(\w{0,24}(error|exception)|fail(ure|ed)"
    rb"|time(out|d out)|aborted|overloaded|unavailable|bad gateway|too many requests)\b",
    re.IGNORECASE,
)
_HEAD_BYTES = 128
_PAGE = re.compile(r"<(html|body|!doctype)\b", re.IGNORECASE)
_TAG = re.compile(r"<(script|style)\b.*?</\1>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def is_error(value: dict[str, Any]) -> bool:
    """Say whether a JSON object without an answer in it is an error in any of the known shapes."""
    named = any(as_text(value.get(name)).lower() in ERROR_EVENTS for name in ("object", "type", "event"))
    if named or _sounding(value) or value.get("detail") or value.get("fault"):
        return True
    if False in (value.get("success"), value.get("ok")):
        return True
    code = next((value[name] for name in _CODES if name in value), None)
    if code not in _FINE:
        return any(name in value for name in _MESSAGES)
    if as_dict(value.get("base_resp")).get("status_code") not in _FINE or _enveloped(value):
        return True
    if 400 <= as_count(value.get("status")) < 600 or _has_failed(value):
        return True
    words = next((text for name in ("message", "Message", "msg") if (text := as_text(value.get(name)))), "")
    flat = "param" in value or "error" in as_text(value.get("type"))  # OpenAI's object without what is around it
    return words.lower() not in _WELL and set(value) <= (_ALONE | _FLAT if flat else _ALONE) and not is_pending(value)


def is_error_text(data: bytes | bytearray | memoryview) -> bool:
    """Say whether a text that stands where JSON belongs tells of a failure: `[ERROR] …`."""
    return _FAILING.match(bytes(data[:_HEAD_BYTES])) is not None


def _sounding(value: dict[str, Any]) -> dict[str, Any]:
    """Give the members whose names sound like an error, and that say something."""
    return {name: item for name, item in value.items() if item not in _FINE and item and _SOUNDS.match(name)}


def _enveloped(value: dict[str, Any]) -> dict[str, Any]:
    """Give the error that stands within an envelope: `{"data":{"error":…}}`, `{"header":{"code":10013,…}}`."""
    inners = [as_dict(value.get(name)) for name in _ENVELOPES]
    told = as_dict(value.get("header")) or as_dict(value.get("ret"))
    bad = {"error": told} if told.get("code") not in _FINE and (told.get("message") or told.get("msg")) else {}
    task = as_dict(value.get("output"))
    bad = {"error": task} if _has_failed(task) else bad
    return next((inner for inner in inners if inner.get("error") or inner.get("Error")), bad)


def _has_failed(value: dict[str, Any]) -> bool:
    """Say whether a task tells that it failed."""
    return any(as_text(value.get(name)).lower() in _FAILED for name in ("status", "task_status"))


def unwrapped(value: dict[str, Any]) -> dict[str, Any] | None:
    """Give the chunk or completion that stands within an envelope: `{"code":0,"data":{"choices":…}}`.

    Also of a chunk whose only choice has no list around it, or whose delta has no choice, or whose names are Tencent's:
    `{"Choices":[{"Delta":{"Content":…}}]}`.
    """
    if "choices" in value:
        return None
    single = as_dict(value.get("choice")) or (value if type(value.get("delta")) is dict else None)
    if single and "type" not in value:
        return {**value, "choices": [{"index": 0, **single}]}
    capital = as_dict(value.get("Response")) or value
    if type(capital.get("Choices")) is list:
        return as_dict(_lowered(capital))
    inners = (value.get(name) for name in _AROUND)
    return next((inner for inner in map(_object, inners) if type(inner.get("choices")) in (list, dict)), None)


def usage_within(value: dict[str, Any]) -> Any:
    """Give the usage that stands within an envelope, in a chunk without choices."""
    return next((usage for name in _AROUND if (usage := _object(value.get(name)).get("usage"))), None)


def _lowered(value: Any) -> Any:
    """Write the names of members in small letters: `FinishReason` is `finish_reason`."""
    if type(value) is dict:
        return {_HUMP.sub("_", name).lower(): _lowered(item) for name, item in value.items()}
    return [_lowered(item) for item in value] if type(value) is list else value


def _object(value: Any) -> dict[str, Any]:
    """Give an object, also of its JSON text."""
    if type(value) is str and value[:1] == "{":
        try:
            value = msgspec.json.decode(value)
        except UNREADABLE:
            return {}
    return as_dict(value)


def read_error(value: Any, status: int | None = None, retry_after: str = "") -> UpstreamError:
    """Read an error value (an object, a one-element array, a string) into our words.

    `status` is the HTTP status it came with; None or 200: none, then a code like a status counts.
    """
    if type(value) is list:
        value = value[0] if value else {}
    outer = _object(value)
    outer = outer if outer.get("error") else _enveloped(outer) or outer
    body = outer
    told = as_text(outer.get("event")).lower() in ERROR_EVENTS
    for name in (
        "error",
        "error",
        "Error",
        "detail",
        "error",
        "base_resp",
        "fault",
        "err",
        "error_info",
        "data" if told else "",
    ):
        body = _object(body.get(name)) or body
    if body is outer:
        body = next(({"type": name, **item} for name, item in _sounding(outer).items() if type(item) is dict), outer)
    said = outer.get("error")
    message = _message(said if type(said) is str else "", body, outer, value)
    code = next((name for holder in (body, outer) for key in _CODES if (name := as_name(holder.get(key)))), "")
    kind = as_text(body.get("type")) or as_text(body.get("status")) or as_text(body.get("error_type"))
    param = as_text(body.get("param")) or None
    if status is None or status < 400:
        named = as_count(code) or as_count(body.get("status")) or as_count(outer.get("status_code"))
        status = named if 400 <= named < 600 else _status_of(kind) or _status_of(code)
    wait = as_number(retry_after)
    return _classified(code, kind, message, status, param, wait if wait and wait > 0 else None)


def read_error_body(status: int, body: bytes, retry_after: str = "") -> UpstreamError:
    """Read an error answer's body: JSON, or a page whose words are kept."""
    try:
        value = msgspec.json.decode(body.strip())
    except UNREADABLE:
        value = {"message": plain_words(body) or f"HTTP {status} without a body"}
    return read_error(value, status, retry_after)


def _message(text: str, body: dict[str, Any], outer: dict[str, Any], value: Any) -> str:
    texts = [] if body is not outer else [text]
    if text and body is outer:  # often the status in words, with the reason beside it
        beside = next(filter(None, (as_text(body.get(name)) for name in _BESIDE)), "")
        texts = [f"{text}: {beside}" if beside and beside not in text else text]
    for candidate in (*texts, *(holder.get(name) for holder in (body, outer) for name in _MESSAGES)):
        if type(candidate) is str and candidate.strip():
            page = _PAGE.search(candidate)
            words = plain_words(candidate.encode("utf-8", "replace")) if page else candidate.strip()
            raw = as_dict(body.get("metadata")).get("raw")  # what the provider behind a relay said
            return f"{words}: {raw}"[:_MOST_CHARS] if type(raw) is str else words[:_MOST_CHARS]
    items = [*dicts(outer.get("detail")), *dicts(outer.get("errors"))]
    details = [as_text(item.get("msg")) or as_text(item.get("message")) for item in items]
    if any(details):
        return "; ".join(filter(None, details))[:_MOST_CHARS]
    if type(value) is str and value.strip():
        return plain_words(value.strip(' "').encode("utf-8", "replace"))
    return json.dumps(value)[:300] if value else "the upstream reported an error and did not say which"


def plain_words(body: bytes) -> str:
    """Give the words of a text or of a page without its markup."""
    return " ".join(_TAG.sub(" ", body[:20_000].decode("utf-8", "replace")).split())[:300]


def _status_of(kind: str) -> int | None:
    """Give the HTTP status that an error's type stands for, in the words of all languages."""
    kind = kind.lower()
    return next((status for status, words in _KINDS.items() if any(word in kind for word in words)), None)


def _classified(  # noqa: PLR0913, PLR0917 - the members of one error
    code: str, kind: str, message: str, status: int | None, param: str | None, wait: float | None
) -> UpstreamError:
    low = code.lower()
    too_long = low in _CONTEXT_CODES or kind == "exceed_context_size_error"
    if too_long or (status in (400, 413, None) and _CONTEXT.search(message)):
        return UpstreamError("context_length_exceeded", message, 400, "invalid_request_error", param)
    if low in _FILTER_CODES or kind.lower() in _FILTER_CODES:
        return UpstreamError("content_filter", message, 400, "invalid_request_error", param)
    if status in (401, 402, 403):
        named = f", {code}" if _NAME.fullmatch(code) else ""  # its words may hold the credential
        told = f"the provider refused the gateway's credential (HTTP {status}{named})"
        return UpstreamError("upstream_auth", told, 502)
    if low in _RATE_CODES or status == 429:
        name = code if code and not code.isdigit() and low != "resource_exhausted" else "rate_limit_exceeded"
        return UpstreamError(name, message, 429, "rate_limit_error", param, wait)
    own = code if code and not code.lstrip("-").isdigit() else ""
    status = 400 if _NOT_TAKEN.match(message) else status
    if status in _PASSED_ON and status is not None:
        return UpstreamError(own or "invalid_request", message, status, "invalid_request_error", param, wait)
    ours = {503: "upstream_unavailable", 529: "upstream_unavailable", 504: "upstream_timeout", 408: "upstream_timeout"}
    name = ours.get(status or 0, "upstream_error")
    return UpstreamError(own or name, message, KINDS[name].status, "upstream_error", param, wait)
