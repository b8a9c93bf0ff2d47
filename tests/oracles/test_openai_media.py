"""OpenAI's own Python library makes pictures and films with the embedded models, at every call it has for them."""

import base64
import io
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import av
import pytest
from gateway import gateway
from media_gateway import to_media
from media_providers import MediaProviders
from openai import AsyncOpenAI, BadRequestError, NotFoundError
from PIL import Image

pytestmark = [pytest.mark.oracles, pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")]


@asynccontextmanager
async def client_of(data_dir: Path) -> AsyncIterator[AsyncOpenAI]:
    async with gateway(data_dir, {"providers": {"local": {"enabled": True}}}) as gate:
        async with AsyncOpenAI(base_url=gate.url, api_key="none", max_retries=0) as client:
            yield client


def opened(encoded: str | None) -> tuple[str | None, tuple[int, int]]:
    assert encoded is not None
    with Image.open(io.BytesIO(base64.b64decode(encoded))) as image:
        image.load()
        return image.format, image.size


def png(colour: str = "skyblue") -> io.BytesIO:
    out = io.BytesIO()
    Image.new("RGB", (256, 192), colour).save(out, "PNG")
    out.seek(0)
    out.name = "given.png"
    return out


async def test_images(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        made = await client.images.generate(model="local/image", prompt="a cute cat", size="1536x1024", n=2)
        assert made.data is not None
        assert [opened(one.b64_json) for one in made.data] == [("PNG", (1536, 1024))] * 2
        assert (made.output_format, made.size) == ("png", "1536x1024")
        assert all((one.url or "").startswith("http://127.0.0.1") and one.revised_prompt for one in made.data)
        assert made.usage is not None
        assert made.usage.total_tokens == made.usage.input_tokens + made.usage.output_tokens
        linked = await client.images.generate(
            model="local/image", prompt="a dog", response_format="url", output_format="webp"
        )
        assert linked.data is not None
        assert linked.data[0].b64_json is None
        stream = await client.images.generate(model="local/image", prompt="a bird", stream=True, output_format="jpeg")
        [event] = [event async for event in stream]
        assert event.type == "image_generation.completed"
        assert opened(event.b64_json)[0] == "JPEG"
        assert event.usage.total_tokens >= 0
        with pytest.raises(BadRequestError) as refused:
            await client.images.generate(model="local/video", prompt="a bird")
        assert refused.value.param == "model"


async def test_edits(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        mask = io.BytesIO()
        Image.new("RGBA", (256, 192), (0, 0, 0, 0)).save(mask, "PNG")
        mask.seek(0)
        mask.name = "mask.png"
        edited = await client.images.edit(model="local/image", prompt="a red fox", image=png(), mask=mask)
        assert edited.data is not None
        assert opened(edited.data[0].b64_json) == ("PNG", (256, 192))
        stream = await client.images.edit(model="local/image", prompt="a red fox", image=[png()], stream=True)
        assert [event.type async for event in stream] == ["image_edit.completed"]


async def test_sketches(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        async with AsyncOpenAI(base_url=gate.url, api_key="none", max_retries=0) as client:
            stream = await client.images.generate(model="paint/brush", prompt="a cat", stream=True, partial_images=1)
            events = [event async for event in stream]
    assert [event.type for event in events] == ["image_generation.partial_image", "image_generation.completed"]
    assert [opened(event.b64_json)[0] for event in events] == ["PNG", "PNG"]


async def test_a_failed_stream_raises(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        async with AsyncOpenAI(base_url=gate.url, api_key="none", max_retries=0) as client:
            stream = await client.images.generate(model="paint/brush", prompt="#refused", stream=True)
            with pytest.raises(Exception, match="safety system"):
                [event async for event in stream]


async def test_videos(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        video = await client.videos.create_and_poll(
            model="local/video", prompt="a dog running on the beach", seconds="4", size="1280x720", poll_interval_ms=200
        )
        assert (video.status, video.progress, video.seconds, video.size) == ("completed", 100, "4", "1280x720")
        assert await client.videos.retrieve(video.id) == video
        content = await client.videos.download_content(video.id)
        with av.open(io.BytesIO(content.read()), "r") as film:
            assert len(list(film.decode(video=0))) >= 4 * 12
        cover = await client.videos.download_content(video.id, variant="thumbnail")
        with Image.open(io.BytesIO(cover.read())) as image:
            assert image.size == (1280, 720)
        started = await client.videos.create(
            model="local/video", prompt="it snows", input_reference=png("navy"), seconds="4"
        )
        assert started.status in {"queued", "in_progress"}
        listed = [one.id async for one in client.videos.list(limit=1)]
        assert listed == [started.id, video.id]
        assert (await client.videos.poll(started.id, poll_interval_ms=200)).status == "completed"
        for name in listed:
            assert (await client.videos.delete(name)).deleted
        with pytest.raises(NotFoundError):
            await client.videos.retrieve(video.id)
