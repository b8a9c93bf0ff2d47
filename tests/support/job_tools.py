"""An engine with everything real but the provider: SQLite, media store, HTTP client."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
from film_dialect import FILMS, KEYED
from msgspec import Raw
from msgspec.structs import replace

from trunkline.calls.life import Life
from trunkline.calls.media_intake import MediaIntake, MediaLimits
from trunkline.core.binding import bind
from trunkline.core.chat import Target
from trunkline.core.jobs import Job, Outcome
from trunkline.core.media import MediaRequest
from trunkline.core.provider import Provider
from trunkline.core.secret import Secret
from trunkline.jobs.engine import JobEngine, Stores
from trunkline.jobs.tools import Clock, Limits, RealClock, Step, Tools, Workflows
from trunkline.storage.media.store import FileMediaStore, media_store
from trunkline.storage.shared.event_log import StoredLog
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.leases import SqlLeases
from trunkline.storage.sql.media import SqlMediaIndex
from trunkline.storage.sql.migrate import upgrade
from trunkline.storage.sql.streams import SqlStreams
from trunkline.upstream.client import Client
from trunkline.upstream.media_door import MediaDoor


class InProcess:
    """In place of DBOS where a process does not die: runs the steps in turn."""

    def __init__(self, step: Step) -> None:
        self.step = step
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Nothing to launch."""

    async def stop(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        await asyncio.gather(*self.tasks.values(), return_exceptions=True)

    async def ensure(self, job_id: str) -> None:
        self.tasks[job_id] = asyncio.get_running_loop().create_task(self._run(job_id))

    async def prune(self, living: Collection[str]) -> int:
        return len(living)

    async def _run(self, job_id: str) -> None:
        for name in ("submit", "wait", "store"):
            if not await self.step(name, job_id):
                return


class FastClock(RealClock):
    """Sleeps a thousandth of the time, but counts all of it; it may be set."""

    def __init__(self) -> None:
        self.slept: list[float] = []
        self.ahead_s = 0.0
        self.set_s = 0.0

    def now_ms(self) -> int:
        return super().now_ms() + int((self.ahead_s + self.set_s) * 1000)

    def steady_s(self) -> float:
        return super().steady_s() + self.ahead_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(seconds / 1000)
        self.ahead_s += seconds * 0.999


class Rig:
    """An engine and all its parts."""

    def __init__(self, database: Database, data_dir: Path, **changes: Any) -> None:
        self.settled: list[tuple[str, Outcome]] = []
        self.database = database
        self.data_dir = data_dir
        self.store: FileMediaStore = media_store(data_dir, "")
        self.index = SqlMediaIndex(database)
        self.jobs = SqlJobs(database)
        self.streams = SqlStreams(database)
        self.leases = SqlLeases(database)
        self.clock: Clock = changes.pop("clock", RealClock())
        self.client = Client()
        provider = Provider(api_key=(Secret("key", "cred"),))
        self.upstream = MediaDoor(self.client, {"home": provider}, {}, allow_private=True)
        limits = MediaLimits(patience_s=changes.pop("patience_s", 1.8))
        self.intake = MediaIntake(self.store, self.index, self.upstream, limits)
        settings = Limits(**changes)
        self.tools = Tools(
            jobs=self.jobs,
            log=StoredLog(self.streams, max_bytes=1 << 20, ttl_s=3600),
            upstream=self.upstream,
            intake=self.intake,
            dialects={dialect.name: dialect for dialect in (FILMS, KEYED)},
            settle=self.settle,
            submits=asyncio.Semaphore(settings.submits),
            limits=settings,
            clock=self.clock,
        )

    @property
    def path(self) -> Path:
        return self.data_dir / "t.db"

    def limited(self, **changes: Any) -> Tools:
        """The same tools with other limits."""
        limits = Limits(**changes)
        return replace(self.tools, limits=limits, submits=asyncio.Semaphore(limits.submits))

    async def settle(self, job: Job, outcome: Outcome) -> int | None:
        self.settled.append((job.id, outcome))
        return 1234

    def engine(self, replica: str = "a", durable: Callable[[str, Step], Workflows] | None = None) -> JobEngine:
        stores = Stores(self.leases, self.streams, self.index)
        self.life = Life(self.leases, replica)
        return JobEngine(replica, self.life, self.tools, stores, durable or (lambda _, step: InProcess(step)))

    @asynccontextmanager
    async def serving(self, engine: JobEngine) -> AsyncIterator[JobEngine]:
        """The engine at work, ready to take jobs."""
        await self.life.begin()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(work) for work in (self.life.run(), engine.serve())]
            await engine.up.wait()
            yield engine
            for task in tasks:
                task.cancel()
        await self.life.end()


def a_job(job_id: str, base_url: str, script: dict[str, Any], *, dialect: str = "films", **changes: Any) -> Job:
    """A job whose prompt is the provider's script."""
    n, per_submit = changes.pop("n", 1), changes.pop("per_submit", 1)
    kind: Literal["image", "video"] = "image" if script.get("inline") else "video"
    request = MediaRequest(kind=kind, prompt=json.dumps(script), model="m", n=n, **changes.pop("request", {}))
    target = Target(provider="home", model="m", base_url=base_url, dialect=dialect)
    values = {
        "id": job_id,
        "kind": kind,
        "key_id": "key_1",
        "model": "film",
        "route": "/v1/videos",
        "stream_id": f"str_{job_id}",
        "provider": "home",
        "upstream_model": "m",
        "credential_id": "cred",
        "request": Raw(msgspec.json.encode(request)),
        "binding": bind(target, n, per_submit),
    }
    return Job(**(values | changes))


@asynccontextmanager
async def opened(url: str | Path) -> AsyncIterator[Database]:
    database = Database.at(url)
    await upgrade(database)
    try:
        yield database
    finally:
        await database.close()


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of this version's schema, to be copied: migrating takes longer than most tests."""

    async def migrate(path: Path) -> None:
        async with opened(path):
            pass

    path = tmp_path_factory.mktemp("schema") / "t.db"
    asyncio.run(migrate(path))
    return path
