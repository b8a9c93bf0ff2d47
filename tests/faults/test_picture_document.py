"""The reseller's document of picture models, to the letter: its names, its keys, its messages, over real sockets."""

import base64
import hashlib
import io
from pathlib import Path
from typing import Any

import pytest
from gateway import gateway
from media_gateway import deltas, fetched, media_of
from media_providers import MediaProviders
from PIL import Image

pytestmark = pytest.mark.faults
NAMES = [
    ("NanoBanana", "gemini-2.5-flash-image", None),
    ("NanoBananaPro-1K", "gemini-3-pro-image", "1K"),
    ("NanoBananaPro-2K", "gemini-3-pro-image", "2K"),
    ("NanoBananaPro-4K", "gemini-3-pro-image", "4K"),
    ("NanoBanana2-0.5K", "gemini-3.1-flash-image", "512"),
    ("NanoBanana2-1K", "gemini-3.1-flash-image", "1K"),
    ("NanoBanana2-2K", "gemini-3.1-flash-image", "2K"),
    ("NanoBanana2-4K", "gemini-3.1-flash-image", "4K"),
]
RATIOS = ("1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9")
STARTS = {"jpeg": b"\xff\xd8\xff", "png": b"\x89PNG", "webp": b"RIFF"}


def to_google(url: str) -> dict[str, Any]:
    return {"providers": {"gemini": {"base_url": f"{url}/gemini/v1beta", "api_key": "g-key"}}}


def document(model: str = "NanoBananaPro-1K", content: Any = "a cute cat", **members: Any) -> dict[str, Any]:
    return {
        "model": model,
        "messages": [{"role": "user", "content": content}],
        "extra_body": {"google": {"image_config": {"aspect_ratio": "16:9"}}},
        **members,
    }


def config_of(providers: MediaProviders) -> dict[str, Any]:
    """What the provider was told of the picture, in its last request."""
    return dict(generated(providers)[-1].json["generationConfig"]["imageConfig"])


def generated(providers: MediaProviders) -> list[Any]:
    return [one for one in providers.asked if "enerateContent" in one.path]


async def test_every_name_means_a_model_and_a_size(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_google(providers.url)) as gate:
        for name, model, tier in NAMES:
            answer = await gate.ask(document(name))
            body = await answer.json()
            assert (answer.status, body["model"]) == (200, name), body
            assert answer.headers["x-trunkline-model"] == model
            assert generated(providers)[-1].path.startswith(f"/gemini/v1beta/models/{model}:")
            assert config_of(providers) == {"aspectRatio": "16:9"} | ({"imageSize": tier} if tier else {})


async def test_streamed_it_is_the_documents_answer_with_a_link_that_lasts(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_google(providers.url)) as gate:
        answer = await gate.ask(document(stream=True), x_trunkline_media_style="bare")
        events: list[tuple[int | None, Any]] = [(None, event) for event in await answer.events()]
        [url] = media_of(events)["outputs"]
        assert "".join(deltas(events)) == url
        assert (await fetched(gate, url)).startswith(STARTS["png"])
        assert {event["model"] for _, event in events if event != "[DONE]"} == {"NanoBananaPro-1K"}


STYLES = {
    "markdown": "![image]({url})",
    "bare": "{url}",
    "html": '<img src="{url}" alt="image">',
    "images": "",
    "data_url": "![image]({data})",
    "footnotes": "![image]({url})",
}


@pytest.mark.parametrize("style", STYLES)
async def test_every_style_shows_the_picture_streamed_and_not(tmp_path: Path, style: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_google(providers.url)) as gate:
        answer = await gate.ask(document(stream=True), x_trunkline_media_style=style)
        events: list[tuple[int | None, Any]] = [(None, event) for event in await answer.events()]
        streamed: list[Any] = deltas(events, "images")
        body = await (await gate.ask(document(), x_trunkline_media_style=style)).json()
        whole = body["choices"][0]["message"]
        for media, text, images in (
            (media_of(events), "".join(deltas(events)), [one for some in streamed for one in some]),
            (body["media"], whole["content"], whole.get("images", [])),
        ):
            [url], [item] = media["outputs"], media["items"]
            shown = await fetched(gate, url)
            data = f"data:image/png;base64,{base64.b64encode(shown).decode()}"
            assert text == STYLES[style].format(url=url, data=data)
            assert [one["image_url"]["url"] for one in images] == ([url] if style == "images" else [])
            with Image.open(io.BytesIO(shown)) as picture:
                assert (picture.format, picture.size) == ("PNG", (item["width"], item["height"]))
            assert (item["bytes"], item["sha256"]) == (len(shown), hashlib.sha256(shown).hexdigest())


async def test_keys_with_dashes_in_the_body_for_all_ratios_and_formats(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_google(providers.url)) as gate:
        for number, ratio in enumerate(RATIOS):
            wanted = ("jpeg", "png", "webp")[number % 3]
            keys = {"--aspect_ratio": ratio, "--output_format": f'"{wanted}"'}
            body = await (await gate.ask(document(**keys))).json()
            assert config_of(providers) == {"aspectRatio": ratio, "imageSize": "1K"}
            [item] = body["media"]["items"]
            assert item["mime_type"] == f"image/{wanted}"
            data = await fetched(gate, item["url"])
            assert data.startswith(STARTS[wanted])
            assert len(data) == item["bytes"]


async def test_the_form_with_a_picture_and_the_picture_of_the_turn_before(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_google(providers.url)) as gate:
        content: list[dict[str, Any]] = [
            {"type": "text", "text": ", generation, "},
            {"type": "image_url", "image_url": {"url": f"{providers.url}/files/cat.png"}},
        ]
        refused = await gate.ask(document(content=content))
        assert (refused.status, (await refused.json())["error"]["code"]) == (400, "invalid_value")
    async with MediaProviders() as providers:
        tables = {**to_google(providers.url), "media": {"allow_private": True}}
        async with gateway(tmp_path / "b", tables) as gate:
            content[1]["image_url"] = {"url": f"{providers.url}/files/cat.png"}
            answer = await gate.ask(document(content=content, stream=True))
            events: list[tuple[int | None, Any]] = [(None, event) for event in await answer.events()]
            text, image = generated(providers)[-1].json["contents"][0]["parts"]
            assert (text, image["inlineData"]["mimeType"]) == ({"text": ", generation, "}, "image/png")
            [url] = media_of(events)["outputs"]
            for said in (f"![image]({url})", url, {"media": {"outputs": [url]}}):
                message = said if isinstance(said, dict) else {"content": said}
                turns = [
                    {"role": "user", "content": "a cat"},
                    {"role": "assistant", "content": "", **message},
                    {"role": "user", "content": "make it blue"},
                ]
                await (await gate.ask(document(messages=turns))).json()
                parts = generated(providers)[-1].json["contents"][0]["parts"]
                assert [next(iter(part)) for part in parts] == ["text", "inlineData"]


async def test_what_the_model_does_not_take_is_refused_before_anything_is_bought(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_google(providers.url)) as gate:
        for keys, param in (
            ({"--aspect_ratio": "7:5"}, "--aspect_ratio"),
            ({"--output_format": "gif"}, "--output_format"),
            ({"image_size": "4K"}, "image_size"),
            ({"extra_body": {"google": {"image_config": {"aspect_ratio": "9:9:9"}}}}, None),
        ):
            answer = await gate.ask(document(**keys))
            error = (await answer.json())["error"]
            assert (answer.status, error["code"]) == (400, "invalid_value")
            assert error["param"] == (param or "extra_body.google.image_config.aspect_ratio")
        assert generated(providers) == []
