from typing import Any

import pytest
from film_provider import FilmProvider
from job_tools import FastClock, Rig, a_job

from trunkline.calls.media_intake import MediaLimits
from trunkline.core.events import Progress
from trunkline.core.jobs import Finish, Job
from trunkline.core.state import StorageError
from trunkline.jobs.engine import JobEngine


async def run(engine: JobEngine, job: Job) -> Finish:
    await engine.start(job)
    return await engine.finish(job.id)


async def test_a_film_goes_through_all_states_once(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"polls": 3}))
    job = finish.job
    assert job.state == "completed"
    assert (job.upstream_task_id, job.progress, job.cost_microusd) == ("t1", 100.0, 1234)
    assert job.created_ms <= (job.submitting_ms or 0) <= (job.running_ms or 0) <= (job.storing_ms or 0)
    assert provider.submits == ["job_1"]
    [film] = finish.media
    assert (film.kind, film.mime_type, film.width, film.height) == ("video", "video/mp4", 64, 48)
    assert finish.covers[film.id].mime_type == "image/jpeg"
    assert [(job_id, outcome.state, outcome.submitted) for job_id, outcome in rig.settled] == [
        ("job_1", "completed", True)
    ]
    assert rig.settled[0][1].media == (film,)


async def test_progress_is_numbered_the_same_for_every_reader(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"polls": 4}))
        live = [event async for event in engine.events_from("job_1")]
        later = [event async for event in engine.events_from("job_1")]
        assert [seq for seq, _ in live] == list(range(1, len(live) + 1))
        assert live == later
        percents = [event.percent or 0 for _, event in live[:-1] if isinstance(event, Progress)]
        assert percents == sorted(percents)
        assert len(percents) >= 3
        assert isinstance(live[-1][1], Finish)
        for after in range(len(live) + 2):  # the end is always told: it may be many events of a client's stream
            assert [event async for event in engine.events_from("job_1", after)] == live[min(after, len(live) - 1) :]


@pytest.mark.parametrize(
    ("script", "code", "message"),
    [
        ({"fail": "content_filter", "polls": 1}, "content_filter", "the model refused"),
        ({"fail": "internal"}, "internal", "the model refused"),
        ({"submit_status": 400}, "upstream_error", '{"error":"no"}'),
        ({"submit_status": 429}, "upstream_error", '{"error":"no"}'),
        ({"file": "dead"}, "media_gone", "the upstream answered 404 in place of the file"),
        ({"file": "html"}, "media_refused", "The file is no picture or film"),
        ({"file": "torn", "padded": 10_000_000}, "media_unavailable", "The provider's file was not given"),
        ({"reset": True}, "submit_unknown", "it was not submitted again"),
    ],
)
async def test_a_failure_says_why(
    rig: Rig, provider: FilmProvider, script: dict[str, Any], code: str, message: str
) -> None:
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, script))
    assert finish.job.state == ("submit_unknown" if code == "submit_unknown" else "failed")
    assert finish.job.error_code == code
    assert message in finish.job.error_message
    assert finish.error is not None
    assert (finish.error.code, finish.error.message) == (code, finish.job.error_message)
    assert [outcome.state for _, outcome in rig.settled] == [finish.job.state]
    assert len(provider.submits) <= 1


async def test_the_providers_status_is_kept_with_its_error(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"submit_status": 429}))
    assert finish.error is not None
    assert finish.error.status == 429


async def test_polls_that_say_nothing_are_forgiven(rig: Rig, provider: FilmProvider) -> None:
    faults = ["garbage", 429, 500, "reset", 503, "garbage"]
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"faults": faults, "polls": 1}))
    assert finish.job.state == "completed"
    assert provider.seen["GET /films/t1"] == len(faults) + 2


async def test_a_provider_that_never_ends_is_left_at_the_deadline(rig: Rig, provider: FilmProvider) -> None:
    rig.tools = rig.limited(max_wait_s=90)
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"never": True, "silent": True}))
    assert finish.job.error_code == "upstream_timeout"
    assert "within 90 s" in finish.job.error_message
    assert finish.error is not None
    assert finish.error.status == 504


async def test_the_provider_says_when_it_wants_to_be_asked(rig: Rig, provider: FilmProvider) -> None:
    script = {"polls": 3, "headers": {"openai-poll-after-ms": "7000"}}
    async with rig.serving(rig.engine()) as engine:
        await run(engine, a_job("job_1", provider.url, script))
    assert isinstance(rig.clock, FastClock)
    assert rig.clock.slept.count(7.0) == 3


@pytest.mark.parametrize("fault", ["flaky", "cut"])
async def test_a_download_is_tried_again_and_never_the_generation(rig: Rig, provider: FilmProvider, fault: str) -> None:
    rig.intake._limits = MediaLimits()  # where no link is given up, there is time enough
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"file": fault}))
    assert finish.job.state == "completed"
    assert provider.submits == ["job_1"]
    assert provider.seen["GET /files/t1"] >= 2


@pytest.mark.parametrize("lost", ["get", "add"])
async def test_a_film_in_hand_waits_for_the_database(
    rig: Rig, provider: FilmProvider, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    work, losses = getattr(rig.index, lost), 2

    async def away(what: object) -> object:
        nonlocal losses
        if losses and provider.seen["GET /files/t1"]:
            losses -= 1
            raise StorageError("it is away")
        return await work(what)

    monkeypatch.setattr(rig.index, lost, away)
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"polls": 0}))
    assert finish.job.state == "completed"
    assert (losses, provider.seen["GET /files/t1"]) == (0, 1)


async def test_a_path_is_fetched_from_the_provider(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        finish = await run(engine, a_job("job_1", provider.url, {"relative": True}))
    assert finish.job.state == "completed"
