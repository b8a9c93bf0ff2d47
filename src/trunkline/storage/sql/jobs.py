"""Jobs on SQL: the port `core.state.JobStore`."""

from collections.abc import Sequence
from typing import Literal

from msgspec import UNSET
from sqlalchemy import bindparam, delete, func, or_, select, update

from trunkline.core.jobs import FINISHED, NEXT, UNFINISHED, Idempotency, Job, JobChanges, StoredStream, Unfinished
from trunkline.core.state import StaleOwnerError
from trunkline.storage.sql.database import Database, among, now_ms
from trunkline.storage.sql.engine import AsyncConnection
from trunkline.storage.sql.idempotency import recall, remember
from trunkline.storage.sql.leases import living
from trunkline.storage.sql.records import Records, paged
from trunkline.storage.sql.streams import insert_stream
from trunkline.storage.sql.tables import idempotency as idempotency_table
from trunkline.storage.sql.tables import jobs

JOBS = Records(jobs, Job, json=("request", "answer", "binding", "price", "result"))
CALLBACK_PUT_OFF_MS = 60_000
GET = select(*JOBS.columns).where(jobs.c.id == bindparam("which"))
LOOK = select(jobs.c.id, jobs.c.owner, jobs.c.cancel_requested).where(
    jobs.c.state.in_(UNFINISHED), or_(jobs.c.owner == bindparam("holder"), jobs.c.owner.not_in(living()))
)
SOME = select(jobs.c.id).where(jobs.c.state.in_(UNFINISHED)).limit(1)
COUNT = select(jobs.c.state, func.count()).where(jobs.c.state.in_(UNFINISHED)).group_by(jobs.c.state)
REPEATED = (
    select(*JOBS.columns)
    .where(jobs.c.body_hash == bindparam("body_hash"), jobs.c.key_id == bindparam("key_id"))
    .where(jobs.c.route == bindparam("route"), jobs.c.created_ms >= bindparam("since_ms"))
    .order_by(jobs.c.created_ms.desc())
    .limit(1)
)
USUAL = (
    select(jobs.c.finished_ms - jobs.c.submitting_ms)
    .where(jobs.c.provider == bindparam("provider"), jobs.c.upstream_model == bindparam("upstream_model"))
    .where(jobs.c.state == "completed", jobs.c.submitting_ms.is_not(None))
    .order_by(jobs.c.finished_ms.desc())
    .limit(bindparam("limit"))
)
DUE = select(jobs.c.id).where(jobs.c.callback_due_ms <= now_ms()).limit(1)
BEGAN = {"submitting": "submitting_ms", "running": "running_ms", "storing": "storing_ms"} | dict.fromkeys(
    FINISHED, "finished_ms"
)


class SqlJobs:
    """See `core.state.JobStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, job: Job, idempotency: Idempotency | None = None) -> tuple[Job, bool]:
        async with self._database.write() as connection:
            if idempotency is not None:
                known = await remember(connection, idempotency)
                if known is not None and (former := await _get(connection, known.job_id)) is not None:
                    return former, False
            now = now_ms()
            values = JOBS.values(job) | {"created_ms": now, "updated_ms": now}
            row = (await connection.execute(jobs.insert().values(values).returning(*JOBS.columns))).one()
            if job.stream_id:
                await insert_stream(connection, stream_of(job))
            return JOBS.read(row), True

    async def joined(self, idempotency: Idempotency) -> Job | None:
        async with self._database.read() as connection:
            known = await recall(connection, idempotency)
            return None if known is None else await _get(connection, known.job_id)

    async def get(self, job_id: str) -> Job | None:
        row = await self._database.first(GET, {"which": job_id})
        return None if row is None else JOBS.read(row)

    async def page(  # noqa: PLR0913 - the filters of the API
        self,
        *,
        key_id: str | None = None,
        kind: str | None = None,
        states: Sequence[str] = (),
        after: str = "",
        limit: int = 20,
        ascending: bool = False,
    ) -> list[Job]:
        query = select(*JOBS.columns).limit(limit)
        if key_id is not None:
            query = query.where(jobs.c.key_id == key_id)
        if kind is not None:
            query = query.where(jobs.c.kind == kind)
        if states:
            query = query.where(jobs.c.state.in_(states))
        query = paged(query, jobs, after, ascending=ascending)
        return [JOBS.read(row) for row in await self._database.rows(query)]

    async def change(self, job_id: str, generation: int, changes: JobChanges, *, durable: bool = False) -> Job:
        values = JOBS.values(changes) | {"updated_ms": now_ms()}
        statement = update(jobs).where(jobs.c.id == job_id, jobs.c.generation == generation)
        if changes.state is not UNSET:
            before = [state for state, following in NEXT.items() if changes.state in following]
            statement = statement.where(jobs.c.state.in_(before))
            if changes.state in BEGAN:
                values[BEGAN[changes.state]] = now_ms()
        async with self._database.write(durable=durable) as connection:
            row = (await connection.execute(statement.values(values).returning(*JOBS.columns))).one_or_none()
            if row is not None:
                return JOBS.read(row)
            job = await _get(connection, job_id)
        if job is None or job.generation != generation:
            raise StaleOwnerError(job_id)
        if job.state == changes.state:
            return job  # written before; only the answer was lost
        raise ValueError(f"a job that is {job.state} cannot become {changes.state}")

    async def cancel(self, job_id: str) -> Job | None:
        async with self._database.write() as connection:
            await connection.execute(
                update(jobs)
                .where(jobs.c.id == job_id, jobs.c.state.in_(UNFINISHED))
                .values(cancel_requested=True, updated_ms=now_ms())
            )
            return await _get(connection, job_id)

    async def delete(self, job_id: str) -> bool:
        async with self._database.write() as connection:
            await connection.execute(delete(idempotency_table).where(idempotency_table.c.job_id == job_id))
            statement = delete(jobs).where(jobs.c.id == job_id, jobs.c.state.in_(FINISHED))
            return (await connection.execute(statement)).rowcount > 0

    async def claim(self, holder: str, *, limit: int = 100) -> list[Job]:
        orphans = (
            select(jobs.c.id)
            .where(jobs.c.state.in_(UNFINISHED), jobs.c.owner.not_in(living()))
            .order_by(jobs.c.created_ms)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        statement = (
            update(jobs)
            .where(jobs.c.id.in_(orphans))
            .values(owner=holder, generation=jobs.c.generation + 1, updated_ms=now_ms())
        )
        async with self._database.write() as connection:
            rows = await connection.execute(statement.returning(*JOBS.columns))
            return sorted(map(JOBS.read, rows), key=lambda job: (job.created_ms, job.id))

    async def look(self, holder: str) -> Unfinished:
        found = await self._database.rows(LOOK, {"holder": holder})
        owned = {str(row.id): bool(row.cancel_requested) for row in found if row.owner == holder}
        return Unfinished(owned, orphaned=len(owned) < len(found), some=bool(found or await self._database.rows(SOME)))

    async def give_up(self, holder: str) -> int:
        statement = update(jobs).where(jobs.c.owner == holder, jobs.c.state.in_(UNFINISHED)).values(owner="")
        async with self._database.write() as connection:
            return (await connection.execute(statement)).rowcount

    async def repeated(self, key_id: str, route: str, body_hash: str, since_ms: int) -> Job | None:
        which = {"key_id": key_id, "route": route, "body_hash": body_hash, "since_ms": since_ms}
        row = await self._database.first(REPEATED, which)
        return None if row is None else JOBS.read(row)

    async def usual_s(self, provider: str, upstream_model: str, *, limit: int = 20) -> float:
        which = {"provider": provider, "upstream_model": upstream_model, "limit": limit}
        taken_ms = sorted(row[0] for row in await self._database.rows(USUAL, which))
        return taken_ms[len(taken_ms) // 2] / 1000 if taken_ms else 0.0

    async def count(self) -> dict[str, int]:
        counts = {str(state): int(number) for state, number in await self._database.rows(COUNT)}
        return {state: counts.get(state, 0) for state in NEXT if state in UNFINISHED}

    async def due_callbacks(self, *, limit: int = 20) -> list[Job]:
        if not await self._database.rows(DUE):
            return []
        due = (
            select(jobs.c.id)
            .where(jobs.c.callback_due_ms <= now_ms())
            .order_by(jobs.c.callback_due_ms)
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        statement = update(jobs).where(jobs.c.id.in_(due)).values(callback_due_ms=now_ms() + CALLBACK_PUT_OFF_MS)
        async with self._database.write() as connection:
            rows = await connection.execute(statement.returning(*JOBS.columns))
            return [JOBS.read(row) for row in rows]

    async def called_back(
        self, job_id: str, state: Literal["pending", "sent", "failed"], retry_after_s: float | None = None
    ) -> None:
        due = None if retry_after_s is None else now_ms() + int(retry_after_s * 1000)
        statement = (
            update(jobs)
            .where(jobs.c.id == job_id)
            .values(callback_state=state, callback_due_ms=due, callback_attempts=jobs.c.callback_attempts + 1)
        )
        async with self._database.write() as connection:
            await connection.execute(statement)

    async def prune(self) -> int:
        async with self._database.write() as connection:
            await connection.execute(delete(idempotency_table).where(idempotency_table.c.expires_ms <= now_ms()))
            statement = delete(jobs).where(jobs.c.state.in_(FINISHED), jobs.c.expires_ms <= now_ms())
            gone = (await connection.execute(statement.returning(jobs.c.id))).scalars().all()
            await connection.execute(delete(idempotency_table).where(among(idempotency_table.c.job_id, gone)))
            return len(gone)


def stream_of(job: Job) -> StoredStream:
    """Give the stream that tells of a new job."""
    return StoredStream(
        id=job.stream_id, key_id=job.key_id, job_id=job.id, route=job.route, model=job.model, owner=job.owner
    )


async def _get(connection: AsyncConnection, job_id: str) -> Job | None:
    row = (await connection.execute(GET, {"which": job_id})).one_or_none()
    return None if row is None else JOBS.read(row)
