"""PostgreSQL or Valkey stopped under real gateways, and started again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from film_provider import FilmProvider
from gateway_process import Home, Process, film, to_films
from media_gateway import deltas, media_of, numbered
from postgres import Postgres
from raw_upstream import RawUpstream, raw_upstream
from replicas import ask_text, bearer, make_key, several, status_of, until
from text_upstream import PRICE_MICROUSD, said, talking, to_text
from valkey_server import Valkey

pytestmark = pytest.mark.scale
STREAMS = 20
RESUME = {"x_trunkline_resume": "true"}


@pytest_asyncio.fixture
async def upstream() -> AsyncIterator[RawUpstream]:
    async with raw_upstream(talking(60, 0.1)) as upstream:
        yield upstream


@pytest.fixture
def home(tmp_path: Path, upstream: RawUpstream, postgres_url: str, valkey_url: str) -> Home:
    return several(tmp_path, to_text(upstream.url), postgres_url, valkey_url)


async def told(gate: Process, part: str, *, usable: bool) -> None:
    """Wait until the metrics and the log say that a part is away, or back."""
    name = "the database" if part == "database" else "Valkey"
    async with asyncio.timeout(120):
        metrics = ""
        while f'trunkline_storage_usable{{part="{part}"}} {usable:d}.0' not in metrics:
            metrics = (await (await gate.get("/metrics")).body()).decode()
        while f"{name} is {'back' if usable else 'away'}" not in gate.log.read_text():  # noqa: ASYNC110 - from outside
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("resume", [{}, RESUME])
async def test_without_postgresql_answers_go_on_and_are_settled_when_it_is_back(
    home: Home, upstream: RawUpstream, postgres_server: Postgres, resume: dict[str, str]
) -> None:
    key = await make_key(home, "--budget-usd", "5")
    async with home.gateway() as gate:
        answers = [await gate.ask(ask_text(stream=True), **bearer(key), **resume) for _ in range(STREAMS)]
        upstream.script = talking(1)
        with postgres_server.away():
            before = await until(gate, key, 503)  # what it had set aside already may be used for a moment
            assert set(before) <= {200}
            assert await status_of(gate, key) == 503
            await told(gate, "database", usable=False)
            for answer in answers:
                events = (await answer.body()).decode()
                assert events.endswith("data: [DONE]\n\n")
                assert '"content":"59 "' in events
        passed = STREAMS + len(before)
        async with home.books() as books:
            rows = [row for row in await books.rows(passed) if row.cost_microusd]
            assert [(row.end_reason, row.cost_microusd) for row in rows] == [("completed", PRICE_MICROUSD)] * passed
            await until(gate, key, 200)
            await told(gate, "database", usable=True)
            await books.rows(passed + 1)
            [spend] = await books.money.spend(key["id"], ["total"])
            assert spend.spent == (passed + 1) * PRICE_MICROUSD


async def test_without_postgresql_a_film_waits(tmp_path: Path, postgres_server: Postgres, postgres_url: str) -> None:
    async with FilmProvider() as provider:
        home = several(tmp_path, to_films(provider.url), postgres_url)
        async with home.gateway() as gate:
            answer = await gate.ask(film({"polls": 4}))
            async with home.books() as books:
                await books.reached(answer.headers["x-trunkline-job-id"], "running")
            with postgres_server.away():
                await asyncio.sleep(4)  # longer than its lease
            events = await numbered(answer)
            assert media_of(events)["outputs"]
            numbers = [number for number, _ in events if number is not None]
            assert numbers == list(range(len(numbers)))
            async with home.books() as books:
                [row] = await books.rows(1)
        assert row.end_reason == "completed"
        assert len(provider.submits) == 1


@pytest.mark.parametrize("fail_closed", [True, False])
async def test_without_valkey_keys_with_a_budget_are_closed(
    home: Home, upstream: RawUpstream, valkey_server: Valkey, *, fail_closed: bool
) -> None:
    upstream.script = talking(1)
    home.tables["storage"]["fail_closed"] = fail_closed
    rate, budget = ("--rpm", "3"), ("--budget-usd", "5")
    rated, both, budgeted, free = [await make_key(home, *limits) for limits in (rate, rate + budget, budget, ())]
    async with home.gateway() as gate:
        assert [await status_of(gate, key) for key in (rated, both, budgeted, free)] == [200] * 4
        with valkey_server.away():
            assert [await status_of(gate, both) for _ in range(5)] == [503 if fail_closed else 200] * 5
            assert [await status_of(gate, budgeted) for _ in range(5)] == [503 if fail_closed else 200] * 5
            assert [await status_of(gate, key) for key in (rated, free) for _ in range(5)] == [200] * 10
            await told(gate, "valkey", usable=False)
        await until(gate, rated, 429)
        await told(gate, "valkey", usable=True)
        assert [await status_of(gate, key) for key in (both, budgeted)] == [200, 200]


async def test_text_that_valkey_forgets_is_said_to_be_gone(
    home: Home, upstream: RawUpstream, valkey_server: Valkey
) -> None:
    async with home.gateway() as gate:
        answer = await gate.ask(ask_text(stream=True), **RESUME)
        stream_id = answer.headers["x-trunkline-stream-id"]
        await answer.chunk()
        with valkey_server.away():
            pass
        events = await numbered(answer)
        assert events[-1][1]["error"]["code"] in {"stream_expired", "storage_unavailable"}
        again = await numbered(await gate.get(f"/v1/streams/{stream_id}"))
        assert again[-1][1]["error"]["code"] == "stream_expired"
        upstream.script = talking(3)
        assert "".join(deltas(await numbered(await gate.ask(ask_text(stream=True), **RESUME)))) == said(3)
