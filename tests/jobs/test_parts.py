"""Pictures: inline, several at once, in the wanted format, drawn after others."""

import io

import pytest
from film_provider import FilmProvider
from job_tools import Rig, a_job
from media_samples import picture
from PIL import Image

from trunkline.core.jobs import Finish, Partial
from trunkline.core.media import MediaInput


async def test_inline_pictures_are_kept_in_order(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True}, n=3, per_submit=3))
        finish = await engine.finish("job_1")
    assert [(one.kind, one.width, one.height) for one in finish.media] == [("image", 80, 60 + n) for n in range(3)]
    assert provider.submits == ["job_1"]
    assert b"iVBOR" not in bytes(finish.job.binding)


async def test_more_pictures_than_the_model_gives_are_asked_for_in_parts(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True}, n=5, per_submit=2))
        finish = await engine.finish("job_1")
    assert [one.height for one in finish.media] == [60, 61, 60, 61, 60]
    assert sorted(provider.submits) == ["job_1-0", "job_1-1", "job_1-2"]


async def test_one_refused_part_does_not_spoil_the_others(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True, "refuse_submit": 2}, n=3))
        finish = await engine.finish("job_1")
    assert finish.job.state == "completed"
    assert len(finish.media) == 2


async def test_a_picture_comes_in_the_format_asked_for(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True}, request={"output_format": "webp"}))
        finish = await engine.finish("job_1")
    [one] = finish.media
    data = b"".join([piece async for piece in rig.store.read(one.storage_key)])
    assert one.mime_type == "image/webp"
    with Image.open(io.BytesIO(data)) as seen:
        assert (seen.format, seen.size) == ("WEBP", (80, 60))


async def test_a_clients_picture_is_put_by_and_sent_along(rig: Rig, provider: FilmProvider) -> None:
    held = await rig.intake.hold(MediaInput(data=picture("JPEG"), role="first_frame"), "key_1")
    assert (held.data, held.mime_type, held.role) == (b"", "image/jpeg", "first_frame")
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"polls": 0}, request={"inputs": (held,)}))
        await engine.finish("job_1")
    assert provider.tasks["t1"]["inputs"] == [len(picture("JPEG"))]


async def test_unfinished_pictures_are_told_and_not_part_of_the_result(rig: Rig, provider: FilmProvider) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True, "stream": "whole", "partials": 3}))
        told = [event async for _, event in engine.events_from("job_1")]
    partials = [event for event in told if isinstance(event, Partial)]
    assert [(event.number, event.media.height) for event in partials] == [(0, 50), (1, 51), (2, 52)]
    finish = told[-1]
    assert isinstance(finish, Finish)
    assert [one.height for one in finish.media] == [60]
    assert partials[0].media.expires_ms is not None
    assert finish.media[0].expires_ms is not None
    assert partials[0].media.expires_ms < finish.media[0].expires_ms


@pytest.mark.parametrize("partials", [0, 2])
async def test_a_streamed_answer_that_is_cut_fails(rig: Rig, provider: FilmProvider, partials: int) -> None:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(a_job("job_1", provider.url, {"inline": True, "stream": "cut", "partials": partials}))
        finish = await engine.finish("job_1")
    assert (finish.job.state, finish.job.error_code) == ("failed", "upstream_incomplete")
    assert provider.submits == ["job_1"]
