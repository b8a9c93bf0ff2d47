"""A process that runs the durable engine on DBOS, for tests that kill it.

`python job_worker.py DATA_DIR DATABASE REPLICA SUBMITS [late]`: says `up`, then starts what it reads, a line a job;
`late`: DBOS is up by then, and not only coming up.
"""

import asyncio
import json
import signal
import sys
from pathlib import Path

from job_tools import Rig, a_job, opened

from trunkline.core.jobs import Job, Outcome
from trunkline.jobs.durable import Durable


class WorkerRig(Rig):
    """Books into a file that outlives the process."""

    async def settle(self, job: Job, outcome: Outcome) -> int | None:
        with (self.data_dir / "settled").open("a") as book:
            book.write(f"{job.id} {outcome.state}\n")
        return await super().settle(job, outcome)


async def main(data_dir: Path, database: str, replica: str, submits: int, *, late: bool) -> None:
    where = data_dir / "t.db" if database == "sqlite" else database
    dbos = data_dir / "dbos.db" if database == "sqlite" else database
    async with opened(where) as opened_database:
        rig = WorkerRig(opened_database, data_dir, submits=submits)
        engine = rig.engine(replica, lambda name, step: Durable(dbos, name, step))
        lines: asyncio.StreamReader = asyncio.StreamReader()
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
        async with rig.serving(engine):
            while late and engine._durable is None:
                engine._news.set()
                await asyncio.sleep(0.05)
            say("up")
            while line := await lines.readline():
                asked = json.loads(line)
                await engine.start(a_job(asked.pop("id"), asked.pop("url"), asked.pop("script"), **asked))
                say("started")
            await asyncio.Event().wait()


def say(word: str) -> None:
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell may have it ignored
    data_dir, database, replica, submits, *late = sys.argv[1:]
    asyncio.run(main(Path(data_dir), database, replica, int(submits), late=bool(late)))
