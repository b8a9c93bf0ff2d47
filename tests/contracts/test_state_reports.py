from typing import Any

import pytest
import pytest_asyncio

from trunkline.core.keys import GroupChanges, KeyChanges
from trunkline.core.money import Budget, LedgerRow, Spend, day_of
from trunkline.core.reports import KeyCounts, KeyRef, ProviderCalls, Quantiles, Repaired, Span, Used
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.keys import SqlKeys
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.reports import SqlReports

HOUR = 3_600_000
T0 = 1_790_000_000_000 // HOUR * HOUR
DAY = day_of(T0)
SPAN = Span(T0, T0 + 3 * HOUR, HOUR)


def row(number: int, hour: int = 0, **members: Any) -> LedgerRow:
    started = T0 + hour * HOUR + 1000 * number
    usual = {"key_id": "k1", "model": "a", "provider": "p", "started_ms": started, "ended_ms": started + 1000}
    return LedgerRow(**{"id": f"r{number}", "prompt_tokens": 10, "completion_tokens": 5, **usual, **members})


@pytest_asyncio.fixture
async def reports(database: Database) -> SqlReports:
    return SqlReports(database)


@pytest.fixture
def money(database: Database) -> SqlMoney:
    return SqlMoney(database)


async def test_usage_is_summed_by_bucket_and_name(reports: SqlReports, money: SqlMoney) -> None:
    rows = [row(1, cost_microusd=5), row(2, cost_microusd=7, estimated=True), row(3, 2, model="b", end_reason="failed")]
    rows += [row(4, model="c", key_id=""), row(5, 1, model="c", images=2, video_ms=4000), row(6, 4), row(7, -1)]
    await money.book(rows, {})
    a = Used(at_ms=T0, name="a", calls=2, estimated=1, prompt_tokens=20, completion_tokens=10, cost_microusd=12)
    c = Used(at_ms=T0 + HOUR, name="c", calls=1, prompt_tokens=10, completion_tokens=5, images=2, video_ms=4000)
    assert await reports.usage(SPAN, "model", most=8) == [
        a,
        Used(at_ms=T0, name="c", calls=1, prompt_tokens=10, completion_tokens=5),
        c,
        Used(at_ms=T0 + 2 * HOUR, name="b", calls=1, failed=1, prompt_tokens=10, completion_tokens=5),
    ]
    named = [(used.at_ms, used.name, used.calls) for used in await reports.usage(SPAN, "model", most=1)]
    assert sorted(named, key=str) == [(T0, "a", 2), (T0, None, 1), (T0 + HOUR, None, 1), (T0 + 2 * HOUR, None, 1)]
    assert {used.name for used in await reports.usage(SPAN, "key", most=8)} == {"", "k1"}
    assert [(used.at_ms, used.calls, used.cost_microusd) for used in await reports.used(SPAN)] == [
        (T0, 3, 12),
        (T0 + HOUR, 1, 0),
        (T0 + 2 * HOUR, 1, 0),
    ]


async def test_quantiles_are_measured_values(reports: SqlReports, money: SqlMoney) -> None:
    await money.book([row(number, first_event_ms=number, streamed=True) for number in range(1, 101)], {})
    await money.book([row(200, 1, provider="q"), row(201, 1, first_event_ms=4, completion_tokens=1, streamed=True)], {})
    assert await reports.quantiles(SPAN, "first_event_ms") == [
        Quantiles(T0, 50, 95, 99),
        Quantiles(T0 + HOUR, 4, 4, 4),
    ]
    assert await reports.quantiles(SPAN, "duration_ms", provider="q") == [Quantiles(T0 + HOUR, 1000, 1000, 1000)]
    gaps = await reports.quantiles(SPAN, "token_gap_ms", model="a")
    assert [(one.at_ms, one.p50) for one in gaps] == [(T0, (1000 - 51) / 4)]


async def test_repairs_are_counted_by_rule(reports: SqlReports, money: SqlMoney) -> None:
    rows = [row(1, repairs='{"role_missing":2,"done_missing":1}'), row(2, repairs='{"role_missing":3}'), row(3)]
    await money.book([*rows, row(4, 1, provider="q", model="b", repairs='{"role_missing":1}')], {})
    q = Repaired(T0 + HOUR, "q", "role_missing", 1)
    assert await reports.repairs(SPAN) == [
        Repaired(T0, "p", "done_missing", 1),
        Repaired(T0, "p", "role_missing", 5),
        q,
    ]
    assert await reports.repairs(SPAN, model="b", provider="q") == [q]


async def test_providers_answer_for_their_own_faults(reports: SqlReports, money: SqlMoney) -> None:
    refused: dict[str, Any] = {"end_reason": "failed", "status": 400, "error_code": "invalid_value"}
    rate: dict[str, Any] = {"end_reason": "failed", "status": 429, "error_code": "rate_limit_exceeded"}
    slow: dict[str, Any] = {"end_reason": "timeout", "status": 504, "error_code": "upstream_timeout"}
    rows = [row(1, first_event_ms=10), row(2, first_event_ms=30), row(3, first_event_ms=20), row(4, **refused)]
    await money.book([*rows, row(5, **slow), row(6, **rate), row(7, provider=""), row(8, -1)], {})
    assert await reports.providers(T0) == {
        "p": ProviderCalls(6, 2, 20, "rate_limit_exceeded", T0 + 7000),
    }
    assert await reports.providers(T0 + HOUR) == {}


async def test_keys_are_counted_named_and_their_spending_told(
    database: Database, reports: SqlReports, money: SqlMoney
) -> None:
    store = SqlKeys(database)
    await store.add_group("g1", GroupChanges(name="g"))
    for number, settings in enumerate(
        (
            KeyChanges(name="one", budget=Budget(month=10)),
            KeyChanges(name="two", budget=Budget(day=11)),
            KeyChanges(name="three", state="blocked"),
            KeyChanges(name="four", expires_ms=1),
        )
    ):
        await store.add_key(f"k{number}", bytes([number]) * 32, "sk", settings)
    await money.book([row(1, key_id="k0", cost_microusd=10), row(2, key_id="k1", cost_microusd=10)], {})
    assert await reports.key_counts(DAY) == KeyCounts(active=2, blocked=1, over_budget=1)
    assert await reports.key_refs(["k0", "k2", "k0", "gone"]) == {
        "k0": KeyRef("k0", "one"),
        "k2": KeyRef("k2", "three"),
    }
    assert await reports.last_used(["k0", "k1", "k2"]) == {"k0": T0 + 1000, "k1": T0 + 2000}
    assert await reports.spends(["k0", "k2"], ["total", DAY]) == {
        ("k0", "total"): Spend("total", 10, 0, 1),
        ("k0", DAY): Spend(DAY, 10, 0, 1),
    }
