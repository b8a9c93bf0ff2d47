"""Billing: exact under concurrency in one process and in two."""

import asyncio
import secrets
from pathlib import Path

import pytest
from billing_process import NOW, PRICE, TTL_S, Start, a_key, a_row, call, sums
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select, text

from trunkline.calls.billing import TICK_S, Billing, Hold
from trunkline.core.errors import GatewayError
from trunkline.core.keys import KeyGroup
from trunkline.core.money import Budget, day_of
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.tables import spend

pytestmark = pytest.mark.scale


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for what others hold without using it, however long a busy machine takes; it comes when asked for."""
    monkeypatch.setattr("trunkline.calls.allowance.PATIENCE_S", 120.0)
    monkeypatch.setattr("trunkline.calls.billing.IDLE_TICKS", 10**9)


async def test_of_400_calls_exactly_50_fit_a_budget_of_50_prices(start: Start, database: Database) -> None:
    key = a_key(total=50 * PRICE)
    async with start(database) as billing:
        passed = await asyncio.gather(*(call(billing, key) for _ in range(400)))
        assert sum(passed) == 50
    assert await sums(database) == (350, 0, 350, 50)


@pytest.mark.parametrize("prices", [50, 500])
async def test_two_processes_share_one_budget_exactly(
    start: Start, database: Database, database_url: str | Path, patient: None, prices: int
) -> None:
    key, other = a_key(month=prices * PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        passed = await asyncio.gather(*(call(one if n % 2 else two, key) for n in range(prices * 2 + 300)))
        assert sum(passed) == prices
    await other.close()
    assert await sums(database) == (prices * PRICE, 0, prices * PRICE, prices)


async def test_what_one_process_does_not_use_another_gets(
    start: Start, database: Database, database_url: str | Path, patient: None
) -> None:
    key, other = a_key(total=1600 * PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        assert await call(one, key)  # and holds a sixteenth
        passed = await asyncio.gather(*(call(two, key) for _ in range(1700)))
        assert sum(passed) == 1599
    await other.close()


async def test_a_group_and_its_keys_are_limited_together(start: Start, database: Database) -> None:
    group = KeyGroup(id="grp_1", name="g", budget=Budget(day=30 * PRICE))
    keys = [a_key("key_1", group, total=20 * PRICE), a_key("key_2", group), a_key("key_3", group, day=5 * PRICE)]
    async with start(database) as billing:
        passed = await asyncio.gather(*(call(billing, keys[n % 3]) for n in range(120)))
        assert sum(passed) == 30
        assert sum(passed[0::3]) <= 20
        assert sum(passed[2::3]) <= 5
    assert (await sums(database, "grp_1"))[:2] == (30 * PRICE, 0)


async def test_a_key_without_a_budget_waits_for_nothing(start: Start, database: Database) -> None:
    key = a_key()
    async with start(database) as billing:
        holds = [billing.try_reserve(key, PRICE, NOW) for _ in range(1000)]
        assert None not in holds
        for hold in holds:
            assert billing.settle(hold, a_row(key, PRICE))  # type: ignore[arg-type]
            assert not billing.settle(hold, a_row(key, PRICE))  # type: ignore[arg-type]
    assert await sums(database) == (7000, 0, 7000, 1000)


async def test_a_budget_with_plenty_costs_the_database_little(start: Start, database: Database) -> None:
    key = a_key(total=10**9)
    async with start(database) as billing:
        assert await call(billing, key)
        holds = [billing.try_reserve(key, PRICE, NOW) for _ in range(1000)]
        assert None not in holds
        for hold in holds:
            billing.release(hold)  # type: ignore[arg-type]
            billing.release(hold)  # type: ignore[arg-type]
    assert await sums(database) == (7, 0, 7, 1)


async def test_an_allowance_at_rest_lets_the_next_call_in_at_once_and_is_not_shown_as_reserved(
    start: Start, database: Database
) -> None:
    key = a_key(total=10**9)
    async with start(database) as billing:
        assert await call(billing, key)
        for _ in range(8):
            await asyncio.sleep(TICK_S)
            await billing.flush()
        assert billing.try_reserve(key, PRICE, NOW) is not None
        assert (await sums(database))[1] > 0
        assert [spend.reserved for spend in await SqlMoney(database).spend(key.id, ["total", day_of(NOW)])] == [0, 0]


async def test_an_allowance_that_nobody_uses_for_long_is_given_back(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.calls.billing.IDLE_TICKS", 2)
    async with start(database) as billing:
        assert await call(billing, a_key(total=10**9))
        async with asyncio.timeout(60):
            while (await sums(database))[1]:  # noqa: ASYNC110 - it happens by the clock
                await asyncio.sleep(TICK_S)


async def test_a_job_gets_what_calls_do_not_use(
    start: Start, database: Database, database_url: str | Path, patient: None
) -> None:
    key, other = a_key(total=1600 * PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        assert await call(one, key)
        assert await call(two, key)
        assert await two.reserve_job(key, 1598 * PRICE, "job_1", NOW)
        with pytest.raises(GatewayError, match="less than that is left"):
            await one.reserve_job(key, PRICE, "job_2", NOW)
        assert [spend.reserved for spend in await SqlMoney(database).spend(key.id, ["total"])] == [1598 * PRICE]
    await other.close()


async def test_a_dearer_call_is_booked_whole_and_the_next_is_refused(start: Start, database: Database) -> None:
    key = a_key(total=10 * PRICE)
    async with start(database) as billing:
        hold, other = await billing.reserve(key, PRICE, NOW), await billing.reserve(key, PRICE, NOW)
        billing.settle(hold, a_row(key, 100 * PRICE))
        assert not await call(billing, key)
        billing.settle(other, a_row(key, 2))
        assert not await call(billing, key, 1)
    assert await sums(database) == (702, 0, 702, 2)


async def test_a_free_call_passes_when_the_budget_is_spent(start: Start, database: Database) -> None:
    key = a_key(total=0)
    async with start(database) as billing:
        assert not await call(billing, key)
        assert await call(billing, key, 0)


async def test_a_refusal_names_the_budget(start: Start, database: Database) -> None:
    async with start(database) as billing:
        with pytest.raises(GatewayError, match=r"\$0.00001 a month does not .* may cost up to \$0.000011, and less"):
            await billing.reserve(a_key(month=10), 11, NOW)


async def test_a_client_that_leaves_while_it_waits_costs_nothing(start: Start, database: Database) -> None:
    key = a_key(total=50 * PRICE)
    async with start(database) as billing:
        waiting = [asyncio.ensure_future(billing.reserve(key, PRICE, NOW)) for _ in range(40)]
        for n, call_ in enumerate(waiting):
            await asyncio.sleep(0.0005 * (n % 3))
            call_.cancel()
        await asyncio.wait(waiting)
        for call_ in waiting:
            if not call_.cancelled():
                billing.release(call_.result())
        passed = await asyncio.gather(*(call(billing, key) for _ in range(60)))
        assert sum(passed) == 50
    assert await sums(database) == (350, 0, 350, 50)


async def test_a_changed_budget_counts_from_the_next_call(start: Start, database: Database) -> None:
    key = a_key(total=10**9)
    async with start(database) as billing:
        assert await call(billing, key)
        assert not await call(billing, a_key(total=PRICE))
        assert await call(billing, a_key(total=2 * PRICE))


async def test_a_new_day_has_its_own_budget(start: Start, database: Database) -> None:
    key, tomorrow = a_key(day=10 * PRICE), NOW + 86_400_000
    async with start(database) as billing:
        late = await billing.reserve(key, 10 * PRICE, NOW)
        assert not await call(billing, key)
        hold = await billing.reserve(key, 10 * PRICE, tomorrow)
        billing.settle(hold, a_row(key, PRICE, started_ms=tomorrow))
        billing.settle(late, a_row(key, 3 * PRICE))
    async with database.read() as connection:
        query = select(spend.c.period, spend.c.spent_microusd, spend.c.reserved_microusd)
        found = {row[0]: row[1:] for row in await connection.execute(query.where(spend.c.owner_id == "key_1"))}
    assert found["total"] == (4 * PRICE, 0)
    assert found[day_of(NOW)] == (3 * PRICE, 0)
    assert found[day_of(tomorrow)] == (PRICE, 0)


async def test_a_process_that_slept_too_long_begins_anew(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.calls.life.RENEW_S", 600.0)  # it sleeps until it is told to renew
    key = a_key(total=10**6)
    async with start(database) as billing:
        hold = await billing.reserve(key, PRICE, NOW)
        async with database.write() as connection:
            await connection.execute(text("UPDATE leases SET until_ms = 1"))
        assert await SqlMoney(database).sweep() == 1
        await billing._life.renew()
        assert billing.try_reserve(key, PRICE, NOW) is None
        assert await call(billing, key)
        billing.settle(hold, a_row(key, PRICE))
    assert await sums(database) == (14, 0, 14, 2)


async def test_what_a_process_set_aside_before_it_slept_counts_once(start: Start, database: Database) -> None:
    key = a_key(total=50 * PRICE)
    async with start(database) as billing:
        holds = [await billing.reserve(key, PRICE, NOW) for _ in range(20)]
        async with database.write() as connection:
            await connection.execute(text("UPDATE leases SET until_ms = 1"))
        await billing._life.renew()
        passed = await asyncio.gather(*(call(billing, key) for _ in range(400)))
        assert sum(passed) == 30
        for hold in holds:
            billing.settle(hold, a_row(key, PRICE))
    assert await sums(database) == (350, 0, 350, 50)


async def test_nobody_spends_what_a_process_that_stalls_has_set_aside(start: Start, database: Database) -> None:
    key = a_key(total=50 * PRICE)
    async with start(database) as stalling, start(database) as other:
        holds = [await stalling.reserve(key, PRICE, NOW) for _ in range(20)]
        async with database.write() as connection:
            past = text("UPDATE leases SET until_ms = until_ms - :ms WHERE holder = :holder")  # a second
            await connection.execute(past, {"ms": int(TTL_S * 1000) + 1000, "holder": stalling._life.holder})
        await other.sweep()
        passed = await asyncio.gather(*(call(other, key) for _ in range(100)))
        await stalling._life.renew()
        await other.sweep()
        passed += await asyncio.gather(*(call(billing, key) for billing in (stalling, other) for _ in range(100)))
        assert sum(passed) == 30
        for hold in holds:
            stalling.settle(hold, a_row(key, PRICE))
    assert await sums(database) == (350, 0, 350, 50)


async def test_a_call_waits_for_a_process_that_stalled(start: Start, database: Database) -> None:
    key = a_key(total=10**6)
    async with start(database) as billing:
        billing._life._until = 0.0
        assert await call(billing, key)
    assert (await sums(database))[:2] == (7, 0)


async def test_a_row_that_cannot_be_stored_does_not_hold_up_the_others(
    start: Start, database: Database, tmp_path: Path
) -> None:
    key = a_key(total=10**6)
    async with start(database) as billing:
        for tokens in (1, 2**70, 2):
            billing.settle(await billing.reserve(key, PRICE, NOW), a_row(key, PRICE, prompt_tokens=tokens))
    assert await sums(database) == (14, 0, 14, 2)
    assert str(2**70) in (tmp_path / "journal" / "rejected.jsonl").read_text()


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    budget=st.integers(0, 400),
    calls=st.lists(st.tuples(st.integers(0, 1), st.integers(1, 40), st.floats(0, 1), st.booleans()), max_size=60),
)
async def test_parallel_calls_never_exceed_a_budget_and_leave_nothing_reserved(
    start: Start, database: Database, database_url: str | Path,
    budget: int, calls: list[tuple[int, int, float, bool]],
) -> None:  # fmt: skip
    key, other = a_key(f"key_{secrets.token_hex(4)}", total=budget), Database.at(database_url)
    spent = 0

    async def one(billing: Billing, amount: int, part: float, leaves: bool) -> None:  # noqa: FBT001
        nonlocal spent
        try:
            hold: Hold = await billing.reserve(key, amount, NOW)
        except GatewayError:
            return
        await asyncio.sleep(0.002 * part)
        if leaves:
            billing.release(hold)
            return
        spent += (cost := int(amount * part))
        billing.settle(hold, a_row(key, cost))

    async with start(database) as first, start(other) as second:
        await asyncio.gather(*(one((first, second)[which], *rest) for which, *rest in calls))  # type: ignore[arg-type]
    await other.close()
    assert spent <= budget
    assert (await sums(database, key.id))[:2] == (spent, 0)
