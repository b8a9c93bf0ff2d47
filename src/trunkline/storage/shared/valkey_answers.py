"""Kept answers in Valkey or Redis, for all replicas; while it is away, nothing is kept and everything is asked."""

import contextlib

from trunkline.storage.shared.answers import LARGEST_PART
from trunkline.storage.shared.valkey import connect

PREFIX = b"trunkline:answer:"


class ValkeyAnswers:
    """See `core.ports.AnswerCache`. One answer is bounded here, all of them by Valkey's own `maxmemory`."""

    def __init__(self, url: str, *, max_bytes: int, ttl_s: float) -> None:
        self._valkey, self._away = connect(url)
        self._largest = max_bytes // LARGEST_PART
        self._ttl_ms = max(1, round(ttl_s * 1000))

    async def get(self, name: bytes) -> bytes | None:
        with contextlib.suppress(*self._away):
            data = await self._valkey.get(PREFIX + name)
            return data if isinstance(data, bytes) else None
        return None

    async def put(self, name: bytes, data: bytes) -> None:
        if len(data) > self._largest:
            return
        with contextlib.suppress(*self._away):
            await self._valkey.set(PREFIX + name, data, px=self._ttl_ms)

    async def close(self) -> None:
        """Close the connections."""
        await self._valkey.aclose()
