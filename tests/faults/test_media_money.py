"""What pictures and films cost, over all three surfaces: set aside at the start, settled once, refused when spent."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, Gateway, gateway
from media_gateway import draw, to_media
from media_providers import MediaProviders

from trunkline.core.keys import KeyChanges, Rates
from trunkline.core.money import Budget, LedgerRow, Spend
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.faults
CHAT, IMAGES, EDITS, VIDEOS = "/v1/chat/completions", "/v1/images/generations", "/v1/images/edits", "/v1/videos"
SURFACES: list[tuple[str, dict[str, Any], int]] = [
    (CHAT, draw(), 40_000),
    (IMAGES, {"model": "paint/brush", "prompt": "a cat"}, 40_000),
    (CHAT, draw(model="paint/reel", seconds=4), 200_000),
    (VIDEOS, {"model": "paint/reel", "prompt": "a dog", "seconds": "4"}, 200_000),
]
"""Where, what, and its cost: a picture is 0.04 USD, a film 0.1 USD a second, and the provider's film lasts two."""
over_surfaces = pytest.mark.parametrize(("path", "body", "cost"), SURFACES, ids=["chat", "images", "film", "videos"])


class Buyer:
    """A key with limits, and its books."""

    def __init__(self, gate: Gateway, database: Database, made: Any) -> None:
        self.gate = gate
        self.money = SqlMoney(database)
        self.key_id = made.key.id
        self.bearer = f"Bearer {made.token}"

    async def ask(self, path: str, body: dict[str, Any], **headers: str) -> Answer:
        return await self.gate.ask(body, path, authorization=self.bearer, **headers)

    async def spend(self) -> Spend:
        [spend] = await self.money.spend(self.key_id, ["total"])
        return spend

    async def settled(self, rows: int) -> list[LedgerRow]:
        """The ledger, when so many jobs are booked and nothing is set aside."""
        async with asyncio.timeout(60):
            while True:
                found = await self.money.rows(key_id=self.key_id)
                if len(found) >= rows and (await self.spend()).reserved == 0:
                    return found
                await asyncio.sleep(0.05)


class Shop:
    """A gateway with its providers, and its books."""

    def __init__(self, providers: MediaProviders, gate: Gateway, database: Database) -> None:
        self.providers = providers
        self.gate = gate
        self._database = database

    async def buyer(self, **settings: Any) -> Buyer:
        made = await self.gate.application.keys.create(KeyChanges(name="anna", **settings))
        return Buyer(self.gate, self._database, made)


@asynccontextmanager
async def shop(data_dir: Path, *, priced: bool = True) -> AsyncIterator[Shop]:
    async with MediaProviders() as providers:
        tables = to_media(providers.url)
        for model in tables["providers"]["paint"]["models"].values():
            if not priced:
                del model["price"]
        async with gateway(data_dir, tables) as gate:
            database = Database.at(data_dir / "trunkline.db")
            try:
                yield Shop(providers, gate, database)
            finally:
                await database.close()


async def refused(answer: Answer) -> tuple[int, str]:
    error = (await answer.json())["error"]
    assert error["message"]
    return answer.status, error["code"]


@over_surfaces
async def test_it_is_booked_once_and_refused_when_spent(
    tmp_path: Path, path: str, body: dict[str, Any], cost: int
) -> None:
    async with shop(tmp_path) as here:
        most = 40_000 if cost == 40_000 else 400_000  # a film of four seconds is what was asked for
        anna = await here.buyer(budget=Budget(total=most + cost - 1))
        for _ in range(2):  # the second joins the first
            answer = await anna.ask(path, body, idempotency_key="k")
            assert answer.status == 200, await answer.json()
        [row] = await anna.settled(1)
        assert (row.cost_microusd, row.route, row.end_reason) == (cost, path, "completed")
        assert not row.streamed
        assert (row.job_id, row.key_id) == (answer.headers["x-trunkline-job-id"], anna.key_id)
        assert (row.provider, row.images, row.video_ms) == (("paint", 1, 0) if cost == 40_000 else ("paint", 0, 2000))
        if path != VIDEOS:
            assert answer.headers["x-trunkline-cost"] == f"{cost / 1e6:.6f}"
        assert (await anna.spend()).spent == cost
        assert await refused(await anna.ask(path, body)) == (402, "budget_exceeded")
        assert [one.method for one in here.providers.asked if one.path.endswith(("generations", "videos"))] == ["POST"]
        assert len(await anna.settled(1)) == 1


async def test_what_runs_is_set_aside(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        here.providers.polls = 1000
        anna = await here.buyer(budget=Budget(total=700_000))
        film = {"model": "paint/reel", "prompt": "a dog", "seconds": "4"}
        running = await anna.ask(VIDEOS, film)
        assert (await anna.spend()).reserved == 400_000
        assert await refused(await anna.ask(VIDEOS, film)) == (402, "budget_exceeded")
        assert (await anna.ask(IMAGES, {"model": "paint/brush", "prompt": "a cat", "n": 2})).status == 200
        assert await refused(await anna.ask(IMAGES, {"model": "paint/brush", "prompt": "a cat", "n": 8})) == (
            402,
            "budget_exceeded",
        )
        name = (await running.json())["id"]
        gone = await here.gate.get(f"/v1/videos/{name}", "DELETE", authorization=anna.bearer)
        assert (await gone.json())["deleted"]
        rows = await anna.settled(2)
        assert sorted(row.end_reason for row in rows) == ["cancelled", "completed"]
        assert sum(row.cost_microusd or 0 for row in rows) == (await anna.spend()).spent


@over_surfaces
async def test_what_was_refused_costs_nothing(tmp_path: Path, path: str, body: dict[str, Any], cost: int) -> None:
    async with shop(tmp_path) as here:
        anna = await here.buyer(budget=Budget(total=10 * cost))
        asked = body | ({"prompt": "#refused"} if "prompt" in body else draw("#refused", model=body["model"]))
        answer = await anna.ask(path, asked)
        assert answer.status == (200 if path == VIDEOS else 400)
        [row] = await anna.settled(1)
        assert (row.cost_microusd, row.error_code) == (0, "content_filter")
        assert (await anna.spend()).spent == 0


async def test_what_has_no_price_is_not_for_budgets(tmp_path: Path) -> None:
    async with shop(tmp_path, priced=False) as here:
        anna = await here.buyer(budget=Budget(total=10**9))
        for path, body, _ in SURFACES:
            assert await refused(await anna.ask(path, body)) == (403, "model_not_allowed")
        free = await here.buyer()
        answer = await free.ask(IMAGES, SURFACES[1][1])
        assert answer.status == 200
        assert "x-trunkline-cost" not in answer.headers
        assert [one.path for one in here.providers.asked] == ["/openai/v1/images/generations"]


async def test_pictures_count_in_the_keys_rates(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        anna = await here.buyer(rates=Rates(images=3))
        assert (await anna.ask(IMAGES, {"model": "paint/brush", "prompt": "a cat", "n": 2})).status == 200
        too_many = await anna.ask(CHAT, draw(n=2))
        assert int(too_many.headers["retry-after"]) > 0
        assert await refused(too_many) == (429, "rate_limit_exceeded")
        assert (await anna.ask(CHAT, draw())).status == 200
        assert await refused(await anna.ask(IMAGES, SURFACES[1][1])) == (429, "rate_limit_exceeded")


async def test_a_key_sees_its_own_films_only(tmp_path: Path) -> None:
    async with shop(tmp_path) as here:
        anna, otto = [await here.buyer() for _ in range(2)]
        answer = await anna.ask(VIDEOS, SURFACES[3][1])
        name = (await answer.json())["id"]
        film = f"/v1/videos/{name}"
        while (await (await here.gate.get(film, authorization=anna.bearer)).json())["progress"] < 100:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
        for method, path in (("GET", f"/v1/videos/{name}"), ("DELETE", f"/v1/videos/{name}")):
            assert (await here.gate.get(path, method, authorization=otto.bearer)).status == 404
        assert (await here.gate.get(f"/v1/videos/{name}/content", authorization=otto.bearer)).status == 404
        stream = f"/v1/streams/{answer.headers['x-trunkline-stream-id']}"
        assert (await here.gate.get(stream, authorization=otto.bearer)).status == 404
        assert (await (await here.gate.get("/v1/videos", authorization=otto.bearer)).json())["data"] == []
        assert (await here.gate.get(f"/v1/videos/{name}/content", authorization=anna.bearer)).status == 200
        assert (await here.gate.get(f"/v1/videos/{name}/content")).status == 401
