"""DBOS in a thread of its own: remembers which jobs are under way, and which steps of them are done.

A job is a workflow of three steps (submit, wait, store) under the job's id. DBOS has its own loop here, so that its
import (two seconds) and its checkpoints never hold up the server; the steps themselves run on the server's loop.
"""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Coroutine
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from pathlib import Path
from sqlite3 import sqlite_version_info
from typing import TYPE_CHECKING, Any, TypeVar

from trunkline.jobs.tools import STEPS, Step

if TYPE_CHECKING:
    from sqlalchemy import Engine

APPLICATION_VERSION = "1"
"""Constant: by default DBOS hashes our code, and every upgrade would strand the running jobs."""

POLL_S = 0.5
QUEUE = "jobs-"
"""A queue for each replica: what it takes over is begun there and nowhere else."""
KEPT_AFTER_END_S = 3600
T = TypeVar("T")


class Durable:
    """Keeps workflows going on SQLite (a path) or PostgreSQL (a URL)."""

    def __init__(self, database: Path | str, replica: str, step: Step) -> None:
        """`replica` names this process among its peers."""
        self._database = database
        self._replica = replica
        self._queue = QUEUE + replica
        self._step = step
        self._server = asyncio.get_running_loop()
        self._loop = asyncio.new_event_loop()
        self._stop = asyncio.Event()
        self._ready: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="dbos", daemon=True)

    async def start(self) -> None:
        """Import and launch DBOS; raises what it raises."""
        self._thread.start()
        await asyncio.shield(asyncio.wrap_future(self._ready))

    async def stop(self) -> None:
        """End the thread; steps under way are left to whoever claims their jobs."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._stop.set)
        await asyncio.to_thread(self._thread.join, 5.0)

    async def ensure(self, job_id: str) -> None:
        """See to it that the job's workflow runs here: begun, or taken over from whoever had it."""
        await self._there(self._ensure(job_id))

    async def prune(self, living: Collection[str]) -> int:
        """Forget workflows that ended more than an hour ago (at most 1,000 at a time), and queues of the dead."""
        return await self._there(self._prune({QUEUE + replica for replica in living}))

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve())
        except Exception as error:  # told to whoever started us
            if not self._ready.done():
                self._ready.set_exception(error)
            else:
                logging.getLogger(__name__).exception("the durable engine stopped")

    async def _serve(self) -> None:
        from dbos import DBOS, DBOSConfig  # noqa: PLC0415 - two seconds, spent in this thread

        logger = logging.getLogger("dbos")
        logger.handlers.clear()
        logger.propagate = True
        config: DBOSConfig = {
            "name": "trunkline",
            "application_version": APPLICATION_VERSION,
            "executor_id": self._replica,
            "console_log_level": "ERROR",
            "log_level": "ERROR",
            "enable_otlp": False,
        }
        if isinstance(self._database, Path):
            config["system_database_url"] = f"sqlite:///{self._database}"
            config["system_database_engine"] = wal_engine(self._database)
        else:
            config["system_database_url"] = self._database
        DBOS(config=config)
        steps = [DBOS.step(name=name)(self._hop(name)) for name in STEPS]

        async def job(job_id: str) -> None:
            for step in steps:
                if not await step(job_id):
                    return

        self._workflow = DBOS.workflow(name="job", max_recovery_attempts=None)(job)
        DBOS.listen_queues([self._queue])
        DBOS.launch()
        await DBOS.register_queue_async(self._queue, polling_interval_sec=POLL_S)
        self._ready.set_result(None)
        await self._stop.wait()
        DBOS.destroy()

    def _hop(self, name: str) -> Callable[[str], Coroutine[Any, Any, bool]]:
        async def step(job_id: str) -> bool:
            done = asyncio.run_coroutine_threadsafe(_awaited(self._step(name, job_id)), self._server)
            if (go_on := await asyncio.wrap_future(done)) is None:
                # Ended here, DBOS would book the job as done, and whoever claimed it could not resume it.
                await asyncio.get_running_loop().create_future()
            return bool(go_on)

        return step

    async def _ensure(self, job_id: str) -> None:
        from dbos import DBOS, SetWorkflowID  # noqa: PLC0415 - imported by now

        if await DBOS.get_workflow_status_async(job_id) is not None:
            await DBOS.resume_workflows_async([job_id], queue_name=self._queue)
            return
        with SetWorkflowID(job_id):
            await DBOS.start_workflow_async(self._workflow, job_id)

    async def _prune(self, living: Collection[str]) -> int:
        from dbos import DBOS  # noqa: PLC0415 - imported by now

        for queue in await DBOS.list_queues_async():
            if queue.name.startswith(QUEUE) and queue.name not in {*living, self._queue}:
                await DBOS.delete_queue_async(queue.name)
        before = datetime.now(UTC) - timedelta(seconds=KEPT_AFTER_END_S)
        ended = await DBOS.list_workflows_async(
            status=["SUCCESS", "ERROR", "CANCELLED"],
            completed_before=before.isoformat(),
            limit=1000,
            load_input=False,
            load_output=False,
        )
        if ended:
            await DBOS.delete_workflows_async([workflow.workflow_id for workflow in ended])
        return len(ended)


async def _awaited(work: Awaitable[T]) -> T:
    return await work


def wal_engine(path: Path) -> "Engine":
    """Open SQLite as DBOS needs it, but with a write-ahead log: 13 ms a job in place of 94."""
    from sqlalchemy import create_engine, event  # noqa: PLC0415 - with DBOS

    engine = create_engine(f"sqlite:///{path}")

    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = "IMMEDIATE"
        for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "busy_timeout=30000", "foreign_keys=ON"):
            connection.execute(f"PRAGMA {pragma}")
        if sqlite_version_info < (3, 42):  # DBOS on Python 3.12 and later uses what 3.42 brought, in its defaults too
            connection.create_function("unixepoch", 1, lambda _: time.time_ns() / 1e9)

    event.listen(engine, "connect", connected)
    return engine
