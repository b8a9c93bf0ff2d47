"""Does a piece of work in processes that are killed, each at a later step, and says what is left when another came up.

`python dying.py WORK DIRECTORY PROVIDER STRIDE`. A step is what is asked of the database or done to the journal, before
it and behind it. Every process is a fork of this one, which has no thread; for each it prints a line of JSON.
"""

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from billing_process import NOW, PRICE, a_key, a_row, sums
from job_tools import FastClock, Rig, a_job, opened
from sqlalchemy import select, text
from sqlalchemy.util import greenlet_spawn

from trunkline.calls import life
from trunkline.calls.billing import Billing
from trunkline.calls.inbox import Inbox
from trunkline.calls.life import Life
from trunkline.core.jobs import Job
from trunkline.core.money import day_of
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql import engine, money
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.tables import jobs

KEY = a_key(total=10**6)
ROW = a_row(KEY, PRICE, id="call_1", job_id="job_1")
Work = Callable[[Path, str], Coroutine[Any, Any, Any]]


def die_after(steps: int) -> None:
    """Have this process killed when it has done so many steps."""
    left, spawn = steps, greenlet_spawn

    def step() -> None:
        nonlocal left
        left -= 1
        if left < 0:
            os.kill(os.getpid(), signal.SIGKILL)

    async def asked(*what: Any) -> Any:
        step()
        answer = await spawn(*what)
        step()
        return answer

    vars(engine)["greenlet_spawn"] = asked
    for name in ("write", "cut", "drop"):
        done = getattr(FileJournal, name)

        def counted(journal: FileJournal, *what: Any, done: Any = done) -> Any:
            step()
            answer = done(journal, *what)
            step()
            return answer

        setattr(FileJournal, name, counted)


async def billing_of(database: Database, folder: Path, name: str) -> Billing:
    ours = Life(SqlLeases(database), name)
    await ours.begin()
    return Billing(SqlMoney(database), ours, FileJournal(folder / "journal"), Inbox(SqlSignals(database)))


async def call(folder: Path, _provider: str) -> None:
    """Make a call, and leave."""
    async with opened(folder / "t.db") as database:
        billing = await billing_of(database, folder, "a")
        running = asyncio.ensure_future(billing.run())
        await asyncio.sleep(0)
        billing.settle(await billing.reserve(KEY, PRICE, NOW), ROW)
        await asyncio.sleep(0.01)
        (folder / "told").touch()
        await billing.flush()
        running.cancel()
        await asyncio.wait([running])


async def call_left(folder: Path, _provider: str) -> dict[str, Any]:
    async with opened(folder / "t.db") as database:
        await forget_leases(database)
        billing = await billing_of(database, folder, "b")
        await billing.sweep()
        return {"told": (folder / "told").exists(), "sums": await sums(database)}


async def job(folder: Path, _provider: str) -> None:
    """Set a job's money aside, and settle it."""
    async with opened(folder / "t.db") as database:
        store = SqlMoney(database)
        await store.reserve("res_1", KEY, day_of(NOW), PRICE, job_id="job_1")
        await store.settle("res_1", ROW)


async def job_left(folder: Path, _provider: str) -> dict[str, Any]:
    async with opened(folder / "t.db") as database:
        again = await SqlMoney(database).settle("res_1", ROW)
        billed = (await database.rows(select(jobs.c.billed)))[0][0]
        return {"again": again, "billed": billed, "sums": await sums(database)}


async def film(folder: Path, provider: str) -> None:
    """Have a film made."""
    async with opened(folder / "t.db") as database:
        rig = Rig(database, folder, clock=FastClock())
        async with rig.serving(rig.engine("a")) as serving:
            await serving.start(a_job(f"job_{folder.name}", provider, {"polls": 1}))
            await serving.finish(f"job_{folder.name}")
        await rig.client.aclose()


async def film_left(folder: Path, provider: str) -> dict[str, Any]:
    job_id = f"job_{folder.name}"
    async with opened(folder / "t.db") as database:
        await forget_leases(database)
        rig = Rig(database, folder, clock=FastClock())
        async with rig.serving(rig.engine("b")) as serving, asyncio.timeout(60):
            if await serving.get(job_id) is None:
                await serving.start(a_job(job_id, provider, {"polls": 1}))
            ended = (await serving.finish(job_id)).job
        await rig.client.aclose()
        files = len([*(folder / "media").glob("??/*")])
        return {"state": ended.state, "files": files, "media": len(ended.result)}


async def forget_leases(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("UPDATE leases SET until_ms = 1"))


async def with_job(path: Path) -> None:
    async with opened(path) as database:
        await SqlJobs(database).add(Job(id="job_1", kind="video", state="completed"))


WORKS: dict[str, tuple[Work, Work]] = {"call": (call, call_left), "job": (job, job_left), "film": (film, film_left)}


def main(name: str, place: str, provider: str, stride: int) -> None:
    work, left = WORKS[name]
    life.TTL_S, money.STALLED_MS = 60.0, 0  # on a machine that stalls too, and the dead do not only stall
    template = Path(place) / "new"
    template.mkdir()
    asyncio.run(with_job(template / "t.db"))
    killed, steps = True, 0
    while killed:
        folder = Path(place) / str(steps)
        shutil.copytree(template, folder)
        if not (child := os.fork()):
            die_after(steps)
            asyncio.run(work(folder, provider))
            os._exit(0)
        killed = os.WIFSIGNALED(os.waitpid(child, 0)[1])
        sys.stdout.write(json.dumps({"steps": steps, "killed": killed} | asyncio.run(left(folder, provider))) + "\n")
        sys.stdout.flush()
        steps += stride


main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
