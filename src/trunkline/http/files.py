"""`POST /v1/files`: pictures that clients upload, to be named as input later (contract section 5)."""

from trunkline.calls.gate import Gate
from trunkline.calls.media_intake import MediaIntake
from trunkline.core.caller import Caller
from trunkline.core.errors import GatewayError
from trunkline.core.media import FileRecord
from trunkline.http.call_headers import read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import respond_error, respond_json
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.http.multipart import is_form, read_form

PURPOSE = "vision"


class Files:
    """The endpoint's handler, behind the front door."""

    def __init__(self, live: Live, gate: Gate, intake: MediaIntake) -> None:
        self._live = live
        self._gate = gate
        self._intake = intake

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        try:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
            record = await self._keep(exchange, caller)
        except GatewayError as error:
            respond_error(exchange, error, headers)
            return
        respond_json(exchange, file_object(record), headers)

    async def _keep(self, exchange: Exchange, caller: Caller) -> FileRecord:
        content_type = exchange.header(b"content-type")
        if not is_form(content_type):
            raise GatewayError("invalid_value", "It must be multipart/form-data.", param="content-type")
        parts = {part.name: part for part in read_form(content_type, exchange.body)}
        exchange.body = b""
        for name in ("file", "purpose"):
            if name not in parts:
                raise GatewayError("missing_required_parameter", f"`{name}` is required.", param=name)
        purpose = parts["purpose"].data.decode("utf-8", "replace")
        if purpose != PURPOSE:
            raise GatewayError(
                "invalid_value", f"`purpose` is {purpose[:40]!r}; allowed is {PURPOSE!r}.", param="purpose"
            )
        filename = (parts["file"].filename or "")[:255]
        return await self._intake.upload(parts["file"].data, filename=filename, purpose=purpose, key_id=caller.key.id)


def file_object(record: FileRecord) -> dict[str, object]:
    """Write an upload as OpenAI's `file` object."""
    return {
        "id": record.id,
        "object": "file",
        "bytes": record.bytes,
        "created_at": record.created_ms // 1000,
        "expires_at": record.expires_ms // 1000 if record.expires_ms is not None else None,
        "filename": record.filename,
        "purpose": record.purpose,
        "status": "processed",
    }
