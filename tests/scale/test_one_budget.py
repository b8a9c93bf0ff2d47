"""Budgets, rates and keys through real gateways: exact whatever is behind them, and however many they are."""

import asyncio
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from gateway import Client
from raw_upstream import raw_upstream
from replicas import make_key, several, status_of, until
from text_upstream import PRICE_MICROUSD, talking, to_text

pytestmark = pytest.mark.scale
ONE, TWO = ("a",), ("a", "b")


async def at_once(gates: list[Client], key: dict[str, str], calls: int, together: int = 100) -> Counter[int]:
    """Call in turn on the gateways; gives how often which status came."""
    free = asyncio.Semaphore(together)

    async def one(number: int) -> int:
        async with free:
            return await status_of(gates[number % len(gates)], key)

    return Counter(await asyncio.gather(*map(one, range(calls))))


@pytest.mark.parametrize(
    ("database", "shared", "names"),
    [("sqlite", False, ONE), ("postgresql", False, ONE), ("postgresql", True, ONE), ("postgresql", True, TWO)],
)
async def test_of_400_calls_on_a_budget_of_50_prices_exactly_50_pass(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    database: str,
    names: tuple[str, ...],
    *,
    shared: bool,
) -> None:
    url = request.getfixturevalue("postgres_url") if database == "postgresql" else ""
    valkey = request.getfixturevalue("valkey_url") if shared else ""
    async with raw_upstream(talking(1, 0.05)) as upstream, AsyncExitStack() as running:
        home = several(tmp_path, to_text(upstream.url), url, valkey)
        more = ("--rpm", "100000") if shared else ()
        key = await make_key(home, "--budget-usd", str(50 * PRICE_MICROUSD / 1e6), *more)
        gates: list[Client] = [await running.enter_async_context(home.gateway(name)) for name in names]
        assert await at_once(gates, key, 400, 400) == {200: 50, 402: 350}
        async with home.books() as books:
            rows = [row for row in await books.rows(50) if row.cost_microusd]
            [spend] = await books.money.spend(key["id"], ["total"])
    assert len(rows) == 50
    assert spend.spent == 50 * PRICE_MICROUSD


async def test_rates_are_exact_over_replicas(tmp_path: Path, postgres_url: str, valkey_url: str) -> None:
    async with raw_upstream(talking(1)) as upstream, AsyncExitStack() as running:
        home = several(tmp_path, to_text(upstream.url), postgres_url, valkey_url)
        key = await make_key(home, "--rpm", "100")
        gates: list[Client] = [await running.enter_async_context(home.gateway(name)) for name in TWO]
        assert await at_once(gates, key, 300) == {200: 100, 429: 200}


async def test_a_change_of_a_key_is_seen_everywhere(tmp_path: Path, postgres_url: str, valkey_url: str) -> None:
    async with raw_upstream(talking(1)) as upstream, AsyncExitStack() as running:
        home = several(tmp_path, to_text(upstream.url), postgres_url, valkey_url)
        key = await make_key(home)
        gates: list[Client] = [await running.enter_async_context(home.gateway(name)) for name in TWO]
        assert [await status_of(gate, key) for gate in gates] == [200, 200]
        for state, status in (("block", 401), ("unblock", 200), ("revoke", 401)):
            await home.cli("keys", state, key["id"])
            await asyncio.gather(*(until(gate, key, status) for gate in gates))
