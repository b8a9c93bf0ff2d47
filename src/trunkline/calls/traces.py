"""What providers really sent in answer to calls that were to be traced: kept for a while, within bounds."""

import time

import msgspec
from msgspec import Struct

from trunkline.core.ports import AnswerCache

KEPT_S = 900.0
ROOM_BYTES = 64 * 1024 * 1024
"""Of all traces that one process keeps; where Valkey keeps them, its `maxmemory` bounds them."""
MOST_TOLD = 64
"""Of so many other processes are told that they are here."""
MOST_BYTES = 2 * 1024 * 1024
"""What is kept of one text answer."""


class Exchange(Struct, frozen=True, kw_only=True):
    """One request and its answer. `reads`: seconds since the request was sent, and the bytes that came."""

    request: str = ""
    """Method and address."""
    asked_s: float = 0.0
    """Since the trace's `started_at`."""
    took_s: float = 0.0
    status: int = 0
    """0: no answer came; `error` says why."""
    headers: list[tuple[str, str]] = []
    size: int = 0
    """Bytes of the answer, kept or not."""
    truncated: bool = False
    ended: str = ""
    """`complete`, `broken`, or `left`: nobody read on."""
    error: str = ""
    reads: list[tuple[float, bytes]] = []

    @property
    def data(self) -> bytes:
        """The bytes that were kept."""
        return b"".join(piece for _, piece in self.reads)


class Trace(Struct, kw_only=True):
    """One call: the last attempt of a text call, or all that was asked for a job."""

    request_id: str
    model: str
    provider: str
    upstream_model: str
    started_at: float
    exchanges: list[Exchange]
    kind: str = "text"
    job_id: str = ""
    left_out: int = 0
    """Exchanges that were too many."""


class Traces:
    """Traces by the id of the request, or of the job."""

    def __init__(self, kept: AnswerCache) -> None:
        self._kept = kept
        self._when: dict[str, float] = {}

    def here(self) -> list[str]:
        """Give the ids of the traces that this process has kept of late."""
        past = time.monotonic() - KEPT_S
        return [call_id for call_id, at_s in self._when.items() if at_s > past]

    async def keep(self, trace: Trace) -> None:
        """Keep one in place of what was kept of the same call before."""
        call_id = trace.job_id or trace.request_id
        self._when.pop(call_id, None)
        self._when[call_id] = time.monotonic()
        if len(self._when) > MOST_TOLD:
            del self._when[next(iter(self._when))]
        await self._kept.put(_name(call_id), msgspec.msgpack.encode(trace))

    async def get(self, call_id: str) -> Trace | None:
        """Give one, as long as it is kept."""
        data = await self._kept.get(_name(call_id))
        try:
            return msgspec.msgpack.decode(data, type=Trace) if data else None
        except msgspec.DecodeError:  # another version's, which shares the Valkey
            return None


def _name(call_id: str) -> bytes:
    return b"trace:" + call_id.encode()
