"""Kept answers in this process's memory, bounded in bytes and in time."""

import time
from collections import OrderedDict

LARGEST_PART = 8
"""One answer takes at most this part of the room."""


class LocalAnswers:
    """See `core.ports.AnswerCache`. The least recently used go first."""

    def __init__(self, *, max_bytes: int, ttl_s: float) -> None:
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._kept: OrderedDict[bytes, tuple[float, bytes]] = OrderedDict()
        self.bytes = 0

    async def get(self, name: bytes) -> bytes | None:
        until, data = self._kept.get(name, (0.0, b""))
        if not data:
            return None
        if time.monotonic() >= until:
            self._drop(name)
            return None
        self._kept.move_to_end(name)
        return data

    async def put(self, name: bytes, data: bytes) -> None:
        if len(data) > self._max_bytes // LARGEST_PART:
            return
        self._drop(name)
        self._kept[name] = (time.monotonic() + self._ttl_s, data)
        self.bytes += len(data)
        while self.bytes > self._max_bytes:
            self._drop(next(iter(self._kept)))

    def _drop(self, name: bytes) -> None:
        _, data = self._kept.pop(name, (0.0, b""))
        self.bytes -= len(data)
