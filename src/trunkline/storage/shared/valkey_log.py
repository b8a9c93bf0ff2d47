"""Stored streams whose events are in Valkey (or Redis) Streams: fast enough for text, followed from any replica.

What a stream is, whose it is and who may write it stays in the database. A stream that has begun needs Valkey alone,
until its end is to be noted. Events that Valkey loses are `stream_expired`, no more.
"""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.core.state import StaleOwnerError, StorageError, StreamStore
from trunkline.storage.shared.valkey import connect

BLOCK_MS = 500
COUNT = 500
READERS = 1024
"""Connections: every reader that waits has one."""
OPEN_S = 24 * 3600
"""How long events outlive a writer that never ends its stream."""
STALE = -1

# KEYS: the events; what is known of them. ARGV: generation, most bytes, seconds to keep them, the number before these
# events (-1: whatever it is), how the stream ends (or nothing), events. Repeated, it changes nothing.
APPEND = """
local state = redis.call('HMGET', KEYS[2], 'gen', 'last', 'end')
local last = tonumber(state[2] or '0')
if state[1] and tonumber(state[1]) > tonumber(ARGV[1]) then return -1 end
local before, new = tonumber(ARGV[4]), #ARGV - 5
if new > 0 and before >= 0 and last == before + new then return last end
if new > 0 and state[3] then return -1 end
if new > 0 and before >= 0 and last ~= before then return -2 end
redis.call('HSET', KEYS[2], 'gen', ARGV[1])
for at = 6, #ARGV do
  last = redis.call('HINCRBY', KEYS[2], 'last', 1)
  redis.call('XADD', KEYS[1], last .. '-0', 'd', ARGV[at])
  redis.call('HINCRBY', KEYS[2], 'bytes', #ARGV[at])
end
while tonumber(redis.call('HGET', KEYS[2], 'bytes') or '0') > tonumber(ARGV[2]) do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  if not oldest then break end
  redis.call('XDEL', KEYS[1], oldest[1])
  redis.call('HINCRBY', KEYS[2], 'bytes', -#oldest[2][2])
end
if ARGV[5] ~= '' then redis.call('HSETNX', KEYS[2], 'end', ARGV[5]) end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return last
"""


class ValkeyLog:
    """Implements `core.ports.EventLog`."""

    def __init__(self, streams: StreamStore, url: str, *, max_bytes: int, ttl_s: float) -> None:
        """Bound each stream to `max_bytes`, and keep it for `ttl_s` after its end; nothing is connected yet."""
        self._streams = streams
        self._redis, self._errors = connect(url, READERS)
        self._append = self._redis.register_script(APPEND)
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s
        self._lasts: dict[str, int] = {}
        """The last number of each stream that is written here."""

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()

    async def open(self, stream: StoredStream, idempotency: Idempotency | None = None) -> tuple[StoredStream, bool]:
        """See the port."""
        stored, new = await self._streams.open(stream, idempotency)
        if new:
            self._lasts[stored.id] = 0
        return stored, new

    async def get(self, stream_id: str) -> StoredStream | None:
        """See the port."""
        stream = await self._streams.get(stream_id)
        return stream and replace(stream, last_seq=(await self._known(stream_id))[0])

    async def claim(self, stream_id: str, holder: str) -> StoredStream | None:
        """See the port. A stream whose writer died before it could tell the database of the end is ended."""
        stream = await self._streams.claim(stream_id, holder)
        if stream is None:
            return None
        last = await self._run(stream_id, stream.generation, ())
        self._lasts.setdefault(stream_id, last)  # who writes it knows better
        _, end = await self._known(stream_id)
        if end is not None:
            await self.end(stream_id, stream.generation, end)
            return None
        return stream

    async def append(self, stream_id: str, generation: int, events: Sequence[bytes]) -> int:
        """See the port. Repeated after a StorageError, it adds nothing twice."""
        try:
            last = await self._run(stream_id, generation, events, before=self._lasts.get(stream_id, -1))
        except asyncio.CancelledError:
            self._lasts[stream_id] = -1  # perhaps they were added
            raise
        self._lasts[stream_id] = last
        return last

    async def end(self, stream_id: str, generation: int, state: Literal["ended", "failed"]) -> None:
        """See the port. Readers know of it even when the database does not; then it is to be repeated."""
        await self._run(stream_id, generation, (), end=state)
        await self._streams.end(stream_id, generation, state, self._ttl_s)
        self._lasts.pop(stream_id, None)

    async def follow(self, stream_id: str, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """See the port."""
        key = _keys(stream_id)[0]
        # What is written here is known to be open: it is followed though the database may be away.
        stream = StoredStream(id=stream_id) if stream_id in self._lasts else await self._streams.get(stream_id)
        if stream is None:
            raise GatewayError("stream_not_found", f"There is no stream {stream_id}.")
        while True:
            last, end = await self._known(stream_id)  # before the events: what follows its end is not missed
            is_open = stream.state == "open" and end is None
            with self._named():
                found: Any = await self._redis.xread(
                    {key: f"{after}-0"}, count=COUNT, block=BLOCK_MS if is_open else None
                )
            for name, fields in found[0][1] if found else ():
                seq = int(name.partition(b"-")[0])
                if seq != after + 1:
                    raise _expired(after)
                after = seq
                yield seq, fields[b"d"]
            if found:
                continue
            if is_open:
                stream = await self._look(stream)
            elif after != last or not last:
                raise _expired(after)
            else:
                return

    async def _look(self, stream: StoredStream) -> StoredStream:
        """Ask the database about a stream of which nothing is heard; while it is away, the stream goes on."""
        try:
            now = await self._streams.get(stream.id)
        except StorageError:
            return stream
        return now or replace(stream, state="failed")

    async def _known(self, stream_id: str) -> tuple[int, Literal["ended", "failed"] | None]:
        """Give the number of the last event, and how the stream ended if it has."""
        with self._named():
            last, end = await self._redis.hmget(_keys(stream_id)[1], ["last", "end"])
        return int(last or 0), None if end is None else ("ended" if end == b"ended" else "failed")

    async def _run(
        self, stream_id: str, generation: int, events: Sequence[bytes], *, before: int = -1, end: str = ""
    ) -> int:
        kept_s = int(self._ttl_s) if end else OPEN_S
        with self._named():
            answer = await self._append(_keys(stream_id), [generation, self._max_bytes, kept_s, before, end, *events])
        if int(answer) == STALE:
            self._lasts.pop(stream_id, None)
        if int(answer) < 0:
            raise StaleOwnerError(stream_id)
        return int(answer)

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise StorageError(f"Valkey cannot be used: {error}") from error


def _keys(stream_id: str) -> list[str]:
    """Name the events and what is known of them, in one slot of a cluster."""
    return [f"trunkline:{{{stream_id}}}:events", f"trunkline:{{{stream_id}}}:state"]


def _expired(after: int) -> GatewayError:
    return GatewayError("stream_expired", f"The events after {after} are no longer kept.")
