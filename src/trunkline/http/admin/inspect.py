"""The inspector: captures that were pasted, and what providers really sent (docs/admin-api.md section 10)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw
from starlette.requests import Request

from trunkline.calls.traces import Exchange, Trace
from trunkline.core.errors import GatewayError
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.reading import read_bytes

CAPTURE_BYTES = 8 * 1024 * 1024
ENDS = {"complete": "completed", "broken": "failed"}


class InspectPages:
    """The endpoints of the inspector. One examination runs at a time: it is work for the processor alone."""

    def __init__(
        self, find: Callable[[str], Awaitable[Trace | None]], elsewhere: Callable[[str], Awaitable[str]]
    ) -> None:
        """`find` gives what is kept of a call, by the id of its request or job; `elsewhere` names who else keeps it."""
        self._find = find
        self._elsewhere = elsewhere
        self._turn = asyncio.Lock()
        self.endpoints = [
            Endpoint("POST", "/inspect", self._inspect),
            Endpoint("GET", "/traces/{id:path}", self._trace),
        ]

    async def _inspect(self, request: Request) -> bytes:
        data = await read_bytes(request, CAPTURE_BYTES)
        async with self._turn:
            return await asyncio.to_thread(_inspected, data)

    async def _trace(self, request: Request) -> Any:
        trace = await self._find(request.path_params["id"])
        if trace is None:
            if replica := await self._elsewhere(request.path_params["id"]):
                told = f"The replica {replica} keeps this trace; with `storage.shared`, each of them would show it."
                raise GatewayError("not_found", told, param=replica)
            told = "Nothing is kept of this call: it was not to be traced, is still open, or was too long ago."
            raise GatewayError("not_found", told)
        shown = {
            name: getattr(trace, name)
            for name in ("request_id", "model", "provider", "upstream_model", "kind", "started_at")
        }
        if trace.kind != "text":
            exchanges = [_exchange(one) for one in trace.exchanges]
            return {**shown, "job_id": trace.job_id, "exchanges": exchanges, "left_out": trace.left_out}
        last = trace.exchanges[-1]
        async with self._turn:
            inspection = await asyncio.to_thread(_examined, last)
        return {
            **shown,
            "status": last.status,
            "content_type": dict(last.headers).get("content-type", ""),
            "truncated": last.truncated,
            "ended": ENDS.get(last.ended, "left"),
            "inspection": Raw(inspection),
        }


def _exchange(one: Exchange) -> dict[str, Any]:
    return {
        "request": one.request,
        "asked_ms": round(1000 * one.asked_s, 1),
        "took_ms": round(1000 * one.took_s, 1),
        "status": one.status or None,
        "headers": one.headers,
        "bytes": one.size,
        "body": one.data.decode("utf-8", "replace") if one.reads else None,
        "truncated": one.truncated,
        "ended": ENDS.get(one.ended, "left"),
        "error": one.error or None,
    }


def _inspected(data: bytes) -> bytes:
    from trunkline.inspection.examine import examine  # noqa: PLC0415 - of no use to whoever does not look

    return examine(data).as_page_json()


def _examined(exchange: Exchange) -> bytes:
    from trunkline.inspection.examine import examine_capture  # noqa: PLC0415 - the same
    from trunkline.inspection.paste import Capture  # noqa: PLC0415 - the same
    from trunkline.inspection.paste.http import Head  # noqa: PLC0415 - the same

    reads: list[tuple[float | None, int]] = []
    end = 0
    for at_s, piece in exchange.reads:
        end += len(piece)
        reads.append((at_s, end))
    head = Head(exchange.status, exchange.headers)
    capture = Capture(exchange.data, head=head, reads=reads, broken=exchange.ended == "broken")
    return examine_capture(capture, exchange.data).as_page_json()
