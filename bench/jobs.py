"""Many durable jobs at once in one process on SQLite: `uv run python bench/jobs.py [JOBS]` prints what they cost.

A provider in a process of its own takes 20 polls a job; the engine runs as it does in the server, DBOS and all.
"""

import asyncio
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SUPPORT = Path(__file__).parent.parent / "tests" / "support"
sys.path.insert(0, str(SUPPORT))

from job_tools import Rig, a_job, opened  # noqa: E402 - the tests' parts

from trunkline.jobs.durable import Durable  # noqa: E402 - after the path
from trunkline.jobs.engine import JobEngine  # noqa: E402 - the same


def cpu_s() -> float:
    """CPU time of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def rss_mib() -> float:
    """Memory of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / (1 << 20)


async def lag(lags: list[float]) -> None:
    """How late the loop wakes: what a text stream beside the jobs would feel."""
    while True:
        due = time.perf_counter() + 0.01
        await asyncio.sleep(0.01)
        lags.append(time.perf_counter() - due)


async def main(count: int, url: str) -> None:
    """Set everything up and measure."""
    with tempfile.TemporaryDirectory() as directory:
        data_dir = Path(directory)
        async with opened(data_dir / "t.db") as database:
            print(f"before the engine: {rss_mib():.0f} MiB")
            rig = Rig(database, data_dir)
            engine = rig.engine("bench", lambda name, step: Durable(data_dir / "dbos.db", name, step))
            began = time.perf_counter()
            async with rig.serving(engine), asyncio.TaskGroup() as group:
                print(f"engine up after {time.perf_counter() - began:.1f} s: {rss_mib():.0f} MiB")
                await asyncio.sleep(2)
                used = cpu_s()
                await asyncio.sleep(5)
                print(f"idle: {(cpu_s() - used) / 5:.1%} of a core")
                lags: list[float] = []
                watch = group.create_task(lag(lags))
                await running(engine, count, url)
                lags.sort()
                print(f"loop lag p99 {1000 * lags[int(len(lags) * 0.99)]:.0f} ms, worst {1000 * lags[-1]:.0f} ms")
                watch.cancel()
            await rig.client.aclose()


async def running(engine: JobEngine, count: int, url: str) -> None:
    """Start the jobs, watch them poll, wait for their films."""
    began, used = time.perf_counter(), cpu_s()
    for n in range(count):
        await engine.start(a_job(f"job_{n}", url, {"polls": 20, "headers": {"openai-poll-after-ms": "500"}}))
    print(f"{count} started: {(time.perf_counter() - began) / count * 1000:.1f} ms each")
    await asyncio.sleep(2)
    at, busy = time.perf_counter(), cpu_s()
    await asyncio.sleep(5)
    print(f"{count} polling twice a second: {(cpu_s() - busy) / (time.perf_counter() - at):.1%} of a core")
    ends = [await engine.finish(f"job_{n}") for n in range(count)]
    assert all(end.job.state == "completed" for end in ends)
    print(f"all done after {time.perf_counter() - began:.1f} s, {cpu_s() - used:.1f} s of CPU: {rss_mib():.0f} MiB")


if __name__ == "__main__":
    provider = subprocess.Popen([sys.executable, str(SUPPORT / "film_provider.py")], stdout=subprocess.PIPE, text=True)
    try:
        assert provider.stdout is not None
        asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, provider.stdout.readline().strip()))
    finally:
        provider.kill()
        provider.wait()
