"""What may fail, and how a client hears of it (contract section 6)."""

from typing import Literal

from msgspec import Struct

ErrorType = Literal[
    "invalid_request_error",
    "authentication_error",
    "permission_error",
    "rate_limit_error",
    "upstream_error",
    "server_error",
]


class ErrorKind(Struct, frozen=True):
    """The usual status and type of an error code."""

    status: int
    type: ErrorType


KINDS: dict[str, ErrorKind] = {
    "invalid_json": ErrorKind(400, "invalid_request_error"),
    "invalid_value": ErrorKind(400, "invalid_request_error"),
    "missing_required_parameter": ErrorKind(400, "invalid_request_error"),
    "content_filter": ErrorKind(400, "invalid_request_error"),
    "context_length_exceeded": ErrorKind(400, "invalid_request_error"),
    "not_a_chat_model": ErrorKind(400, "invalid_request_error"),
    "invalid_api_key": ErrorKind(401, "authentication_error"),
    "budget_exceeded": ErrorKind(402, "invalid_request_error"),
    "model_not_allowed": ErrorKind(403, "permission_error"),
    "permission_denied": ErrorKind(403, "permission_error"),
    "invalid_signature": ErrorKind(403, "permission_error"),
    "model_not_found": ErrorKind(404, "invalid_request_error"),
    "not_found": ErrorKind(404, "invalid_request_error"),
    "stream_not_found": ErrorKind(404, "invalid_request_error"),
    "unknown_endpoint": ErrorKind(404, "invalid_request_error"),
    "method_not_allowed": ErrorKind(405, "invalid_request_error"),
    "idempotency_conflict": ErrorKind(409, "invalid_request_error"),
    "cancelled": ErrorKind(409, "invalid_request_error"),
    "stream_expired": ErrorKind(410, "invalid_request_error"),
    "link_expired": ErrorKind(410, "invalid_request_error"),
    "request_too_large": ErrorKind(413, "invalid_request_error"),
    "rate_limit_exceeded": ErrorKind(429, "rate_limit_error"),
    "internal_error": ErrorKind(500, "server_error"),
    "upstream_error": ErrorKind(502, "upstream_error"),
    "upstream_auth": ErrorKind(502, "upstream_error"),
    "upstream_incomplete": ErrorKind(502, "upstream_error"),
    "upstream_malformed": ErrorKind(502, "upstream_error"),
    "upstream_no_image": ErrorKind(502, "upstream_error"),
    "submit_unknown": ErrorKind(502, "upstream_error"),
    "upstream_no_video": ErrorKind(502, "upstream_error"),
    "media_unavailable": ErrorKind(502, "upstream_error"),
    "media_gone": ErrorKind(502, "upstream_error"),
    "media_refused": ErrorKind(502, "upstream_error"),
    "media_damaged": ErrorKind(502, "upstream_error"),
    "upstream_unavailable": ErrorKind(503, "upstream_error"),
    "shutting_down": ErrorKind(503, "server_error"),
    "server_shutdown": ErrorKind(503, "server_error"),
    "storage_unavailable": ErrorKind(503, "server_error"),
    "upstream_timeout": ErrorKind(504, "upstream_error"),
    "job_still_running": ErrorKind(504, "server_error"),
}


class GatewayError(Exception):
    """An answer that is an error. `code` is a key of `KINDS`, or an upstream's own code with a status of its own."""

    def __init__(  # noqa: PLR0913 - the members of one error object
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        status: int | None = None,
        type: ErrorType | None = None,  # noqa: A002 - OpenAI's name
        headers: tuple[tuple[str, str], ...] = (),
    ) -> None:
        kind = KINDS.get(code, KINDS["upstream_error"])
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.status = status or kind.status
        self.type = type or kind.type
        self.headers = headers


class UpstreamError(Struct, frozen=True):
    """An upstream's error answer, read by its dialect: `code` in our words where one fits, else the upstream's own."""

    code: str
    message: str
    status: int
    type: ErrorType = "upstream_error"
    param: str | None = None
    retry_after_s: float | None = None
