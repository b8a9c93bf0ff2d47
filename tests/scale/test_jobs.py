"""Two replicas on one PostgreSQL: the living take over from the dead, and the undead write nothing."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from film_provider import FilmProvider
from job_processes import Worker, blobs, booked, follow, observer, reached, worker
from job_tools import Rig

from trunkline.core.jobs import Finish

pytestmark = pytest.mark.scale


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FilmProvider]:
    async with FilmProvider() as provider:
        yield provider


async def owned_anew(rig: Rig, job_id: str, generation: int) -> float:
    """Wait until the job has been claimed; gives when."""
    async with asyncio.timeout(120):
        while (job := await rig.jobs.get(job_id)) is None or job.generation == generation:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    return time.monotonic()


async def test_a_peer_takes_over_within_five_seconds(tmp_path: Path, postgres_url: str, provider: FilmProvider) -> None:
    async with observer(tmp_path, postgres_url) as rig:
        with worker(tmp_path, postgres_url, "a") as first, worker(tmp_path, postgres_url, "b") as second:
            await first.said("up")
            await second.said("up")
            await first.start("job_1", provider.url, {"polls": 8})
            await reached(rig, "job_1", "running")
            async with asyncio.TaskGroup() as group:
                stream = group.create_task(follow(rig, "job_1"))
                first.kill()
                polls, killed = provider.seen["GET /films/t1"], time.monotonic()
                async with asyncio.timeout(120):
                    while provider.seen["GET /films/t1"] == polls:  # noqa: ASYNC110 - seen from outside
                        await asyncio.sleep(0.02)
                print(f"polled by the peer {time.monotonic() - killed:.1f} s after the kill")
                job = await reached(rig, "job_1", "completed", "failed", "submit_unknown")
                events = await stream
    assert job.state == "completed"
    assert job.generation >= 2  # once more where the peer stalled for a lease
    assert provider.submits == ["job_1"]
    assert booked(tmp_path) == ["job_1 completed"]
    assert len(blobs(tmp_path)) == 2
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    assert isinstance(events[-1][1], Finish)


async def test_a_stopped_owner_that_wakes_up_changes_nothing(
    tmp_path: Path, postgres_url: str, provider: FilmProvider
) -> None:
    async with observer(tmp_path, postgres_url) as rig:
        with worker(tmp_path, postgres_url, "a") as first, worker(tmp_path, postgres_url, "b") as second:
            await first.said("up")
            await second.said("up")
            await first.start("job_1", provider.url, {"polls": 12, "poll_s": 0.3})
            await reached(rig, "job_1", "running")
            first.kill(signal.SIGSTOP)
            await owned_anew(rig, "job_1", 1)
            first.kill(signal.SIGCONT)
            job = await reached(rig, "job_1", "completed", "failed", "submit_unknown")
            await start_and_finish(first, rig, provider)
    assert job.state == "completed"
    assert job.generation >= 2  # once more where the peer stalled for a lease
    assert provider.submits == ["job_1", "job_2"]
    assert booked(tmp_path) == ["job_1 completed", "job_2 completed"]
    assert len(blobs(tmp_path)) == 2


async def start_and_finish(process: Worker, rig: Rig, provider: FilmProvider) -> None:
    """The woken process works on."""
    await process.start("job_2", provider.url, {"polls": 1})
    await reached(rig, "job_2", "completed")


async def test_a_peer_whose_submit_is_unknown_does_not_repeat_it(
    tmp_path: Path, postgres_url: str, provider: FilmProvider
) -> None:
    async with observer(tmp_path, postgres_url) as rig:
        with worker(tmp_path, postgres_url, "a") as first, worker(tmp_path, postgres_url, "b") as second:
            await first.said("up")
            await second.said("up")
            await first.start("job_1", provider.url, {"polls": 1, "submit_s": 30})
            async with asyncio.timeout(120):
                while not provider.submits:  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            first.kill(signal.SIGSTOP)
            await reached(rig, "job_1", "submit_unknown")
            first.kill(signal.SIGCONT)
            await start_and_finish(second, rig, provider)
    assert provider.submits == ["job_1", "job_2"]
    assert booked(tmp_path)[0] == "job_1 submit_unknown"
