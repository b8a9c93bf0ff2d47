"""Pictures and films that come over chat: relays in all shapes, real sockets, one clean answer with lasting links."""

import asyncio
import base64
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, chunk, gateway
from media_gateway import deltas, draw, fetched, media_of
from media_providers import MediaProviders
from media_samples import film, picture
from raw_upstream import Peer, raw_upstream

from trunkline.calls.media_intake import MediaIntake
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.faults
SHAPES = ("markdown", "bare", "doubled", "data_url", "outputs", "images")
PICTURE = {"price": {"per_image": 0.04}}


def to_relay(url: str, **alias: Any) -> dict[str, Any]:
    """A configuration with a relay that answers over chat, its model names being shapes."""
    images = {name: {"kind": "image", **PICTURE} for name in SHAPES}
    films = {name: {"kind": "video", "price": {"per_video": 0.2}} for name in ("film", "failed")}
    relay = {
        "base_url": f"{url}/relay/v1",
        "api_key": "sk-relay",
        "chat": {"dialect": "openai_chat"},
        "models": {**images, **films},
    }
    models = {"x": {"targets": ["relay:markdown"], "kind": "image", **alias}} if alias else {}
    return {"providers": {"relay": relay}, "models": models}


async def told(answer: Any) -> list[tuple[int | None, Any]]:
    return [(None, event) for event in await answer.events()]


@pytest.mark.parametrize("shape", SHAPES)
async def test_every_shape_becomes_the_same_picture_once(tmp_path: Path, shape: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        body = draw(model=f"relay/{shape}", stream=True, stream_options={"include_usage": True}, tools=[])
        answer = await gate.ask(body)
        assert answer.status == 200
        assert "x-trunkline-job-id" not in answer.headers
        events = await told(answer)
        [url] = media_of(events)["outputs"]
        text = "".join(deltas(events))
        assert text.endswith(f"![image]({url})")
        assert text.count("://") == 1
        words = text.removesuffix(f"![image]({url})").strip()
        assert words == {
            "markdown": "Here it is:", "doubled": "Here.", "data_url": "Look: nice?", "images": "Done.",
        }.get(shape, "")  # fmt: skip
        [item] = media_of(events)["items"]
        assert (item["type"], item["mime_type"]) == ("image", "image/png")
        assert await fetched(gate, url) == picture() if shape in {"data_url", "images"} else await fetched(gate, url)
        assert providers.url not in json.dumps([event for _, event in events])
        assert events[-2][1]["usage"]["total_tokens"] < 200
        assert events[-1][1] == "[DONE]"
        [asked] = [one for one in providers.asked if one.path.endswith("/chat/completions")]
        assert "tools" not in asked.json


@pytest.mark.parametrize(
    ("style", "begins"),
    [
        ("markdown", "![image](http://gateway/v1/media/img_"),
        ("bare", "http://gateway/v1/media/img_"),
        ("html", '<img src="http://gateway/v1/media/img_'),
        ("data_url", "![image](data:image/png;base64,iVBOR"),
        ("footnotes", "![image](http://gateway/v1/media/img_"),
    ],
)
async def test_the_style_is_chosen_by_header(tmp_path: Path, style: str, begins: str) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        events = await told(await gate.ask(draw(model="relay/bare", stream=True), x_trunkline_media_style=style))
        assert "".join(deltas(events)).startswith(begins)


async def test_pictures_as_members_of_the_delta(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url, media_style="images")) as gate:
        events = await told(await gate.ask(draw(model="x", stream=True)))
        listed: list[Any] = deltas(events, "images")
        image = listed[0][0]
        assert image["image_url"]["url"] == media_of(events)["outputs"][0]
        assert "".join(deltas(events)) == "Here it is:"
        message = (await (await gate.ask(draw(model="x"))).json())["choices"][0]["message"]
        assert message["images"][0]["type"] == "image_url"


async def test_a_film_with_cover_and_progress(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        answer = await gate.ask(draw(model="relay/film", stream=True))
        events = await told(answer)
        media = media_of(events)
        assert [item["type"] for item in media["items"]] == ["video", "cover"]
        clip, cover = (item["url"] for item in media["items"])
        assert "".join(deltas(events)) == f"[![cover]({cover})]({clip})\n\n[video]({clip})"
        assert await fetched(gate, clip) == film(noisy=True)
        body = await (await gate.ask(draw(model="relay/film"))).json()
        assert body["media"]["outputs"][0] in body["choices"][0]["message"]["content"]


async def test_unstreamed_it_is_one_completion_with_its_price(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        answer = await gate.ask(draw(model="relay/doubled"))
        body = await answer.json()
        assert (answer.status, body["object"], body["model"]) == (200, "chat.completion", "relay/doubled")
        [url] = body["media"]["outputs"]
        assert body["choices"][0]["message"]["content"] == f"Here.\n\n![image]({url})"
        asked = draw(model="relay/doubled", stream=True, stream_options={"include_usage": True, "include_cost": True})
        events = await (await gate.ask(asked)).events()
        assert events[-2]["usage"]["cost"] == 0.04


@pytest.mark.parametrize(
    ("model", "prompt", "status", "code"),
    [
        ("failed", "a dog", 502, "upstream_no_video"),
        ("markdown", "a cat #page", 502, "media_refused"),
        ("markdown", "a cat #bomb", 502, "media_refused"),
        ("markdown", "a cat #away", 502, "media_refused"),
        ("markdown", "a cat #429", 429, "rate_limit_exceeded"),
        ("markdown", "a cat #500", 502, "upstream_error"),
    ],
)
async def test_what_goes_wrong_is_a_status_before_anything_was_told(
    tmp_path: Path, model: str, prompt: str, status: int, code: str
) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        for stream in (True, False):
            answer = await gate.ask(draw(prompt, model=f"relay/{model}", stream=stream))
            error = (await answer.json())["error"]
            assert (answer.status, error["code"]) == (status, code), error
            assert answer.headers["x-should-retry"] == "false"


async def test_side_requests_and_bad_parameters_buy_nothing(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        answer = await gate.ask(draw("### Task:\nGenerate a title", model="relay/markdown"))
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "not_a_chat_model")
        answer = await gate.ask(draw(model="relay/markdown", aspect_ratio="1:1", ratio="2:3"))
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "invalid_value")
        assert not providers.asked


async def test_a_picture_that_was_made_is_billed_though_its_client_leaves(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    taking = asyncio.Event()

    async def take(*_: Any) -> None:
        taking.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(MediaIntake, "take", take)
    async with MediaProviders() as providers, gateway(tmp_path, to_relay(providers.url)) as gate:
        answer = await gate.send("POST", "/v1/chat/completions", json.dumps(draw(model="relay/markdown")).encode())
        await taking.wait()
        answer.leave()
    database = Database.at(tmp_path / "trunkline.db")  # the gateway has gone: everything is booked
    [row] = await SqlMoney(database).rows()
    await database.close()
    assert (row.end_reason, row.images, row.cost_microusd) == ("cancelled", 1, 40_000)


def to_chat(url: str, kind: str = "image", **chat: Any) -> dict[str, Any]:
    provider = {"base_url": url, "api_key": "sk-up", "chat": {"dialect": "openai_chat", **chat}}
    return {
        "providers": {"up": provider},
        "models": {"m": {"targets": ["up:m-1"], "kind": kind}},
        "media": {"allow_private": True},
    }


DATA = f"data:image/png;base64,{base64.b64encode(picture()).decode()}"


class Talking:
    """An upstream that streams a script: pieces, and pauses in seconds."""

    def __init__(self) -> None:
        self.url = ""
        self.bodies: list[bytes] = []
        self.asked, self.left = asyncio.Event(), asyncio.Event()


@asynccontextmanager
async def talking(script: list[Any]) -> AsyncIterator[Talking]:
    talking = Talking()

    async def serve(peer: Peer) -> None:
        while True:
            talking.bodies.append((await peer.request())[1])
            talking.asked.set()
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
            for step in script:
                if isinstance(step, bytes):
                    await peer.send(step)
                    continue
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(step):
                        await peer.gone()
                        talking.left.set()
                        return
            return

    async with raw_upstream(serve) as up:
        talking.url = up.url
        yield talking


def says(text: str, finish: str = "stop") -> list[bytes]:
    return [chunk({"content": text}), chunk({}, finish), b"data: [DONE]\n\n"]


async def asked(gate: Gateway, up: Talking, **members: Any) -> Any:
    """Ask, and give what the upstream was asked."""
    await (await gate.ask({**draw(model="m"), **members})).body()
    return json.loads(up.bodies[-1])


async def test_what_was_said_in_the_prompt_is_told_beside_the_clients_own_members(tmp_path: Path) -> None:
    async with talking(says(DATA)) as up, gateway(tmp_path, to_chat(up.url)) as gate:
        google = {"google": {"image_config": {"aspect_ratio": "16:9"}}}
        body = await asked(gate, up, **draw("a cat --ar 1:1 --n 2", model="m"), extra_body=google)
        assert body["messages"][-1]["content"] == "a cat"
        assert (body["model"], body["extra_body"], body["n"]) == ("m-1", google, 2)
        assert "aspect_ratio" not in body


async def test_providers_that_want_flags_or_a_config_are_told_so(tmp_path: Path) -> None:
    google = {"google": {"image_config": {"aspect_ratio": "16:9"}, "safety": 1}}
    for quirk in ("prompt_flags", "image_config"):
        async with talking(says(DATA)) as up, gateway(tmp_path / quirk, to_chat(up.url, quirks=[quirk])) as gate:
            body = await asked(gate, up, extra_body=google, image_size="2K")
            assert body["extra_body"] == {"google": {"safety": 1}}
            if quirk == "prompt_flags":
                assert body["messages"][-1]["content"] == "a cat --aspect 16:9 --size 2K"
            else:
                assert body["image_config"] == {"aspect_ratio": "16:9", "image_size": "2K"}
                assert body["modalities"] == ["image", "text"]


async def test_a_picture_of_an_earlier_turn_is_sent_again(tmp_path: Path) -> None:
    async with talking(says(f"Here: ![a]({DATA})")) as up, gateway(tmp_path, to_chat(up.url)) as gate:
        first = await (await gate.ask(draw(model="m"))).json()
        message = first["choices"][0]["message"]
        messages = [{"role": "user", "content": "a cat"}, message, {"role": "user", "content": "now blue"}]
        body = await asked(gate, up, messages=messages)
        text, image = body["messages"][-1]["content"]
        assert text == {"type": "text", "text": "now blue"}
        assert image["image_url"]["url"] == DATA


async def test_a_model_that_only_talks_and_one_that_is_cut(tmp_path: Path) -> None:
    async with talking(says("Which cat do you mean?")) as up, gateway(tmp_path / "a", to_chat(up.url)) as gate:
        body = await (await gate.ask(draw(model="m"))).json()
        assert body["choices"][0]["message"]["content"] == "Which cat do you mean?"
        assert "media" not in body
    async with (
        talking([chunk({"content": f"![a]({DATA[:90]}"})]) as up,
        gateway(tmp_path / "b", to_chat(up.url)) as gate,
    ):
        answer = await gate.ask(draw(model="m", stream=True))
        assert (answer.status, (await answer.json())["error"]["code"]) == (502, "upstream_incomplete")
    async with talking(says("no", "content_filter")) as up, gateway(tmp_path / "c", to_chat(up.url)) as gate:
        answer = await gate.ask(draw(model="m", stream=True))
        assert (answer.status, (await answer.json())["error"]["code"]) == (400, "content_filter")


async def test_progress_is_told_as_reasoning_in_lines_of_their_own(tmp_path: Path) -> None:
    steps = ["> 🏃 进度：10%\n", "> 🏃 进度：10%\n", "> 🏃 进度：55.5%\n"]
    link = f"[点击这里](data:video/mp4;base64,{base64.b64encode(film()).decode()})"
    script: list[Any] = []
    for step in steps:
        script += [1.1, chunk({"content": step})]
    async with talking([*script, *says(link)]) as up, gateway(tmp_path, to_chat(up.url, "video")) as gate:
        events = await told(await gate.ask(draw(model="m", stream=True)))
        assert deltas(events, "reasoning_content") == ["10 %\n", "56 %\n"]
        [clip] = media_of(events)["outputs"]
        assert f"[video]({clip})" in "".join(deltas(events))


async def test_a_client_that_leaves_ends_the_call(tmp_path: Path) -> None:
    async with talking([chunk({"content": "> 1%\n"}), 30.0]) as up, gateway(tmp_path, to_chat(up.url, "video")) as gate:
        answer = await gate.send("POST", "/v1/chat/completions", json.dumps(draw(model="m", stream=True)).encode())
        await up.asked.wait()
        answer.leave()
        async with asyncio.timeout(60):
            await up.left.wait()
