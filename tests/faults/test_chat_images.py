"""The images endpoints for models that answer over chat; what pictures and films over chat cost."""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, gateway
from media_gateway import draw, fetched, form, told
from media_providers import MediaProviders
from media_samples import picture

from trunkline.core.keys import KeyChanges, Rates
from trunkline.core.money import LedgerRow
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.faults
GENERATIONS, EDITS = "/v1/images/generations", "/v1/images/edits"
SHAPES = ("markdown", "bare", "doubled", "data_url", "outputs", "images")


def to_relay(url: str, **chat: Any) -> dict[str, Any]:
    images: dict[str, dict[str, Any]] = {
        name: {"kind": "image", "price": {"per_image": 0.04}} for name in (*SHAPES, "several", "words")
    }
    images["bare"]["price"] = {"per_image": {"1K": 0.04, "2K": 0.08}}
    relay = {
        "base_url": f"{url}/relay/v1",
        "api_key": "sk-relay",
        "chat": {"dialect": "openai_chat", **chat},
        "models": {**images, "film": {"kind": "video", "price": {"per_second": 0.1}}},
    }
    return {"providers": {"relay": relay}, "media": {"allow_private": True}}


class Shop:
    def __init__(self, providers: MediaProviders, gate: Gateway, database: Database) -> None:
        self.providers = providers
        self.gate = gate
        self._money = SqlMoney(database)

    @property
    def asked(self) -> Any:
        """What the provider was asked, last."""
        return [one for one in self.providers.asked if one.path.endswith("/chat/completions")][-1].json

    async def row(self) -> LedgerRow:
        """The only row of the ledger."""
        async with asyncio.timeout(60):
            while True:
                rows = await self._money.rows(key_id="")
                if rows:
                    [row] = rows
                    return row
                await asyncio.sleep(0.05)


@asynccontextmanager
async def shop(data_dir: Path, **chat: Any) -> AsyncIterator[Shop]:
    async with MediaProviders() as providers, gateway(data_dir, to_relay(providers.url, **chat)) as gate:
        database = Database.at(data_dir / "trunkline.db")
        try:
            yield Shop(providers, gate, database)
        finally:
            await database.close()


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_picture_of_every_shape_is_answered_as_images_are(tmp_path: Path, shape: str) -> None:
    async with shop(tmp_path) as here:
        answer = await here.gate.ask({"model": f"relay/{shape}", "prompt": "a cat --ar 16:9 --size 1K"}, GENERATIONS)
        body = await answer.json()
        assert answer.status == 200, body
        [one] = body["data"]
        assert base64.b64decode(one["b64_json"]) == await fetched(here.gate, one["url"])
        assert (body["output_format"], body["usage"]["input_tokens"] > 0) == ("png", True)
        assert here.providers.url not in json.dumps(body)
        assert answer.headers["x-trunkline-cost"] == "0.040000"
        assert here.asked["messages"] == [{"role": "user", "content": "a cat"}]
        assert here.asked["aspect_ratio"] == "16:9"
        row = await here.row()
        assert (row.route, row.images, row.cost_microusd, row.end_reason) == (GENERATIONS, 1, 40_000, "completed")


async def test_streamed_it_is_one_event_a_picture(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        body = {"model": "relay/images", "prompt": "a cat", "stream": True, "response_format": "b64_json"}
        [(number, name, event)] = await told(await here.gate.ask(body, GENERATIONS))
        assert (number, name, event["type"]) == (None, "image_generation.completed", "image_generation.completed")
        assert base64.b64decode(event["b64_json"]) == picture()
        assert "url" not in event
        assert event["usage"]["total_tokens"] > 0
        row = await here.row()
        assert (row.route, row.streamed, row.images, row.cost_microusd) == (GENERATIONS, True, 1, 40_000)


async def test_an_edit_sends_its_pictures_as_parts_of_the_message(tmp_path: Path) -> None:
    async with shop(tmp_path, quirks=["image_config"]) as here:
        words = (("model", "relay/images"), ("prompt", "join them"), ("size", "2K"))
        data, kind = form(*words, ("image[]", picture()), ("image[]", picture("WEBP")))
        answer = await here.gate.send("POST", EDITS, data, content_type=kind)
        await answer.read_head()
        assert answer.status == 200, await answer.json()
        text, *given = here.asked["messages"][-1]["content"]
        assert text == {"type": "text", "text": "join them"}
        assert [one["image_url"]["url"].partition(";")[0] for one in given] == ["data:image/png", "data:image/webp"]
        assert here.asked["image_config"] == {"image_size": "2K"}
        assert here.asked.keys() == {"model", "messages", "modalities", "image_config"}
        assert (await here.row()).route == EDITS


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        ({"model": "relay/words"}, 502, "upstream_no_image"),
        ({"model": "relay/markdown", "prompt": "a cat #429"}, 429, "rate_limit_exceeded"),
        ({"model": "relay/markdown", "prompt": "a cat #page"}, 502, "media_refused"),
        ({"model": "relay/markdown", "callback_url": "https://x.example/"}, 400, "invalid_value"),
        ({"model": "relay/markdown", "mask": "https://x.example/m.png"}, 400, "invalid_value"),
        ({"model": "relay/film"}, 400, "invalid_value"),
    ],
)
async def test_what_goes_wrong_is_one_clear_error(tmp_path: Path, body: dict[str, Any], status: int, code: str) -> None:
    async with shop(tmp_path) as here:
        for stream in (False, True):
            answer = await here.gate.ask({"prompt": "a cat", **body, "stream": stream}, GENERATIONS)
            error = (await answer.json())["error"]
            assert (answer.status, error["code"]) == (status, code), error
            assert error["message"]


MISSING = "1 of 2 pictures is missing: The file is no picture or film of a type that is taken"


async def test_a_picture_that_is_missing_is_told_of_and_not_billed(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        body = await (await here.gate.ask({"model": "relay/several", "prompt": "cats"}, GENERATIONS)).json()
        assert len(body["data"]) == 1
        assert body["warnings"][0].startswith(MISSING)
        assert (await here.row()).cost_microusd == 40_000


async def test_a_picture_that_is_missing_is_told_of_in_a_chat(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        message = (await (await here.gate.ask(draw(model="relay/several"))).json())["choices"][0]["message"]
        assert message["reasoning_content"].startswith(MISSING)
        assert message["content"].count("/v1/media/img_") == 1
        assert (await here.row()).images == 1


@pytest.mark.parametrize("model", ["relay/bare", "relay/markdown"])
async def test_pictures_that_the_prompt_asks_for_count_in_the_keys_rates(tmp_path: Path, model: str) -> None:
    async with shop(tmp_path) as here:
        made = await here.gate.application.keys.create(KeyChanges(name="anna", rates=Rates(images=4)))
        statuses = [
            (await here.gate.ask(draw("cats --n 2", model=model), authorization=f"Bearer {made.token}")).status
            for _ in range(3)
        ]
        assert statuses == [200, 200, 429]


async def test_a_film_over_chat_is_billed_by_its_seconds(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        answer = await here.gate.ask(draw(model="relay/film", stream=True))
        assert "/v1/media/vid_" in (await answer.body()).decode()
        row = await here.row()
        assert (row.kind, row.video_ms, row.images, row.cost_microusd) == ("video", 2000, 0, 200_000)


async def test_a_picture_is_billed_by_the_tier_that_was_asked_for(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        assert (await here.gate.ask(draw("a cat --size 2K", model="relay/bare"))).headers[
            "x-trunkline-cost"
        ] == "0.080000"
        row = await here.row()
        assert (row.kind, row.images, row.cost_microusd) == ("image", 1, 80_000)


@pytest.mark.parametrize(
    ("body", "cost", "code"),
    [
        (draw("a cat #page", model="relay/markdown"), 40_000, "media_refused"),
        (draw("#page", model="relay/film", seconds=4), 400_000, "media_refused"),
        ({"model": "relay/words", "prompt": "a cat"}, 0, "upstream_no_image"),
    ],
)
async def test_what_was_made_and_lost_is_billed_and_what_was_not_made_is_not(
    tmp_path: Path, body: dict[str, Any], cost: int, code: str
) -> None:
    async with shop(tmp_path) as here:
        path = GENERATIONS if "prompt" in body else "/v1/chat/completions"
        assert (await here.gate.ask(body, path)).status == 502
        row = await here.row()
        assert (row.images, row.video_ms, row.cost_microusd, row.error_code) == (0, 0, cost, code)
