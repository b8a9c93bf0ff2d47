"""Real processes, killed: one submit, one film, one booking, whatever dies when."""

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest
from film_provider import FilmProvider
from job_processes import blobs, booked, follow, observer, reached, worker

from trunkline.core.jobs import Finish, JobState

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    ("state", "script", "submits"),
    [
        ("queued", {"polls": 1}, 0),
        ("running", {"held": "polls"}, 64),
        ("storing", {"held": "file"}, 64),
    ],
)
async def test_a_killed_process_goes_on_where_it_was(
    tmp_path: Path, state: JobState, script: dict[str, Any], submits: int
) -> None:
    async with FilmProvider() as provider, observer(tmp_path) as rig:
        with worker(tmp_path, submits=submits) as first:
            await first.said("up")
            await first.start("job_1", provider.url, script)
            await reached(rig, "job_1", state)
            async with asyncio.TaskGroup() as group:
                stream = group.create_task(follow(rig, "job_1"))
                first.kill()
                provider.go.set()
                with worker(tmp_path) as second:
                    await second.said("up")
                    job = await reached(rig, "job_1", "completed", "failed", "submit_unknown")
                    events = await stream
        assert job.state == "completed"
        assert provider.submits == ["job_1"]
        assert booked(tmp_path) == ["job_1 completed"]
        assert len(blobs(tmp_path)) == 2  # the film and its cover
        assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
        assert isinstance(events[-1][1], Finish)


@pytest.mark.parametrize(("state", "script"), [("running", {"held": "polls"}), ("storing", {"held": "file"})])
async def test_a_workflow_goes_on_in_another_process_that_is_up(
    tmp_path: Path, state: JobState, script: dict[str, Any]
) -> None:
    async with FilmProvider() as provider, observer(tmp_path) as rig:
        with worker(tmp_path, late=True) as first, worker(tmp_path, replica="b", late=True) as second:
            await asyncio.gather(first.said("up"), second.said("up"))
            await first.start("job_1", provider.url, script)
            await reached(rig, "job_1", state)
            first.kill()
            provider.go.set()
            job = await reached(rig, "job_1", "completed", "failed", "submit_unknown")
        assert (job.state, job.owner.partition("#")[0]) == ("completed", "b")
        assert provider.submits == ["job_1"]
        assert booked(tmp_path) == ["job_1 completed"]


@pytest.mark.parametrize(("dialect", "state"), [("films", "submit_unknown"), ("films_keyed", "completed")])
async def test_a_kill_inside_the_submit(tmp_path: Path, dialect: str, state: JobState) -> None:
    """Not repeated, unless the provider knows the work again by its key."""
    async with FilmProvider() as provider, observer(tmp_path) as rig:
        with worker(tmp_path) as first:
            await first.said("up")
            script = {"polls": 1, "held": "submit", "keyed": True}
            await first.start("job_1", provider.url, script, dialect=dialect)
            async with asyncio.timeout(60):
                while not provider.submits:  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            first.kill()
            provider.go.set()
            with worker(tmp_path) as second:
                await second.said("up")
                job = await reached(rig, "job_1", "completed", "failed", "submit_unknown")
        assert job.state == state
        assert provider.submits == ["job_1"]
        assert booked(tmp_path) == [f"job_1 {state}"]
        assert provider.seen["POST /films"] == (1 if dialect == "films" else 2)


async def test_ended_processes_let_go_of_their_jobs_at_once(tmp_path: Path) -> None:
    async with FilmProvider() as provider, observer(tmp_path) as rig:
        with worker(tmp_path) as first:
            await first.said("up")
            await first.start("job_1", provider.url, {"held": "polls"})
            await reached(rig, "job_1", "running")
            first.kill(signal.SIGINT)
            await asyncio.to_thread(first.process.wait)
            job = await rig.jobs.get("job_1")
            assert job is not None
            assert job.owner == ""
            provider.go.set()
            with worker(tmp_path, replica="b") as second:
                await second.said("up")
                await reached(rig, "job_1", "completed")
        assert provider.submits == ["job_1"]
