"""Processes that run the durable engine, and what can be seen of them from outside."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from job_tools import Rig, opened

from trunkline.core.events import Progress
from trunkline.core.jobs import Finish, Job, JobState, Partial

WORKER = Path(__file__).parent / "job_worker.py"


class Worker:
    """A process of `job_worker.py`."""

    def __init__(
        self, data_dir: Path, database: str = "sqlite", replica: str = "a", submits: int = 64, *, late: bool = False
    ) -> None:
        command = [sys.executable, str(WORKER), str(data_dir), database, replica, str(submits)]
        command += ["late"] if late else []
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    async def said(self, word: str) -> None:
        assert self.process.stdout is not None
        assert (await asyncio.to_thread(self.process.stdout.readline)).strip() == word

    async def start(self, job_id: str, url: str, script: dict[str, Any], **changes: Any) -> None:
        assert self.process.stdin is not None
        line = json.dumps({"id": job_id, "url": url, "script": script, **changes})
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        await self.said("started")

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.process.pid, how)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def worker(*args: Any, **kwargs: Any) -> Iterator[Worker]:
    process = Worker(*args, **kwargs)
    try:
        yield process
    finally:
        process.end()


@asynccontextmanager
async def observer(data_dir: Path, database: str = "sqlite") -> AsyncIterator[Rig]:
    """Looks at the same database from outside."""
    async with opened(data_dir / "t.db" if database == "sqlite" else database) as opened_database:
        rig = Rig(opened_database, data_dir)
        yield rig
        await rig.client.aclose()


async def reached(rig: Rig, job_id: str, *states: JobState) -> Job:
    async with asyncio.timeout(120):
        while (job := await rig.jobs.get(job_id)) is None or job.state not in states:  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.02)
        return job


def booked(data_dir: Path) -> list[str]:
    return (data_dir / "settled").read_text().splitlines()


def blobs(data_dir: Path) -> list[str]:
    return sorted(path.name for path in (data_dir / "media").glob("??/*"))


async def follow(rig: Rig, job_id: str, after: int = 0) -> list[tuple[int, Progress | Partial | Finish]]:
    """A client of another process, which never crashes."""
    async with asyncio.timeout(120):
        return [event async for event in rig.engine("observer").events_from(job_id, after)]
