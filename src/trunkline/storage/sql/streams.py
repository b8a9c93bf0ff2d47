"""Stored streams and their events on SQL: the port `core.state.StreamStore`."""

from collections.abc import Sequence
from typing import Literal

from sqlalchemy import bindparam, delete, func, select, update

from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.core.state import StaleOwnerError
from trunkline.storage.sql.database import Database, among, now_ms
from trunkline.storage.sql.engine import AsyncConnection
from trunkline.storage.sql.idempotency import recall, remember
from trunkline.storage.sql.leases import living
from trunkline.storage.sql.records import Records
from trunkline.storage.sql.tables import idempotency as idempotency_table
from trunkline.storage.sql.tables import stream_events, streams

STREAMS = Records(streams, StoredStream)
GET = select(*STREAMS.columns).where(streams.c.id == bindparam("which"))
READ = (
    select(stream_events.c.seq, stream_events.c.data)
    .where(stream_events.c.stream_id == bindparam("which"), stream_events.c.seq > bindparam("after"))
    .order_by(stream_events.c.seq)
    .limit(bindparam("limit"))
)
TO_CANCEL = select(streams.c.id).where(
    streams.c.owner == bindparam("holder"), streams.c.state == "open", streams.c.cancel_requested
)
ORPHANS = (
    select(*STREAMS.columns)
    .where(streams.c.state == "open", streams.c.job_id == "", streams.c.owner.not_in(living()))
    .order_by(streams.c.created_ms)
    .limit(bindparam("limit"))
)


class SqlStreams:
    """See `core.state.StreamStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def open(self, stream: StoredStream, idempotency: Idempotency | None = None) -> tuple[StoredStream, bool]:
        async with self._database.write() as connection:
            if idempotency is not None:
                known = await remember(connection, idempotency)
                if known is not None and (former := await _get(connection, known.stream_id)) is not None:
                    return former, False
            return await insert_stream(connection, stream), True

    async def joined(self, idempotency: Idempotency) -> StoredStream | None:
        async with self._database.read() as connection:
            known = await recall(connection, idempotency)
            return None if known is None else await _get(connection, known.stream_id)

    async def get(self, stream_id: str) -> StoredStream | None:
        row = await self._database.first(GET, {"which": stream_id})
        return None if row is None else STREAMS.read(row)

    async def append(
        self, stream_id: str, generation: int, events: Sequence[bytes], *, max_bytes: int, before: int | None = None
    ) -> int:
        size = sum(map(len, events))
        grown = (
            update(streams)
            .where(streams.c.id == stream_id, streams.c.generation == generation, streams.c.state == "open")
            .values(last_seq=streams.c.last_seq + len(events), bytes=streams.c.bytes + size, updated_ms=now_ms())
            .returning(streams.c.last_seq, streams.c.bytes)
        )
        expected = grown if before is None else grown.where(streams.c.last_seq == before)
        async with self._database.write() as connection:
            row = (await connection.execute(expected)).one_or_none()
            if row is None and before is not None:
                stream = await _get(connection, stream_id)
                if stream is not None and stream.generation == generation:
                    which = {"which": stream_id, "after": before, "limit": len(events)}
                    if [row.data for row in await connection.execute(READ, which)] == [*events]:
                        return stream.last_seq  # added before; only the answer was lost
                row = (await connection.execute(grown)).one_or_none()
            if row is None:
                raise StaleOwnerError(stream_id)
            last, kept = row
            if events:
                first = last - len(events) + 1
                rows = [{"stream_id": stream_id, "seq": first + at, "data": data} for at, data in enumerate(events)]
                await connection.execute(stream_events.insert().values(created_ms=now_ms()), rows)
            if kept > max_bytes:
                await _drop_oldest(connection, stream_id, kept - max_bytes)
            return int(last)

    async def read(self, stream_id: str, after: int, *, limit: int = 1000) -> list[tuple[int, bytes]]:
        rows = await self._database.rows(READ, {"which": stream_id, "after": after, "limit": limit})
        return [(row.seq, row.data) for row in rows]

    async def end(
        self, stream_id: str, generation: int, state: Literal["ended", "failed"], expires_after_s: float
    ) -> None:
        ended = (
            update(streams)
            .where(streams.c.id == stream_id, streams.c.generation == generation, streams.c.state == "open")
            .values(state=state, ended_ms=now_ms(), updated_ms=now_ms())
            .values(expires_ms=now_ms() + int(expires_after_s * 1000))
        )
        async with self._database.write() as connection:
            if (await connection.execute(ended)).rowcount:
                return
            stream = await _get(connection, stream_id)
        if stream is None or (stream.generation, stream.state) != (generation, state):
            raise StaleOwnerError(stream_id)

    async def cancel(self, stream_id: str) -> StoredStream | None:
        asked = update(streams).where(streams.c.id == stream_id, streams.c.state == "open")
        async with self._database.write() as connection:
            await connection.execute(asked.values(cancel_requested=True, updated_ms=now_ms()))
            return await _get(connection, stream_id)

    async def to_cancel(self, holder: str) -> list[str]:
        return [row.id for row in await self._database.rows(TO_CANCEL, {"holder": holder})]

    async def claim(self, stream_id: str, holder: str) -> StoredStream | None:
        statement = (
            update(streams)
            .where(streams.c.id == stream_id, streams.c.state == "open")
            .values(owner=holder, generation=streams.c.generation + 1, updated_ms=now_ms())
            .returning(*STREAMS.columns)
        )
        async with self._database.write() as connection:
            row = (await connection.execute(statement)).one_or_none()
            return None if row is None else STREAMS.read(row)

    async def orphans(self, *, limit: int = 100) -> list[StoredStream]:
        return [STREAMS.read(row) for row in await self._database.rows(ORPHANS, {"limit": limit})]

    async def prune(self) -> int:
        async with self._database.write() as connection:
            statement = delete(streams).where(streams.c.expires_ms <= now_ms()).returning(streams.c.id)
            gone = (await connection.execute(statement)).scalars().all()
            await connection.execute(delete(stream_events).where(among(stream_events.c.stream_id, gone)))
            # A key that stands for a job outlives that job's stream.
            forgotten = among(idempotency_table.c.stream_id, gone) & (idempotency_table.c.job_id == "")
            await connection.execute(delete(idempotency_table).where(forgotten))
            return len(gone)


async def insert_stream(connection: AsyncConnection, stream: StoredStream) -> StoredStream:
    """Store a new stream, and give it as it is stored."""
    values = STREAMS.values(stream) | {"created_ms": now_ms(), "updated_ms": now_ms()}
    return STREAMS.read((await connection.execute(streams.insert().values(values).returning(*STREAMS.columns))).one())


async def _get(connection: AsyncConnection, stream_id: str) -> StoredStream | None:
    row = (await connection.execute(GET, {"which": stream_id})).one_or_none()
    return None if row is None else STREAMS.read(row)


async def _drop_oldest(connection: AsyncConnection, stream_id: str, surplus: int) -> None:
    """Drop events from the front until `surplus` bytes are gone."""
    query = select(stream_events.c.seq, func.length(stream_events.c.data)).where(stream_events.c.stream_id == stream_id)
    dropped = last = 0
    for seq, size in await connection.execute(query.order_by(stream_events.c.seq)):
        dropped, last = dropped + size, seq
        if dropped >= surplus:
            break
    await connection.execute(
        delete(stream_events).where(stream_events.c.stream_id == stream_id, stream_events.c.seq <= last)
    )
    await connection.execute(
        update(streams).where(streams.c.id == stream_id).values(first_seq=last + 1, bytes=streams.c.bytes - dropped)
    )
