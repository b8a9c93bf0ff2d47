"""A process with nothing but DBOS: `python durable_life.py FILE REPLICA LIVING COUNT [KEPT_S]`.

Runs COUNT workflows of empty steps, prunes while LIVING (comma-separated) live, and says as JSON what it saw.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from trunkline.jobs import durable
from trunkline.jobs.durable import Durable

OPEN = ["PENDING", "ENQUEUED"]


async def main(file: str, replica: str, living: str, count: int) -> None:
    done: list[str] = []

    async def step(name: str, job_id: str) -> bool:
        done.append(f"{job_id} {name}")
        return True

    began = time.monotonic()
    workflows = Durable(Path(file), replica, step)
    await workflows.start()
    up_s = time.monotonic() - began
    for n in range(count):
        await workflows.ensure(f"{replica}-{n}")
    from dbos import DBOS  # noqa: PLC0415 - launched by now

    async def still_open() -> int:
        return len(await asyncio.to_thread(DBOS.list_workflows, status=OPEN))

    while len(done) < 3 * count or await still_open() > 0:  # noqa: ASYNC110 - DBOS tells nobody
        await asyncio.sleep(0.2)
    pruned = await workflows.prune(living.split(","))
    queues = [queue.name for queue in await asyncio.to_thread(DBOS.list_queues)]
    left = len(await asyncio.to_thread(DBOS.list_workflows))
    await workflows.stop()
    print(json.dumps({"up_s": up_s, "done": done, "pruned": pruned, "queues": sorted(queues), "left": left}))


if __name__ == "__main__":
    durable.KEPT_AFTER_END_S = int(sys.argv[5]) if len(sys.argv) > 5 else durable.KEPT_AFTER_END_S
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))
