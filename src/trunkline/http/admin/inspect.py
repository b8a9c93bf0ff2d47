"""The inspector: captures that were pasted, and what providers really sent (docs/admin-api.md section 10)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from msgspec import Raw
from starlette.requests import Request

from trunkline.calls.traces import Trace
from trunkline.core.errors import GatewayError
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.reading import read_bytes
from trunkline.inspection.examine import examine, examine_capture
from trunkline.inspection.paste import Capture
from trunkline.inspection.paste.http import Head

CAPTURE_BYTES = 8 * 1024 * 1024
ENDS = {"complete": "completed", "broken": "failed"}


class InspectPages:
    """The endpoints of the inspector. One examination runs at a time: it is work for the processor alone."""

    def __init__(self, find: Callable[[str], Awaitable[Trace | None]]) -> None:
        """`find` gives what is kept of a call, by the request's id."""
        self._find = find
        self._turn = asyncio.Lock()
        self.endpoints = [
            Endpoint("POST", "/inspect", self._inspect),
            Endpoint("GET", "/traces/{id:path}", self._trace),
        ]

    async def _inspect(self, request: Request) -> bytes:
        data = await read_bytes(request, CAPTURE_BYTES)
        async with self._turn:
            return await asyncio.to_thread(lambda: examine(data).as_page_json())

    async def _trace(self, request: Request) -> Any:
        trace = await self._find(request.path_params["id"])
        if trace is None:
            told = "Nothing is kept of this call: it was not to be traced, is still open, or was too long ago."
            raise GatewayError("not_found", told)
        async with self._turn:
            inspection = await asyncio.to_thread(_examined, trace)
        headers = dict(trace.headers)
        shown = {name: getattr(trace, name) for name in ("request_id", "model", "provider", "upstream_model")}
        return {
            **shown,
            "kind": "text",
            "started_at": trace.started_at,
            "status": trace.status,
            "content_type": headers.get("content-type", ""),
            "truncated": trace.truncated,
            "ended": ENDS.get(trace.ended, "left"),
            "inspection": Raw(inspection),
        }


def _examined(trace: Trace) -> bytes:
    data = b"".join(piece for _, piece in trace.reads)
    reads: list[tuple[float | None, int]] = []
    end = 0
    for at_s, piece in trace.reads:
        end += len(piece)
        reads.append((at_s, end))
    capture = Capture(data, head=Head(trace.status, trace.headers), reads=reads, broken=trace.ended == "broken")
    return examine_capture(capture, data).as_page_json()
