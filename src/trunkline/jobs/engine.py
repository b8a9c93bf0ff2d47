"""The durable engine: starts jobs, keeps them going through the crash of any process, tells how far they are."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from functools import partial

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from trunkline.calls.life import Life
from trunkline.core.binding import decode
from trunkline.core.errors import KINDS, GatewayError, UpstreamError
from trunkline.core.events import Progress
from trunkline.core.jobs import FINISHED, Finish, Idempotency, Job, Partial
from trunkline.core.state import Leases, MediaIndex, StaleOwnerError, StorageError, StreamStore
from trunkline.jobs.record import Entry, Record, lasting
from trunkline.jobs.run import Run
from trunkline.jobs.tools import STEPS, Step, Tools, Workflows

TICK_S = 1.0
PRUNE_S = 600.0
AGAIN_S = 5.0
EARLY = 4
"""Jobs at a time that are begun before DBOS is up: it is for the first ones, not for a flood."""
PATIENCE_S = 60.0
"""How long who waits for a job waits for a database that is away."""

log = logging.getLogger(__name__)


class Stores(Struct, frozen=True):
    """Stored state that the engine uses beside the tools of its jobs."""

    leases: Leases
    streams: StreamStore
    media: MediaIndex


class JobEngine:
    """Jobs of this process and of its peers that died. `replica` is the name of the `life` under which it owns them."""

    def __init__(
        self, replica: str, life: Life, tools: Tools, stores: Stores, durable: Callable[[str, Step], Workflows]
    ) -> None:
        self._replica = replica
        self._life = life
        self._tools = tools
        self._stores = stores
        self._make_durable = durable
        self._durable: Workflows | None = None
        self._rising = False
        self._early: set[str] = set()
        self.up = asyncio.Event()
        """Set when jobs begin here at once."""
        self.elsewhere: Callable[[], Awaitable[None]] | None = None
        """Tells the process that runs the jobs of this one that there is a new one."""
        self._runs: dict[str, Run] = {}
        self._steps: dict[tuple[str, str], asyncio.Future[bool | None]] = {}
        self._due: set[str] = set()
        self._known: set[str] = set()
        """Jobs that are being stored, due, or under way here."""
        self._news = asyncio.Event()

    # What calls use.

    async def start(self, job: Job, idempotency: Idempotency | None = None) -> tuple[Job, bool]:
        """Store the job with its stream and begin it; or give the one that the idempotency key stands for (False).

        Before the engine is up, and in processes that run none, the job waits for whoever claims it.
        """
        owner = self._life.holder if self.up.is_set() else ""
        self._known.add(job.id)
        try:
            stored, new = await self._tools.jobs.add(replace(job, owner=owner), idempotency)
        except BaseException:
            self._known.discard(job.id)  # stored or not: `recover` will see
            raise
        if new and owner:
            self._due.add(job.id)
            self._news.set()
            return stored, new
        self._known.discard(job.id)
        if new and self.elsewhere is not None:
            await self.elsewhere()
        return stored, new

    async def get(self, job_id: str) -> Job | None:
        """Give one job, whoever asks: the caller compares `key_id`."""
        return await self._tools.jobs.get(job_id)

    async def cancel(self, job_id: str) -> Job | None:
        """Ask for the job to be stopped, wherever it runs; an ended one is given as it is. None: unknown."""
        job = await self._tools.jobs.cancel(job_id)
        if run := self._runs.get(job_id):
            run.cancel()
        return job

    async def events_from(self, job_id: str, after: int = 0) -> AsyncIterator[tuple[int, Progress | Partial | Finish]]:
        """Give what is said of a job after event `after`, numbered from 1, as it happens; always to the Finish.

        The numbers are the same for every reader, also after a crash. Raises GatewayError `stream_not_found`, and
        `stream_expired` when events after that number are no longer kept.
        """
        job = await self.get(job_id)
        if job is None:
            raise GatewayError("stream_not_found", f"There is no job {job_id}.")
        stream = await self._tools.log.get(job.stream_id) if job.stream_id else None
        if stream is None and job.stream_id and job.state in FINISHED:
            raise GatewayError("stream_expired", f"The events of job {job_id} are no longer kept.")
        if stream is not None:
            async for seq, data in self._tools.log.follow(stream.id, min(after, stream.last_seq)):
                entry = msgspec.json.decode(data, type=Entry)
                if entry.partial is not None:
                    yield seq, Partial(entry.partial, entry.number)
                else:
                    yield seq, Progress(entry.percent, entry.text)
            stream = await self._tools.log.get(stream.id)
        finish = await self.finish(job_id)
        yield (stream.last_seq if stream else 0) + 1, finish

    async def finish(self, job_id: str) -> Finish:
        """Wait for a job's end. Raises GatewayError `not_found`."""
        pause_s, away_until = 0.02, 0.0
        while True:
            try:
                job = await self.get(job_id)
            except StorageError:
                if time.monotonic() > away_until:
                    raise
                await asyncio.sleep(TICK_S)
                continue
            away_until = time.monotonic() + PATIENCE_S
            if job is None:
                raise GatewayError("not_found", f"There is no job {job_id}.")
            if job.state in FINISHED:
                break
            await asyncio.sleep(pause_s)
            pause_s = min(1.3 * pause_s, 0.5)
        return await self.ended(job)

    async def ended(self, job: Job) -> Finish:
        """Give what came of a job that has ended."""
        if job.state != "completed":
            return Finish(job, error=failure(job))
        records = {record.id: record for record in await self._stores.media.of_job(job.id)}
        media = tuple(records[media_id] for media_id in job.result if media_id in records)
        covers = {film.id: records[film.cover_id] for film in media if film.cover_id in records}
        return Finish(job, media, covers)

    async def prune(self) -> None:
        """Forget jobs and streams whose time is over, and DBOS's own rows of ended work."""
        await self._tools.jobs.prune()
        await self._stores.streams.prune()
        if self._durable is not None:
            await self._durable.prune({lease.name for lease in await self._stores.leases.alive()})

    def open_jobs(self) -> dict[str, int]:
        """Count the jobs of this process: running, and waiting to begin."""
        return {"running": len(self._runs), "waiting": len(self._due)}

    # What keeps them going.

    async def serve(self) -> None:
        """Run until cancelled, in a life that has begun; then the jobs are let go of, for whoever comes first."""
        try:
            self.up.set()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._watch())
                group.create_task(self._begin(group))
        finally:
            self.up.clear()
            for run in list(self._runs.values()):
                run.drop()
            with suppress(StorageError):
                await self._tools.jobs.give_up(self._life.holder)
            if self._durable is not None:
                await self._durable.stop()

    async def _watch(self) -> None:
        pruned_s = -PRUNE_S
        loop = asyncio.get_running_loop()
        while True:
            try:
                await self.recover()
                if loop.time() - pruned_s > PRUNE_S:
                    await self.prune()
                    pruned_s = loop.time()
            except StorageError as error:
                log.warning("jobs wait for the database: %s", error)
            await asyncio.sleep(TICK_S)

    async def recover(self) -> None:
        """Take over from the dead (our own former lives among them), stop what is to be cancelled."""
        known = {*self._known}
        seen = await self._tools.jobs.look(self._life.holder)
        for job in await self._tools.jobs.claim(self._life.holder) if seen.orphaned else ():
            run = self._runs.get(job.id)
            if run is not None and run.generation == job.generation - 1:
                run.generation = job.generation  # nobody had it in between
                continue
            log.warning("job %s is taken over in state %s", job.id, job.state)
            if run is not None:
                run.drop()
            self._due.add(job.id)
        self._mind(seen.owned, known)
        if self._due or (self._durable is None and seen.some):
            self._news.set()  # without a job of our own, too: who may have to take one over soon is up by then

    def _mind(self, owned: dict[str, bool], known: set[str]) -> None:
        """Stop what is to be stopped; take up what is ours though we were not told: the answer was lost on its way."""
        for job_id, cancel in owned.items():
            run = self._runs.get(job_id)
            if run is not None and cancel and not run.cancelling:
                run.cancel()
            if job_id not in known | self._known | self._due:
                log.warning("job %s is begun late", job_id)
                self._due.add(job_id)

    async def _begin(self, group: asyncio.TaskGroup) -> None:
        """Begin what is due, when something is. The first jobs do not wait for DBOS, which takes seconds to come up."""
        while True:
            await self._news.wait()
            self._news.clear()
            if not self._rising:
                self._rising = True
                group.create_task(self._bring_up())
            busy = {job_id for job_id, _ in self._steps}
            for job_id in self._due - busy:
                if self._durable is None and len(self._early) >= EARLY:
                    break
                self._due.discard(job_id)
                self._known.add(job_id)
                if self._durable is None:
                    self._early.add(job_id)
                    group.create_task(self._go_through(job_id))
                else:
                    await self._ensure(job_id, self._durable)

    async def _bring_up(self) -> None:
        """Start the durable engine, at the first job: its two seconds and 75 MB are not for who only chats."""
        while self._durable is None:
            durable = self._make_durable(self._replica, self._step)
            try:
                await durable.start()
            except Exception:
                await durable.stop()
                log.exception("the durable engine cannot be started; it will be tried again")
                await asyncio.sleep(AGAIN_S)
            except BaseException:
                await durable.stop()
                raise
            else:
                self._durable = durable
                self._news.set()

    async def _go_through(self, job_id: str) -> None:
        """Run a job without DBOS; should this process die, who claims the job begins it there."""
        try:
            for name in STEPS:
                if not await self._step(name, job_id):
                    return
        except Exception:
            log.exception("job %s broke", job_id)
        finally:
            self._early.discard(job_id)

    async def _ensure(self, job_id: str, durable: Workflows) -> None:
        try:
            await durable.ensure(job_id)
        except Exception:
            self._due.add(job_id)
            log.exception("job %s could not be begun; it will be tried again", job_id)

    async def _step(self, name: str, job_id: str) -> bool | None:
        """Run a step, once at a time however often it is asked for. None: the job is not ours."""
        key = (job_id, name)
        if known := self._steps.get(key):
            return await asyncio.shield(known)
        doing = self._steps[key] = asyncio.get_running_loop().create_future()
        result = None
        try:
            result = await self._own_step(name, job_id)
        finally:
            doing.set_result(result)
            del self._steps[key]
            if not result:
                self._runs.pop(job_id, None)
                self._known.discard(job_id)
        return result

    async def _own_step(self, name: str, job_id: str) -> bool | None:
        run = self._runs.get(job_id)
        if run is None:
            job = await lasting(self._tools, partial(self._tools.jobs.get, job_id))
            if job is None or job.state in FINISHED:
                return False
            if job.owner != self._life.holder:
                return None
            dialect = decode(job.binding).target.dialect
            if dialect not in self._tools.dialects:
                await Record(job, self._tools).end(
                    "failed", "internal_error", f"There is no dialect {dialect} any more."
                )
                return False
            run = self._runs[job_id] = Run(job, self._tools.of(job))
        try:
            return await run.step(name)
        except StaleOwnerError:
            log.warning("job %s was claimed by another process", job_id)
            return None
        except asyncio.CancelledError:
            if run.dropped:
                return None
            raise


def failure(job: Job) -> UpstreamError:
    """Say why a job did not complete, in the provider's words where there are any."""
    for part in decode(job.binding).parts:
        if part.error is not None and part.error.code == job.error_code:
            return part.error
    kind = KINDS.get(job.error_code, KINDS["upstream_error"])
    return UpstreamError(job.error_code or "upstream_error", job.error_message, kind.status, kind.type)
