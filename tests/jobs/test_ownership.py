"""Cancelling, waiting in line, and who may write."""

import asyncio

import pytest
from film_provider import FilmProvider
from job_tools import FastClock, InProcess, Rig, a_job, opened
from sqlalchemy import update

from trunkline.core.jobs import Idempotency, JobState
from trunkline.jobs.tools import Step
from trunkline.storage.sql.tables import jobs, leases


async def reached(rig: Rig, job_id: str, *states: JobState) -> None:
    while (job := await rig.jobs.get(job_id)) is None or job.state not in states:  # noqa: ASYNC110 - seen from outside
        await asyncio.sleep(0.01)


async def test_a_running_job_is_cancelled_at_the_provider_too(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"never": True}))
        await reached(rig, "job_1", "running")
        await engine.cancel("job_1")
        finish = await engine.finish("job_1")
    assert (finish.job.state, finish.job.error_code) == ("cancelled", "cancelled")
    assert provider.tasks["t1"]["cancelled"]
    assert [outcome.state for _, outcome in rig.settled] == ["cancelled"]


async def test_a_job_that_is_cancelled_again_while_it_ends_is_ended_once(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        for turns in range(12):
            job_id = f"job_{turns}"
            await engine.start(a_job(job_id, provider.url, {"never": True}))
            await reached(rig, job_id, "running")
            run = engine._runs[job_id]
            run.cancel()
            for _ in range(turns):
                await asyncio.sleep(0)
            run.cancel()
            assert (await engine.finish(job_id)).job.state == "cancelled"
    assert all(task["cancelled"] for task in provider.tasks.values())
    assert [outcome.state for _, outcome in rig.settled] == ["cancelled"] * 12


async def test_a_job_is_cancelled_by_another_process(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"never": True}))
        await reached(rig, "job_1", "running")
        await rig.jobs.cancel("job_1")
        finish = await engine.finish("job_1")
    assert finish.job.state == "cancelled"


async def test_a_cancel_during_the_submit_waits_for_the_task_and_stops_it(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"never": True, "held": "submit"}))
        while not provider.submits:  # noqa: ASYNC110 - the provider is another process
            await asyncio.sleep(0.01)
        await engine.cancel("job_1")
        provider.go.set()
        finish = await engine.finish("job_1")
    assert finish.job.state == "cancelled"
    assert provider.tasks["t1"]["cancelled"]


async def test_further_jobs_wait_in_line_and_can_be_cancelled_there(rig: Rig, provider: FilmProvider) -> None:
    rig.tools = rig.limited(submits=1)
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True, "held": "submit"}))
        await reached(rig, "job_1", "submitting")
        for name in ("job_2", "job_3"):
            await engine.start(a_job(name, provider.url, {"inline": True}))
        await engine.cancel("job_2")
        assert (await engine.finish("job_2")).job.submitting_ms is None
        provider.go.set()
        assert (await engine.finish("job_1")).job.state == "completed"
        assert (await engine.finish("job_3")).job.state == "completed"
    assert provider.submits == ["job_1", "job_3"]


async def test_an_idempotency_key_joins_the_running_job(rig: Rig, provider: FilmProvider) -> None:
    key = Idempotency(key_id="key_1", route="/v1/videos", name="k", body_hash="h", job_id="job_1")
    async with rig.serving(rig.engine()) as engine:
        first, new = await engine.start(a_job("job_1", provider.url, {"polls": 1}), key)
        second, again = await engine.start(a_job("job_2", provider.url, {"polls": 1}), key)
        await engine.finish("job_1")
    assert (new, again) == (True, False)
    assert first.id == second.id == "job_1"
    assert provider.submits == ["job_1"]


async def test_who_was_away_too_long_but_not_replaced_goes_on(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True, "held": "submit"}))
        await reached(rig, "job_1", "submitting")
        async with rig.database.write() as connection:
            await connection.execute(update(leases).values(until_ms=0))
        while (job := await engine.get("job_1")) is None or job.generation < 2:  # noqa: ASYNC110 - it claims it anew
            await asyncio.sleep(0.01)
        provider.go.set()
        finish = await engine.finish("job_1")
    assert finish.job.state == "completed"
    assert finish.job.generation >= 2  # twice, where it looks for orphans before it has a lease again
    assert provider.submits == ["job_1"]


@pytest.mark.faults
async def test_what_was_claimed_by_another_is_dropped_and_done_there(rig: Rig, provider: FilmProvider) -> None:
    """The former owner's lease is ended under it; the other one claims, and only the other one's writes count.

    Who loses a job while it ends may have settled it: accounts book a job once (`test_state_job_accounts.py`).
    """
    async with opened(rig.path) as database:
        other = Rig(database, rig.data_dir, clock=FastClock())
        async with rig.serving(rig.engine("a")) as first:
            await first.start(a_job("job_1", provider.url, {"held": "polls"}))
            await reached(rig, "job_1", "running")
            async with rig.database.write() as connection:
                await connection.execute(update(leases).values(until_ms=0))
            async with other.serving(other.engine("b")) as engine:
                provider.go.set()
                finish = await engine.finish("job_1")
        await other.client.aclose()
    assert finish.job.state == "completed"
    assert provider.submits == ["job_1"]
    assert {(job_id, outcome.state) for job_id, outcome in rig.settled + other.settled} == {("job_1", "completed")}


async def test_a_job_started_before_the_engine_is_up_waits_for_it(rig: Rig, provider: FilmProvider) -> None:
    engine = rig.engine()
    job, new = await engine.start(a_job("job_1", provider.url, {"polls": 0}))
    assert (job.owner, new) == ("", True)
    async with rig.serving(engine):
        assert (await engine.finish("job_1")).job.state == "completed"


class Late(InProcess):
    """DBOS as it is at the first job of a process: it comes up when told to."""

    def __init__(self, step: Step) -> None:
        super().__init__(step)
        self.told, self.up = asyncio.Event(), asyncio.Event()

    async def start(self) -> None:
        await self.told.wait()
        self.up.set()


async def test_jobs_do_not_wait_until_the_durable_engine_is_up(rig: Rig, provider: FilmProvider) -> None:
    made: list[Late] = []

    def durable(_: str, step: Step) -> Late:
        made.append(Late(step))
        return made[-1]

    async with rig.serving(rig.engine(durable=durable)) as engine:
        await engine.start(a_job("job_1", provider.url, {"polls": 1}))
        assert (await engine.finish("job_1")).job.state == "completed"
        made[0].told.set()
        await made[0].up.wait()
        await engine.start(a_job("job_2", provider.url, {"polls": 1}))
        assert (await engine.finish("job_2")).job.state == "completed"
    assert [len(made), *made[0].tasks] == [1, "job_2"]
    assert provider.submits == ["job_1", "job_2"]


@pytest.mark.parametrize("hours", [3, -3])
async def test_a_film_is_waited_for_though_the_clock_is_set(rig: Rig, provider: FilmProvider, hours: int) -> None:
    assert isinstance(rig.clock, FastClock)
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"held": "polls"}))
        await reached(rig, "job_1", "running")
        rig.clock.set_s = hours * 3600
        asked = provider.seen.total()
        async with asyncio.timeout(60):
            while provider.seen.total() < asked + 2:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.01)
        provider.go.set()
        finish = await engine.finish("job_1")
    assert finish.job.state == "completed"


async def test_a_film_that_is_done_is_fetched_though_its_deadline_passed_while_nobody_asked(
    rig: Rig, provider: FilmProvider
) -> None:
    async with rig.serving(rig.engine("a")) as engine:
        await engine.start(a_job("job_1", provider.url, {"held": "polls"}))
        await reached(rig, "job_1", "running")
    async with rig.database.write() as connection:
        await connection.execute(update(jobs).values(deadline_ms=1))
    provider.go.set()
    async with rig.serving(rig.engine("b")) as engine:
        finish = await engine.finish("job_1")
    assert finish.job.state == "completed"
    assert provider.submits == ["job_1"]
