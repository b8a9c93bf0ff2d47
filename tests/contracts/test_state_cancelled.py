"""Work on a database that is cancelled at any moment: it is done or undone, and nobody is locked out by it."""

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from typing import Any

import pytest
from sqlalchemy import text

from trunkline.core.jobs import Job, JobChanges, StoredStream
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.streams import SqlStreams


@pytest.fixture(autouse=True)
def no_garbage_collection() -> Iterator[None]:
    """What is cancelled lets go of what it held by itself."""
    gc.disable()
    yield
    gc.enable()


async def cancelled(doing: Coroutine[Any, Any, object], turns: int) -> None:
    """Cancel it after a while; nothing else comes of that than what it is there for."""
    work = asyncio.ensure_future(doing)
    for _ in range(turns):
        await asyncio.sleep(turns % 3 / 5000)
    work.cancel()
    await asyncio.wait([work])
    assert work.cancelled() or work.exception() is None


async def test_whoever_leaves_in_a_write_locks_nobody_out(database: Database) -> None:
    streams = SqlStreams(database)
    for turns in range(30):
        await cancelled(streams.open(StoredStream(id=f"left_{turns}")), turns)
        await streams.open(StoredStream(id=f"stayed_{turns}"))


async def test_whoever_leaves_in_a_write_that_goes_to_the_disk_is_no_failure(database: Database) -> None:
    jobs = SqlJobs(database)
    for turns in range(30):
        job, _ = await jobs.add(Job(id=f"job_{turns}", owner="me", kind="image"))
        submit = jobs.change(job.id, job.generation, JobChanges(state="submitting"), durable=True)
        await cancelled(submit, turns)
        await jobs.change(job.id, job.generation, JobChanges(progress=1.0))
    if database.sqlite:
        async with database.write() as connection:
            assert (await connection.execute(text("PRAGMA synchronous"))).scalar_one() == 1  # NORMAL
