"""Each dialect for pictures and films, through the job engine and the HTTP client, against the exact wire."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest
import pytest_asyncio
from job_tools import FastClock, Rig, migrated, opened
from media_providers import MediaProviders
from media_samples import picture
from msgspec import Raw
from msgspec.structs import replace

from trunkline.core.binding import bind, decode
from trunkline.core.chat import Target
from trunkline.core.jobs import Finish, Job
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.provider import MediaSide, Provider
from trunkline.core.secret import Secret
from trunkline.dialects import MEDIA_DIALECTS
from trunkline.upstream.client import Client
from trunkline.upstream.media_door import MediaDoor

pytestmark = pytest.mark.faults

__all__ = ["migrated"]
PLACES = {
    "openai_images": "/openai/v1", "gemini_images": "/gemini/v1beta", "xai_images": "/xai/v1",
    "bigmodel_images": "/bigmodel", "dashscope_images": "/dashscope/api/v1", "openrouter_images": "/openrouter/api/v1",
    "openai_videos": "/openai/v1", "veo": "/gemini/v1beta", "xai_videos": "/xai/v1", "bigmodel_videos": "/bigmodel",
    "dashscope_videos": "/dashscope/api/v1", "openrouter_videos": "/openrouter/api/v1", "fal_queue": "/fal",
    "replicate_predictions": "/replicate/v1",
}  # fmt: skip


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[MediaProviders]:
    async with MediaProviders() as provider:
        yield provider


@pytest_asyncio.fixture
async def rig(tmp_path: Path, migrated: Path, provider: MediaProviders) -> AsyncIterator[Rig]:
    shutil.copy(migrated, tmp_path / "t.db")
    async with opened(tmp_path / "t.db") as database:
        rig = Rig(database, tmp_path, clock=FastClock(), patience_s=0.3)
        home = Provider(provider.url, api_key=(Secret("k-1", "env:K"),), video=MediaSide("x"), image=MediaSide("x"))
        client = Client()
        door = MediaDoor(client, {"home": home}, {})
        intake = type(rig.intake)(rig.store, rig.index, door, rig.intake._limits)
        rig.tools = replace(rig.tools, upstream=door, intake=intake, dialects=MEDIA_DIALECTS)
        yield rig
        await client.aclose()
        await rig.client.aclose()


def a_job(provider: MediaProviders, dialect: str, prompt: str, **asked: Any) -> Job:
    model, n, per_submit = asked.pop("model", "m-1"), asked.pop("n", 1), asked.pop("per_submit", 4)
    path = asked.pop("path", "")
    film = dialect.endswith("videos") or dialect == "veo" or "#film" in prompt
    kind: Literal["image", "video"] = "video" if film else "image"
    request = MediaRequest(kind=kind, prompt=prompt, model=model, n=n, **asked)
    target = Target("home", model, provider.url + PLACES[dialect], dialect, side=kind, path=path)
    return Job(
        id="job_1",
        kind=kind,
        key_id="key_1",
        model=model,
        provider="home",
        credential_id="env:K",
        request=Raw(msgspec.json.encode(request)),
        binding=bind(target, n, per_submit),
    )


async def run(rig: Rig, job: Job) -> Finish:
    async with rig.serving(rig.engine()) as engine:
        await engine.start(job)
        return await engine.finish(job.id)


@pytest.mark.parametrize(
    ("dialect", "prompt", "asked"),
    [
        ("openai_images", "a cat", {}),
        ("openai_images", "a cat", {"partial_images": 2}),
        ("gemini_images", "a cat", {}),
        ("gemini_images", "a cat", {"partial_images": 2}),
        ("xai_images", "a cat", {}),
        ("bigmodel_images", "a cat", {}),
        ("bigmodel_images", "a cat #picture", {"path": "/async/images/generations"}),
        ("dashscope_images", "a cat", {"model": "qwen-image-2.0"}),
        ("dashscope_images", "a cat #picture", {"model": "wanx2.1-t2i-turbo"}),
        ("openrouter_images", "a cat", {}),
        ("openrouter_images", "a cat", {"partial_images": 1}),
        ("openai_videos", "a dog", {}),
        ("veo", "a dog", {}),
        ("xai_videos", "a dog", {}),
        ("bigmodel_videos", "a dog", {}),
        ("dashscope_videos", "a dog", {"model": "wan2.7-t2v"}),
        ("openrouter_videos", "a dog", {}),
        ("fal_queue", "a cat", {"model": "fal-ai/flux/dev"}),
        ("fal_queue", "a dog #film", {"model": "minimax/h3/text-to-video"}),
        ("replicate_predictions", "a cat", {"model": "bytedance/seedream-4"}),
        ("replicate_predictions", "a dog #film", {"model": "google/veo-3.1"}),
    ],
)
async def test_a_medium_comes_of_it(
    rig: Rig, provider: MediaProviders, dialect: str, prompt: str, asked: dict[str, Any]
) -> None:
    finish = await run(rig, a_job(provider, dialect, prompt, **asked))
    assert (finish.job.state, finish.job.error_message) == ("completed", "")
    [medium] = finish.media
    if medium.kind == "video":
        assert (medium.mime_type, medium.width, medium.height) == ("video/mp4", 64, 48)
        assert finish.covers[medium.id].mime_type in {"image/jpeg", "image/webp"}
    else:
        assert medium.mime_type in {"image/png", "image/webp"}
    submits = [one for one in provider.asked if one.method == "POST"]
    assert len(submits) == 1
    assert all("k-1" in str(one.headers) for one in provider.asked if not one.path.startswith("/files/"))
    assert not any("k-1" in one.body.decode("utf-8", "replace") for one in provider.asked)


@pytest.mark.parametrize(
    ("dialect", "prompt", "code", "says"),
    [
        ("openai_images", "#refused", "content_filter", "safety system"),
        ("openai_images", "#none", "upstream_no_image", "gave no picture"),
        ("openai_images", "#429", "rate_limit_exceeded", "slow down"),
        ("openai_images", "#500", "upstream_error", "Internal error"),
        ("openai_images", "#html", "upstream_malformed", "log in"),
        ("gemini_images", "#refused", "content_filter", "PROHIBITED_CONTENT"),
        ("gemini_images", "#none", "upstream_no_image", "NO_IMAGE (I would rather describe it.)"),
        ("gemini_images", "#429", "rate_limit_exceeded", "slow down"),
        ("xai_images", "#refused", "content_filter", "moderation"),
        ("xai_images", "#failed", "Some resource has been exhausted", "no capacity"),
        ("xai_images", "#page", "media_refused", "no picture or film"),
        ("xai_images", "#bomb", "media_refused", "50000x50000"),
        ("xai_images", "#away", "media_refused", "169.254.169.254"),
        ("xai_images", "#dead", "media_gone", "404"),
        ("bigmodel_images", "#refused", "content_filter", "敏感内容"),
        ("bigmodel_images", "#none", "upstream_no_image", "gave no picture"),
        ("dashscope_images", "#refused", "content_filter", "inappropriate"),
        ("dashscope_images", "#none", "upstream_no_image", "sorry"),
        ("openrouter_images", "#refused", "content_filter", "flagged"),
        ("openrouter_images", "#failed", "upstream_error", "the provider failed"),
        ("openai_videos", "#refused", "content_filter", "blocked"),
        ("openai_videos", "#429", "rate_limit_exceeded", "slow down"),
        ("veo", "#refused", "content_filter", "children"),
        ("veo", "#failed", "upstream_error", "internal trouble"),
        ("veo", "#page", "media_refused", "no picture or film"),
        ("xai_videos", "#refused", "content_filter", "moderation"),
        ("xai_videos", "#failed", "internal", "it broke"),
        ("bigmodel_videos", "#refused", "content_filter", "敏感内容"),
        ("bigmodel_videos", "#silent", "upstream_error", "did not say why"),
        ("dashscope_videos", "#refused", "content_filter", "inappropriate"),
        ("openrouter_videos", "#failed", "upstream_error", "gave up"),
        ("fal_queue", "#refused", "content_filter", "flagged"),
        ("fal_queue", "#unsafe", "content_filter", "safety checker"),
        ("fal_queue", "#failed", "invalid_request", "not this size"),
        ("replicate_predictions", "#refused", "content_filter", "NSFW"),
    ],
)
async def test_why_there_is_none(  # noqa: PLR0917 - the columns of the table
    rig: Rig, provider: MediaProviders, dialect: str, prompt: str, code: str, says: str
) -> None:
    model = "fal-ai/flux/dev" if dialect == "fal_queue" else "a/b" if dialect.startswith("repl") else "m-1"
    finish = await run(rig, a_job(provider, dialect, prompt, model=model))
    assert finish.job.state == "failed"
    assert finish.error is not None
    assert finish.error.code == code
    assert says in finish.error.message
    assert sum(one.method == "POST" for one in provider.asked) == 1


async def test_a_picture_that_is_cut_is_not_asked_for_again(rig: Rig, provider: MediaProviders) -> None:
    finish = await run(rig, a_job(provider, "openai_images", "#cut"))
    assert finish.job.state == "submit_unknown"
    assert sum(one.method == "POST" for one in provider.asked) == 1


@pytest.mark.parametrize("dialect", ["openai_images", "gemini_images"])
async def test_a_stream_that_is_cut_says_so(rig: Rig, provider: MediaProviders, dialect: str) -> None:
    finish = await run(rig, a_job(provider, dialect, "#cut", partial_images=1))
    assert (finish.job.state, finish.job.error_code) == ("failed", "upstream_incomplete")


async def test_several_pictures(rig: Rig, provider: MediaProviders) -> None:
    finish = await run(rig, a_job(provider, "openai_images", "a cat", n=5, per_submit=3))
    assert len(finish.media) == 5
    assert sorted(one.json["n"] for one in provider.asked) == [2, 3]


async def test_costs_that_the_provider_names(rig: Rig, provider: MediaProviders) -> None:
    for dialect, cost in [("xai_images", 20_000), ("openrouter_images", 39_000), ("openrouter_videos", 400_000)]:
        job = msgspec.structs.replace(a_job(provider, dialect, "a cat"), id=f"job_{dialect}")
        finish = await run(rig, job)
        usage = decode(finish.job.binding).usage()
        assert usage is not None
        assert usage.cost_microusd == cost


@pytest.mark.parametrize("dialect", ["openai_videos", "fal_queue", "replicate_predictions", "dashscope_videos"])
async def test_a_cancelled_job_is_cancelled_at_the_provider(rig: Rig, provider: MediaProviders, dialect: str) -> None:
    provider.polls = 1_000_000
    model = "a/b" if dialect != "dashscope_videos" else "m"
    async with rig.serving(rig.engine()) as engine:
        job, _ = await engine.start(a_job(provider, dialect, "a dog #film", model=model))
        while len(provider.asked) < 3:
            await rig.clock.sleep(1)
        await engine.cancel(job.id)
        assert (await engine.finish(job.id)).job.state == "cancelled"
    assert provider.tasks["task-1"]["cancelled"]


async def test_pictures_to_go_by_arrive_as_what_they_are(rig: Rig, provider: MediaProviders) -> None:
    held = await rig.intake.hold(MediaInput(data=picture()), "key_1")
    mask = msgspec.structs.replace(held, role="mask")
    finish = await run(rig, a_job(provider, "openai_images", "make it blue", inputs=(held, mask)))
    assert finish.job.state == "completed"
    [asked] = provider.asked
    assert asked.path == "/openai/v1/images/edits"
    assert asked.body.count(picture()) == 2
    assert b'name="image"; filename="1.png"\r\ncontent-type: image/png\r\n\r\n\x89PNG' in asked.body
    assert b'name="mask"; filename="2.png"' in asked.body
    assert b'name="prompt"\r\n\r\nmake it blue\r\n' in asked.body
