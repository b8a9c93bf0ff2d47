"""Stored streams that can be followed: readers in the writer's process wake at once, others look twice a second."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from typing import Literal
from weakref import WeakValueDictionary

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.core.state import StaleOwnerError, StorageError, StreamStore

LOOK_S = 0.5
PATIENCE_S = 60.0
"""How long readers wait for a database that is away."""


class StoredLog:
    """Implements `core.ports.EventLog` over a database."""

    def __init__(self, streams: StreamStore, *, max_bytes: int, ttl_s: float) -> None:
        """Bound each stream to `max_bytes`, and keep it for `ttl_s` after its end."""
        self._streams = streams
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._news: WeakValueDictionary[str, asyncio.Event] = WeakValueDictionary()
        self._lasts: dict[str, int] = {}
        """The last number of each stream that is written here."""

    async def open(self, stream: StoredStream, idempotency: Idempotency | None = None) -> tuple[StoredStream, bool]:
        """See the port."""
        stored, new = await self._streams.open(stream, idempotency)
        if new:
            self._lasts[stored.id] = 0
        return stored, new

    async def get(self, stream_id: str) -> StoredStream | None:
        """See the port."""
        return await self._streams.get(stream_id)

    async def claim(self, stream_id: str, holder: str) -> StoredStream | None:
        """See the port."""
        stream = await self._streams.claim(stream_id, holder)
        if stream is not None:
            self._lasts.setdefault(stream_id, stream.last_seq)  # who writes it knows better
        return stream

    async def append(self, stream_id: str, generation: int, events: Sequence[bytes]) -> int:
        """See the port."""
        before = self._lasts.get(stream_id)
        try:
            last = await self._streams.append(stream_id, generation, events, max_bytes=self._max_bytes, before=before)
        except StaleOwnerError:
            self._lasts.pop(stream_id, None)
            raise
        self._lasts[stream_id] = last
        self._tell(stream_id)
        return last

    async def end(self, stream_id: str, generation: int, state: Literal["ended", "failed"]) -> None:
        """See the port."""
        await self._streams.end(stream_id, generation, state, self._ttl_s)
        self._lasts.pop(stream_id, None)
        self._tell(stream_id)

    async def follow(self, stream_id: str, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """See the port."""
        away_until = 0.0  # a stream that is being read waits for a database that is away
        while True:
            news = self._news.setdefault(stream_id, asyncio.Event())
            try:
                stream = await self._streams.get(stream_id)  # before the events: what follows its end is not missed
                events = await self._streams.read(stream_id, after) if stream else []
            except StorageError:
                if time.monotonic() > away_until:
                    raise
                await asyncio.sleep(LOOK_S)
                continue
            away_until = time.monotonic() + PATIENCE_S
            if stream is None:
                raise GatewayError("stream_not_found", f"There is no stream {stream_id}.")
            for seq, data in events:
                if seq != after + 1:
                    raise GatewayError("stream_expired", f"The events after {after} are no longer kept.")
                after = seq
                yield seq, data
            if stream.state != "open" and after >= stream.last_seq:
                return
            if events:
                continue
            try:
                async with asyncio.timeout(LOOK_S):
                    await news.wait()
            except TimeoutError:
                continue

    def _tell(self, stream_id: str) -> None:
        if news := self._news.pop(stream_id, None):
            news.set()
