"""Letting calls in, and settling them: keys, rates, prices and budgets together, on a real database."""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from trunkline.calls.admission import Admission
from trunkline.calls.billing import Billing
from trunkline.calls.inbox import Inbox
from trunkline.calls.keys import Keys
from trunkline.calls.life import Life
from trunkline.calls.meter import Settlement, Tally
from trunkline.calls.pricing import Pricing
from trunkline.config.prices import read_price_table
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest, Target
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.keys import KeyChanges, Rates
from trunkline.core.money import Budget
from trunkline.core.provider import ModelKind, Price, Provider
from trunkline.core.route import Route, RouteTarget
from trunkline.ingress.openai_chat import parse
from trunkline.policy.price import PriceBook
from trunkline.storage.journal import FileJournal
from trunkline.storage.shared.rates import LocalRates
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.keys import SqlKeys
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.money import SqlMoney

OPENAI = "https://api.openai.com/v1"


class Gateway:
    """What a gateway has of keys and money."""

    def __init__(self, database: Database, journal: Path) -> None:
        self.money = SqlMoney(database)
        self.life = Life(SqlLeases(database), "a")
        self.billing = Billing(self.money, self.life, FileJournal(journal), Inbox(SqlSignals(database)))
        self.keys = Keys(SqlKeys(database), b"secret")
        pricing = Pricing(4096, PriceBook(read_price_table))
        self.admission = Admission(self.keys, self.billing, pricing, LocalRates(), lambda: True, ())

    async def caller(self, **settings: object) -> Caller:
        new = await self.keys.create(KeyChanges(name="anna", **settings))  # type: ignore[arg-type]
        return await self.admission.caller(f"Bearer {new.token}", "req_1")


@pytest_asyncio.fixture
async def gateway(database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Gateway]:
    monkeypatch.setattr("trunkline.calls.life.TTL_S", 600.0)  # nobody renews it
    gateway = Gateway(database, tmp_path / "journal")
    await gateway.life.begin()
    running = asyncio.ensure_future(gateway.billing.run())
    await asyncio.sleep(0)
    yield gateway
    running.cancel()
    await asyncio.wait([running])


def asked(model: str = "fast", **members: object) -> ChatRequest:
    return parse(msgspec.json.encode({"model": model, "messages": [{"role": "user", "content": "Hello"}]} | members))


def route(*models: str, price: Price | None = None, kind: ModelKind = "text", base_url: str = OPENAI) -> Route:
    targets = [Target(provider="p", model=model, base_url=base_url, dialect="openai_chat") for model in models]
    return Route("fast", kind, tuple(RouteTarget(target, Provider(), "none", price=price) for target in targets))


def settlement(caller: Caller, request: ChatRequest, over: Route, usage: Usage, **changes: object) -> Settlement:
    now = time.time_ns() // 1_000_000
    facts = {
        "end_reason": "completed",
        "error_code": "",
        "status": 200,
        "attempts": 1,
        "started_ms": now,
        "ended_ms": now,
    }
    more = {"estimated": False, "first_event_ms": 3, "chunks": 2, "media": 0, "repairs": {"role_missing": 1}}
    return Settlement(
        **({"request": request, "caller": caller, "target": over.targets[0], "usage": usage} | facts | more | changes)  # type: ignore[arg-type]
    )


async def refused(attempt: object) -> tuple[int, str, str]:
    with pytest.raises(GatewayError) as error:
        await attempt  # type: ignore[misc]
    return error.value.status, error.value.code, error.value.message


async def test_a_call_leaves_a_row_with_its_price(gateway: Gateway) -> None:
    caller, over = await gateway.caller(budget=Budget(month=10**7)), route("gpt-4o-mini")
    request = asked(stream=True, max_tokens=100)
    admitted = await gateway.admission.admit(caller, request, over)
    usage = Usage(prompt_tokens=1000, completion_tokens=50, total_tokens=1050, cached_tokens=200)
    tally = Tally(started_ms=time.time_ns() // 1_000_000, media=0, estimated=False)
    assert admitted.cost(over.targets[0], usage, tally) == 165  # 800 x 0.15 + 200 x 0.075 + 50 x 0.6
    admitted.settle(settlement(caller, request, over, usage, credential="env:X"))
    await gateway.billing.flush()
    (row,) = await gateway.money.rows()
    assert (row.key_id, row.model, row.upstream_model, row.credential_id) == (
        caller.key.id,
        "fast",
        "gpt-4o-mini",
        "env:X",
    )
    assert (row.cost_microusd, row.prompt_tokens, row.cached_tokens, row.streamed) == (165, 1000, 200, True)
    assert row.price_version.startswith("genai-prices ")
    assert row.repairs == '{"role_missing":1}'


async def test_the_upper_bound_is_reserved_and_the_real_cost_spent(gateway: Gateway) -> None:
    price = Price(input_per_mtok=1, output_per_mtok=10)
    caller, over = await gateway.caller(budget=Budget(total=3000)), route("m", price=price)
    request = asked(max_completion_tokens=200)
    admitted = await gateway.admission.admit(caller, request, over)  # 2,000 and a little
    assert (await refused(gateway.admission.admit(caller, request, over)))[:2] == (402, "budget_exceeded")
    assert (await refused(gateway.admission.admit(caller, asked(), over)))[:2] == (402, "budget_exceeded")
    admitted.settle(settlement(caller, request, over, Usage(prompt_tokens=10, completion_tokens=20)))
    assert await gateway.admission.admit(caller, request, over)
    await gateway.billing.flush()
    assert (await gateway.money.spend(caller.key.id, ["total"]))[0].spent == 210


async def test_an_unknown_price_is_for_keys_without_a_budget(gateway: Gateway) -> None:
    over = route("gpt-4o-mini", "no-such-model")
    status, code, message = await refused(
        gateway.admission.admit(await gateway.caller(budget=Budget(day=1)), asked(), over)
    )
    assert (status, code) == (403, "model_not_allowed")
    assert "price of 'fast' is not known" in message
    caller = await gateway.caller()
    admitted, over = await gateway.admission.admit(caller, asked(), over), route("no-such-model")
    admitted.settle(settlement(caller, asked(), over, Usage(prompt_tokens=10)))
    await gateway.billing.flush()
    assert (await gateway.money.rows())[0].cost_microusd is None


async def test_what_costs_nothing_needs_no_budget(gateway: Gateway) -> None:
    free = route("m", price=Price(input_per_mtok=0, output_per_mtok=0))
    assert await gateway.admission.admit(await gateway.caller(budget=Budget(total=0)), asked(), free)


async def test_rates_are_exact_and_told(gateway: Gateway) -> None:
    caller, over = await gateway.caller(rates=Rates(requests=50)), route("gpt-4o-mini")
    answers = await asyncio.gather(
        *(gateway.admission.admit(caller, asked(), over) for _ in range(300)), return_exceptions=True
    )
    passed = [answer for answer in answers if not isinstance(answer, BaseException)]
    assert len(passed) == 50
    assert ("x-ratelimit-remaining-requests", "0") in passed[-1].headers
    assert all(isinstance(a, GatewayError) and a.status == 429 and a.headers for a in answers if a not in passed)


async def test_tokens_count_as_asked_and_then_as_used(gateway: Gateway) -> None:
    caller, over = await gateway.caller(rates=Rates(tokens=1000)), route("gpt-4o-mini")
    request = asked(max_tokens=600)
    admitted = await gateway.admission.admit(caller, request, over)
    assert (await refused(gateway.admission.admit(caller, request, over)))[:2] == (429, "rate_limit_exceeded")
    admitted.settle(settlement(caller, request, over, Usage(prompt_tokens=5, completion_tokens=95, total_tokens=100)))
    assert dict((await gateway.admission.admit(caller, request, over)).headers)["x-ratelimit-remaining-tokens"] < "300"


async def test_streams_are_counted_until_they_are_settled(gateway: Gateway) -> None:
    caller, over = await gateway.caller(rates=Rates(streams=1)), route("gpt-4o-mini")
    request = asked(stream=True)
    admitted = await gateway.admission.admit(caller, request, over)
    assert "1 streams open at once" in (await refused(gateway.admission.admit(caller, request, over)))[2]
    assert await gateway.admission.admit(caller, asked(), over)
    admitted.settle(settlement(caller, request, over, Usage()))
    assert await gateway.admission.admit(caller, request, over)


async def test_a_call_that_the_budget_refuses_holds_no_stream(gateway: Gateway) -> None:
    caller = await gateway.caller(budget=Budget(total=10), rates=Rates(streams=1))
    for _ in range(3):
        answer = await refused(gateway.admission.admit(caller, asked(stream=True), route("gpt-4o-mini")))
        assert answer[1] == "budget_exceeded"


async def test_a_model_that_is_not_allowed(gateway: Gateway) -> None:
    caller = await gateway.caller(models=("local/*",))
    assert (await refused(gateway.admission.admit(caller, asked(), route("m"))))[:2] == (403, "model_not_allowed")


async def test_a_picture_in_the_prompt_is_not_counted_as_text(gateway: Gateway) -> None:
    caller, over = await gateway.caller(budget=Budget(total=10_000)), route("gpt-4o-mini")
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 3_000_000}}
    request = asked(messages=[{"role": "user", "content": [picture]}], max_tokens=10)
    assert await gateway.admission.admit(caller, request, over)


@pytest.mark.parametrize(
    "price",
    [
        None,
        Price(input_per_mtok=1, output_per_mtok=10),
        Price(input_per_mtok=1, output_per_mtok=10, cached_per_mtok=0.1, reasoning_per_mtok=20),
        Price(input_per_mtok=1, output_per_mtok=10, cache_write_per_mtok=2),
        Price(input_per_mtok=1, output_per_mtok=10, audio_output_per_mtok=100),
    ],
)
@pytest.mark.parametrize("model", ["gpt-4o-mini", "gpt-5.4"])  # the second has two tiers
@pytest.mark.parametrize(
    "members",
    [
        {},
        {"max_tokens": 7, "n": 3},
        {"max_completion_tokens": None, "max_tokens": 7},
        {"modalities": ["text", "audio"], "audio": {"voice": "alloy", "format": "wav"}},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x" * 9000, "cache_control": {}}]}]},
    ],
)
def test_what_is_set_aside_is_the_same_by_the_short_way(
    price: Price | None, model: str, members: dict[str, Any]
) -> None:
    pricing, request = Pricing(4096, PriceBook(read_price_table)), asked(**members)
    prices = pricing.prices(route(model, "gpt-4o-mini", price=price), time.time_ns() // 1_000_000)
    bound = pricing._bound(request)
    most = max(pricing._most(tariff, bound, request.n, "text", 0) for _, tariff in prices.tariffs if tariff is not None)
    assert pricing.most(request, prices, budgeted=True) == most > 0


async def test_a_cost_that_was_told_is_that_answers_alone(gateway: Gateway) -> None:
    caller, over = await gateway.caller(), route("gpt-4o-mini", "gpt-4o", price=Price(input_per_mtok=1))
    told, more = Usage(prompt_tokens=10), Usage(prompt_tokens=70)
    tally = Tally(started_ms=time.time_ns() // 1_000_000, media=0, estimated=False)
    admitted = await gateway.admission.admit(caller, asked(), over)
    assert admitted.cost(over.targets[0], told, tally) == 10
    admitted.lose(settlement(caller, asked(), over, more, target=over.targets[1], error_code="hedged"))
    admitted.settle(settlement(caller, asked(), over, told))
    drawn = await gateway.admission.admit(caller, asked(), over)
    assert drawn.cost(over.targets[0], told, tally) == 10
    drawn.settle(settlement(caller, asked(), over, told, target=route("no-such-model").targets[0]))
    await gateway.billing.flush()
    costs = {(row.upstream_model, row.cost_microusd) for row in await gateway.money.rows()}
    assert costs == {("gpt-4o", 70), ("gpt-4o-mini", 10), ("no-such-model", None)}
