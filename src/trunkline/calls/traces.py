"""What providers really sent in answer to the last calls that were to be traced: in memory, bounded."""

import time
from collections import OrderedDict

from msgspec import Struct

MOST = 32
KEPT_S = 900.0
MOST_BYTES = 2 * 1024 * 1024
"""What is kept of one answer."""


class Trace(Struct, frozen=True, kw_only=True):
    """The last attempt of one call. `reads`: seconds since the request was sent, and the bytes that came."""

    request_id: str
    model: str
    provider: str
    upstream_model: str
    started_at: float
    status: int
    headers: list[tuple[str, str]]
    truncated: bool
    ended: str
    """`complete`, `broken`, or `left`: nobody read on."""
    reads: list[tuple[float, bytes]]


class Traces:
    """The traces of this process, by request id."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, tuple[float, Trace]] = OrderedDict()

    def keep(self, trace: Trace) -> None:
        """Keep one; a later attempt of the same call takes the place of the former."""
        self._kept.pop(trace.request_id, None)
        self._kept[trace.request_id] = time.monotonic(), trace
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def get(self, request_id: str) -> Trace | None:
        """Give one, as long as it is kept."""
        while self._kept and next(iter(self._kept.values()))[0] < time.monotonic() - KEPT_S:
            self._kept.popitem(last=False)
        found = self._kept.get(request_id)
        return found[1] if found else None
