"""Providers of pictures and films that misbehave, dialect by dialect, as the clients of a whole gateway see it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, gateway
from media_gateway import draw, fetched, numbered
from media_providers import MediaProviders
from media_samples import heavy

pytestmark = pytest.mark.faults
IMAGES = {
    "openai_images": "/openai/v1",
    "gemini_images": "/gemini/v1beta",
    "xai_images": "/xai/v1",
    "bigmodel_images": "/bigmodel",
    "dashscope_images": "/dashscope/api/v1",
    "openrouter_images": "/openrouter/api/v1",
    "fal_queue": "/fal",
    "replicate_predictions": "/replicate/v1",
}
VIDEOS = {
    "openai_videos": "/openai/v1",
    "veo": "/gemini/v1beta",
    "xai_videos": "/xai/v1",
    "bigmodel_videos": "/bigmodel",
    "dashscope_videos": "/dashscope/api/v1",
    "openrouter_videos": "/openrouter/api/v1",
}
MODELS = {"fal_queue": "fal-ai/flux", "replicate_predictions": "a/b", "dashscope_images": "qwen-image-2.0"}
LINKED_IMAGES = ("xai_images", "bigmodel_images", "dashscope_images", "fal_queue", "replicate_predictions")
BY_LINK = (*LINKED_IMAGES, "veo", "xai_videos")
"""Dialects that answer with a link."""
INLINE = ("openai_images", "gemini_images", "openrouter_images")
"""Those that answer with the picture itself."""
ALL = (*IMAGES, *VIDEOS)

FAULTS: list[tuple[str, tuple[str, ...], int, str]] = [
    ("#429", ALL, 429, "rate_limit_exceeded"),
    ("#500", ALL, 502, ""),
    ("#html", ALL, 502, "upstream_malformed"),
    (
        "#refused",
        tuple(name for name in ALL if name != "openrouter_videos"),
        400,
        "content_filter",
    ),
    ("#none", tuple(IMAGES), 502, "upstream_no_image"),
    ("#page", (*BY_LINK, *INLINE), 502, "media_refused"),
    ("#bomb", (*BY_LINK, *INLINE), 502, "media_refused"),
    ("#away", BY_LINK, 502, "media_refused"),
    ("#torn", INLINE, 502, "submit_unknown"),
]
"""What goes wrong, where, and what the client is told."""


def tables(url: str) -> dict[str, Any]:
    """A provider for each dialect, its name; private addresses are not fetched from, but for the provider's own."""
    providers = {
        name: {
            "base_url": url + place,
            "api_key": f"sk-{name}",
            kind: {"dialect": name},
            "models": {MODELS.get(name, "m-1"): {"kind": kind}},
        }
        for kind, dialects in (("image", IMAGES), ("video", VIDEOS))
        for name, place in dialects.items()
    }
    return {"providers": providers}


def model_of(dialect: str) -> str:
    return f"{dialect}/{MODELS.get(dialect, 'm-1')}"


async def told_whole(gate: Gateway, dialect: str, prompt: str) -> tuple[int, dict[str, Any], dict[str, str]]:
    answer = await gate.ask(draw(prompt, model=model_of(dialect)))
    body = await answer.json()
    return answer.status, body.get("error", {}), answer.headers


async def told_streamed(gate: Gateway, dialect: str, prompt: str) -> dict[str, Any]:
    """The error that a stream ends in."""
    events = await numbered(await gate.ask(draw(prompt, model=model_of(dialect), stream=True)))
    assert "[DONE]" not in [event for _, event in events]
    assert "choices" not in events[-1][1]
    error: dict[str, Any] = events[-1][1]["error"]
    return error


@pytest.mark.parametrize(("word", "dialects", "status", "code"), FAULTS, ids=[fault[0][1:] for fault in FAULTS])
async def test_a_fault_is_told(tmp_path: Path, word: str, dialects: tuple[str, ...], status: int, code: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, tables(providers.url)) as gate:
        providers.polls = 0
        whole = await asyncio.gather(*(told_whole(gate, dialect, f"a cat {word}") for dialect in dialects))
        submits = [one for one in providers.asked if one.method == "POST"]
        assert len(submits) == len(dialects)  # nobody is asked twice
        streamed = await asyncio.gather(*(told_streamed(gate, dialect, f"a cat {word}") for dialect in dialects))
        wrong = {}
        for dialect, (got, error, headers), ended in zip(dialects, whole, streamed, strict=True):
            right = (
                got == status
                and (error["code"] == code or not code)
                and headers["x-should-retry"] == "false"
                and headers.get("retry-after") == ("7" if status == 429 else None)
                and ended["code"] == error["code"]
                and ended["message"] == error["message"] != ""
                and providers.url not in json.dumps(error)
            )
            if not right:
                wrong[dialect] = (got, error, headers.get("retry-after"), ended)
        assert wrong == {}


@pytest.mark.parametrize("dialect", LINKED_IMAGES)
async def test_a_link_that_breaks_off_is_fetched_again_and_nothing_is_made_twice(tmp_path: Path, dialect: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, tables(providers.url)) as gate:
        providers.polls = 0
        answer = await gate.ask(draw("a cat #mended", model=model_of(dialect)))
        body = await answer.json()
        assert answer.status == 200, body
        assert await fetched(gate, body["media"]["outputs"][0]) == heavy()
        assert sum(one.method == "POST" for one in providers.asked) == 1
        assert sum(one.path == "/files/mended.png" for one in providers.asked) == 3


@pytest.mark.parametrize("dialect", INLINE)
async def test_ten_megabytes_in_one_line_come_through(tmp_path: Path, dialect: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, tables(providers.url)) as gate:
        body = await (await gate.ask(draw("a cat #heavy", model=model_of(dialect)))).json()
        assert await fetched(gate, body["media"]["outputs"][0]) == heavy()
        [item] = body["media"]["items"]
        assert (item["width"], item["height"], item["bytes"]) == (1840, 1840, len(heavy()))
