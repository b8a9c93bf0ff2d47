"""Billing: exact under concurrency in one process and in two, nothing lost or doubled when one is killed."""

import asyncio
import secrets
import sys
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from postgres import Postgres
from sqlalchemy import event, func, select, text

from trunkline.calls.billing import TICK_S, Billing, Hold
from trunkline.calls.life import Life
from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key, KeyGroup
from trunkline.core.money import Budget, LedgerRow, day_of
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlLeases
from trunkline.storage.sql.migrate import upgrade
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.tables import ledger, reservations, spend

NOW = time.time_ns() // 1_000_000
PRICE = 7
Start = Callable[..., AbstractAsyncContextManager[Billing]]


def a_key(name: str = "key_1", group: KeyGroup | None = None, **budget: int) -> Key:
    return Key(id=name, name=name, budget=Budget(**budget), group=group)


def a_row(key: Key, cost: int | None, **changes: object) -> LedgerRow:
    facts = {"key_id": key.id, "group_id": key.group_id, "started_ms": NOW, "ended_ms": NOW, "cost_microusd": cost}
    return LedgerRow(**({"id": f"call_{secrets.token_hex(8)}"} | facts | changes))  # type: ignore[arg-type]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start the billing of one more process on a database."""

    @asynccontextmanager
    async def process(on: Database) -> AsyncIterator[Billing]:
        life = Life(SqlLeases(on), f"p-{secrets.token_hex(4)}")
        await life.begin()
        billing = Billing(SqlMoney(on), life, FileJournal(tmp_path / "journal"))
        await billing.sweep()
        tasks = [asyncio.ensure_future(run) for run in (life.run(), billing.run())]
        await asyncio.sleep(0)
        try:
            yield billing
        finally:
            for task in reversed(tasks):
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
            await life.end()

    return process


async def call(billing: Billing, key: Key, amount: int = PRICE, cost: int | None = None) -> bool:
    """Make one call as the gateway does; tell whether it was admitted."""
    try:
        hold = await billing.reserve(key, amount, NOW)
    except GatewayError as error:
        if error.code == "budget_exceeded":
            return False
        raise
    await asyncio.sleep(0.001)
    assert billing.settle(hold, a_row(key, amount if cost is None else cost))
    return True


async def sums(database: Database, owner: str = "key_1") -> tuple[int, int, int, int]:
    """Give what an owner spent, what it holds reserved, and the ledger's sum and count; check they belong together."""
    async with database.read() as connection:
        rows = (await connection.execute(select(spend).where(spend.c.owner_id == owner))).all()
        ours = (ledger.c.key_id == owner) | (ledger.c.group_id == owner)
        query = select(func.coalesce(func.sum(ledger.c.cost_microusd), 0), func.count()).where(ours)
        cost, count = (await connection.execute(query)).one()
        opened = select(func.coalesce(func.sum(reservations.c.amount_microusd), 0)).where(
            reservations.c.state == "open",
            (reservations.c.key_id == owner) | (reservations.c.group_id == owner),
        )
        reserved = (await connection.execute(opened)).scalar_one()
    assert {(row.spent_microusd, row.calls) for row in rows} <= {(cost, count)}
    assert {row.reserved_microusd for row in rows} <= {reserved}
    return cost, reserved, cost, count


async def test_of_400_calls_exactly_50_fit_a_budget_of_50_prices(start: Start, database: Database) -> None:
    key = a_key(total=50 * PRICE)
    async with start(database) as billing:
        passed = await asyncio.gather(*(call(billing, key) for _ in range(400)))
        assert sum(passed) == 50
    assert await sums(database) == (350, 0, 350, 50)


@pytest.mark.parametrize("prices", [50, 2000])
async def test_two_processes_share_one_budget_exactly(
    start: Start, database: Database, database_url: str | Path, prices: int
) -> None:
    key, other = a_key(month=prices * PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        passed = await asyncio.gather(*(call(one if n % 2 else two, key) for n in range(prices * 2 + 300)))
        assert sum(passed) == prices
    await other.close()
    assert await sums(database) == (prices * PRICE, 0, prices * PRICE, prices)


async def test_what_one_process_does_not_use_another_gets(
    start: Start, database: Database, database_url: str | Path
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
        await asyncio.sleep(TICK_S * 5)
        assert (await sums(database))[1] == 0  # nobody uses it: it is given back
    assert await sums(database) == (7, 0, 7, 1)


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
        with pytest.raises(GatewayError, match=r"this key's budget of \$0.00001 a month does not allow this call"):
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


async def test_a_process_that_slept_too_long_begins_anew(start: Start, database: Database) -> None:
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


async def refused(billing: Billing, key: Key, amount: int = PRICE) -> str:
    with pytest.raises(GatewayError) as error:
        await billing.reserve(key, amount, NOW)
    return error.value.code


async def until(state: Callable[[], bool]) -> None:
    for _ in range(1000):
        if state():
            return
        await asyncio.sleep(0.02)
    raise TimeoutError


async def through_an_outage(billing: Billing, lose: Callable[[], None], regain: Callable[[], None]) -> None:
    """Calls that run when the database goes away are booked when it is back; new ones that cost money are refused."""
    budgeted, free = a_key("key_1", total=10**6), a_key("key_2")
    running = [await billing.reserve(key, PRICE, NOW) for key in (budgeted, free) for _ in range(10)]
    lose()
    for hold, key in zip(running, [budgeted] * 10 + [free] * 10, strict=True):
        billing.settle(hold, a_row(key, PRICE, extra="x" * 9000))
    await until(lambda: billing.trouble)
    assert await refused(billing, budgeted) == await refused(billing, free) == "storage_unavailable"
    assert await billing.reserve(budgeted, 0, NOW)
    await asyncio.sleep(2 * TICK_S)
    regain()
    await until(lambda: not billing.trouble)
    assert await call(billing, budgeted)
    assert await call(billing, free)


@pytest.mark.parametrize("most_rows", [20_000, 0])
async def test_a_full_disk_refuses_calls_that_cost_money_and_loses_nothing(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_rows: int
) -> None:
    monkeypatch.setattr("trunkline.calls.billing.MOST_ROWS", most_rows)
    database = Database.at(tmp_path / "trunkline.db")
    await upgrade(database)
    pages = 1 << 30

    def limit(connection: Any) -> None:
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    event.listen(database.writer.sync_engine, "begin", limit)

    def fill() -> None:
        nonlocal pages
        pages = 1

    def empty() -> None:
        nonlocal pages
        pages = 1 << 30

    async with start(database) as billing:
        await through_an_outage(billing, fill, empty)
    assert await sums(database) == (77, 0, 77, 11)
    assert await sums(database, "key_2") == (77, 0, 77, 11)
    await database.close()


@pytest.mark.scale
async def test_a_lost_postgresql_refuses_calls_that_cost_money_and_loses_nothing(
    start: Start, postgres_server: Postgres, postgres_url: str
) -> None:
    database = Database.at(postgres_url)
    await upgrade(database)
    async with start(database) as billing:
        await through_an_outage(billing, postgres_server.stop, postgres_server.start)
    assert await sums(database) == (77, 0, 77, 11)
    assert await sums(database, "key_2") == (77, 0, 77, 11)
    await database.close()


WORKER = """
import asyncio, secrets, sys, time
from pathlib import Path
from trunkline.calls.billing import Billing
from trunkline.calls.life import Life
from trunkline.core.keys import Key
from trunkline.core.errors import GatewayError
from trunkline.core.money import Budget, LedgerRow
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlLeases
from trunkline.storage.sql.money import SqlMoney

async def main(url, journal, budget):
    database = Database.at(Path(url) if url.startswith("/") else url)
    life = Life(SqlLeases(database), secrets.token_hex(4))
    await life.begin()
    billing = Billing(SqlMoney(database), life, FileJournal(Path(journal)))
    keys = [Key(id="key_1", name="a", budget=Budget(total=int(budget))), Key(id="key_2", name="b")]

    async def client(key):
        while True:
            now = time.time_ns() // 1_000_000
            try:
                hold = await billing.reserve(key, 10, now)
            except GatewayError:
                await asyncio.sleep(0.01)
                continue
            await asyncio.sleep(0.003)
            name, cost = "call_" + secrets.token_hex(8), 1 + secrets.randbelow(10)
            billing.settle(hold, LedgerRow(
                id=name, key_id=key.id, started_ms=now, ended_ms=now, cost_microusd=cost))
            await asyncio.sleep(0)  # the turn of the loop in which it is written down
            await asyncio.sleep(0)
            sys.stdout.write(f"{name} {key.id} {cost}\\n")
            sys.stdout.flush()

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(life.run())
        tasks.create_task(billing.run())
        for n in range(20):
            tasks.create_task(client(keys[n % 2]))

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.mark.faults
async def test_killed_processes_leave_no_lost_and_no_doubled_money(
    start: Start, database: Database, database_url: str | Path, tmp_path: Path
) -> None:
    budget, journal = 3000, tmp_path / "journal"
    arguments = [sys.executable, "-c", WORKER, str(database_url), str(journal), str(budget)]
    workers = [await asyncio.create_subprocess_exec(*arguments, stdout=asyncio.subprocess.PIPE) for _ in range(2)]
    told: list[bytes] = []
    for worker in workers:
        assert worker.stdout is not None
        told += [await worker.stdout.readline() for _ in range(60)]
    for worker in workers:
        worker.kill()
        assert worker.stdout is not None
        told += (await worker.stdout.read()).splitlines(keepends=True)
        await worker.wait()
    whole = [line.decode().split() for line in told if line.endswith(b"\n")]
    settled = {name: (key, int(cost)) for name, key, cost in whole}
    async with database.write() as connection:
        await connection.execute(text("UPDATE leases SET until_ms = 1"))  # their leases are over
    async with start(database):
        pass
    async with database.read() as connection:
        rows = {row.id: (row.key_id, row.cost_microusd) for row in await connection.execute(select(ledger))}
    assert settled.items() <= rows.items()
    for owner in ("key_1", "key_2"):
        assert (await sums(database, owner))[1] == 0
    assert (await sums(database))[0] <= budget
    assert [path.suffix for path in journal.iterdir()] == []
