"""Stored streams whose events are in Valkey (or Redis) Streams: fast enough for text, followed from any replica.

What a stream is, whose it is and who may write it stays in the database; lost events are `stream_expired`, no more.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.core.state import StaleOwnerError, StorageError, StreamStore

BLOCK_MS = 1000
COUNT = 500
OPEN_S = 24 * 3600
"""How long events outlive a writer that never ends its stream."""

APPEND = """
local gen = redis.call('HGET', KEYS[2], 'gen')
if gen and tonumber(gen) > tonumber(ARGV[1]) then return -1 end
redis.call('HSET', KEYS[2], 'gen', ARGV[1])
for at = 4, #ARGV do
  local seq = redis.call('HINCRBY', KEYS[2], 'last', 1)
  redis.call('XADD', KEYS[1], seq .. '-0', 'd', ARGV[at])
  redis.call('HINCRBY', KEYS[2], 'bytes', #ARGV[at])
end
while tonumber(redis.call('HGET', KEYS[2], 'bytes') or '0') > tonumber(ARGV[2]) do
  local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
  if not oldest then break end
  redis.call('XDEL', KEYS[1], oldest[1])
  redis.call('HINCRBY', KEYS[2], 'bytes', -#oldest[2][2])
end
redis.call('EXPIRE', KEYS[1], ARGV[3])
redis.call('EXPIRE', KEYS[2], ARGV[3])
return tonumber(redis.call('HGET', KEYS[2], 'last') or '0')
"""


class ValkeyLog:
    """Implements `core.ports.EventLog`."""

    def __init__(self, streams: StreamStore, url: str, *, max_bytes: int, ttl_s: float) -> None:
        """Bound each stream to `max_bytes`, and keep it for `ttl_s` after its end; nothing is connected yet."""
        try:
            from redis.asyncio import Redis  # noqa: PLC0415 - an extra
            from redis.exceptions import RedisError  # noqa: PLC0415 - an extra
        except ImportError:
            raise GatewayError(
                "storage_unavailable", "Valkey needs the extra: pip install 'trunkline[scale]'."
            ) from None
        self._streams = streams
        self._redis = Redis.from_url(url.replace("valkey", "redis", 1))
        self._errors = (RedisError, OSError)
        self._append = self._redis.register_script(APPEND)
        self._max_bytes = max_bytes
        self._ttl_s = ttl_s

    async def close(self) -> None:
        """Close all connections."""
        await self._redis.aclose()

    async def open(self, stream: StoredStream, idempotency: Idempotency | None = None) -> tuple[StoredStream, bool]:
        """See the port."""
        return await self._streams.open(stream, idempotency)

    async def get(self, stream_id: str) -> StoredStream | None:
        """See the port."""
        stream = await self._streams.get(stream_id)
        return stream and replace(stream, last_seq=await self._last(stream_id))

    async def claim(self, stream_id: str, holder: str) -> StoredStream | None:
        """See the port."""
        stream = await self._streams.claim(stream_id, holder)
        if stream is not None:
            await self._run(stream_id, stream.generation, ())
        return stream

    async def append(self, stream_id: str, generation: int, events: Sequence[bytes]) -> int:
        """See the port."""
        return await self._run(stream_id, generation, events)

    async def end(self, stream_id: str, generation: int, state: Literal["ended", "failed"]) -> None:
        """See the port."""
        await self._streams.end(stream_id, generation, state, self._ttl_s)
        await self._run(stream_id, generation, (), ends=True)

    async def follow(self, stream_id: str, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """See the port."""
        key = _keys(stream_id)[0]
        while True:
            stream = await self.get(stream_id)  # before the events: what follows its end is not missed
            if stream is None:
                raise GatewayError("stream_not_found", f"There is no stream {stream_id}.")
            block = BLOCK_MS if stream.state == "open" else None
            with self._named():
                found: Any = await self._redis.xread({key: f"{after}-0"}, count=COUNT, block=block)
            for name, fields in found[0][1] if found else ():
                seq = int(name.partition(b"-")[0])
                if seq != after + 1:
                    raise GatewayError("stream_expired", f"The events after {after} are no longer kept.")
                after = seq
                yield seq, fields[b"d"]
            if stream.state != "open" and not found:
                if after < stream.last_seq:
                    raise GatewayError("stream_expired", f"The events after {after} are no longer kept.")
                return

    async def _last(self, stream_id: str) -> int:
        with self._named():
            return int(await self._redis.hget(_keys(stream_id)[1], "last") or 0)

    async def _run(self, stream_id: str, generation: int, events: Sequence[bytes], *, ends: bool = False) -> int:
        kept_s = int(self._ttl_s) if ends else OPEN_S
        with self._named():
            last = int(await self._append(_keys(stream_id), [generation, self._max_bytes, kept_s, *events]))
        if last < 0:
            raise StaleOwnerError(stream_id)
        return last

    @contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except self._errors as error:
            raise StorageError(f"Valkey cannot be used: {error}") from error


def _keys(stream_id: str) -> list[str]:
    """Name the events and what is known of them, in one slot of a cluster."""
    return [f"trunkline:{{{stream_id}}}:events", f"trunkline:{{{stream_id}}}:state"]
