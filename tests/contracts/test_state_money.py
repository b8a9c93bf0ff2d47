"""Budgets and the ledger: nothing is given twice, nothing is booked twice, nothing is left reserved."""

import asyncio
import secrets
import time

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import func, select, text

from trunkline.core.jobs import Job, JobChanges
from trunkline.core.keys import Key, KeyGroup
from trunkline.core.money import Budget, LedgerRow, Spend, day_of
from trunkline.core.state import Ask, Kept, Leases, MoneyStore, StaleOwnerError
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.leases import SqlLeases
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.tables import ledger, reservations, spend

pytestmark = pytest.mark.scale

NOW = time.time_ns() // 1_000_000
DAY = day_of(NOW)
PERIODS = ("total", DAY, DAY[:7])


@pytest.fixture
def money(database: Database) -> MoneyStore:
    return SqlMoney(database)


@pytest.fixture
def leases(database: Database) -> Leases:
    return SqlLeases(database)


def a_key(name: str = "key_1", group: KeyGroup | None = None, **budget: int) -> Key:
    return Key(id=name, name=name, budget=Budget(**budget), group=group)


def asked(key: Key, reservation_id: str, must: int, demand: int, holder: str = "a#1") -> Ask:
    return Ask(reservation_id=reservation_id, holder=holder, key=key, day=DAY, must=must, demand=demand)


def a_row(cost: int | None, key: Key, **changes: object) -> LedgerRow:
    facts = {"key_id": key.id, "group_id": key.group_id, "started_ms": NOW, "ended_ms": NOW + 5, "cost_microusd": cost}
    return LedgerRow(**({"id": f"call_{secrets.token_hex(8)}"} | facts | changes))  # type: ignore[arg-type]


async def booked(money: MoneyStore, owner: str) -> tuple[int, int, int]:
    """Give what an owner spent, what its calls hold reserved, and how many they were; the same in all periods."""
    found = {(now.spent, now.reserved, now.calls) for now in await money.spend(owner, PERIODS)}
    assert len(found) == 1
    return found.pop()


async def check_invariants(database: Database) -> None:
    """What is reserved is the sum of the open reservations; what is spent is the sum of the ledger."""
    async with database.read() as connection:
        for owner, column, row_column in (
            ("key_1", reservations.c.key_id, ledger.c.key_id),
            ("grp_1", reservations.c.group_id, ledger.c.group_id),
        ):
            query = select(spend.c.spent_microusd, spend.c.reserved_microusd).where(spend.c.owner_id == owner)
            open_ones = select(func.coalesce(func.sum(reservations.c.amount_microusd), 0)).where(
                column == owner, reservations.c.state == "open"
            )
            costs = select(func.coalesce(func.sum(ledger.c.cost_microusd), 0)).where(row_column == owner)
            reserved, spent = (
                (await connection.execute(open_ones)).scalar_one(),
                (await connection.execute(costs)).scalar_one(),
            )
            for row in await connection.execute(query):
                assert tuple(row) == (spent, reserved), owner


async def test_exactly_as_many_reservations_pass_as_the_budget_holds(money: MoneyStore) -> None:
    key = a_key(total=50 * 7)
    grants = await asyncio.gather(*(money.reserve(f"res_{n}", key, DAY, 7, job_id=f"j{n}") for n in range(400)))
    assert sum(grant.free == 7 for grant in grants) == 50
    assert await booked(money, "key_1") == (0, 350, 0)
    refused = next(grant for grant in grants if not grant.free)
    assert "this key's budget of $0.00035 in all" in refused.short


@pytest.mark.parametrize("period", ["total", "day", "month"])
async def test_each_budget_of_key_and_group_limits(money: MoneyStore, period: str) -> None:
    group = KeyGroup(id="grp_1", name="g", budget=Budget(**{period: 10}))
    one, other = a_key("key_1", group), a_key("key_2", group, **{period: 8})
    assert (await money.reserve("res_1", one, DAY, 4, job_id="1")).free == 4
    assert (await money.reserve("res_2", other, DAY, 6, job_id="2")).free == 6
    assert "the group's budget" in (await money.reserve("res_3", one, DAY, 1, job_id="3")).short
    assert await money.release("res_1")
    assert "this key's budget" in (await money.reserve("res_4", other, DAY, 3, job_id="4")).short
    assert (await money.reserve("res_5", other, DAY, 2, job_id="5")).free == 2
    assert await booked(money, "grp_1") == (0, 8, 0)
    assert await booked(money, "key_2") == (0, 8, 0)


async def test_an_allowance_grows_where_there_is_plenty_and_meets_the_demand_where_not(
    money: MoneyStore, leases: Leases
) -> None:
    key = a_key(total=1600)
    a, b = [await leases.acquire(name, 60) for name in "ab"]
    assert (await money.resize(asked(key, "res_1", 0, 1, a))).free == 100
    assert (await money.resize(asked(key, "res_1", 0, 300, a))).free == 300
    assert (await money.resize(asked(key, "res_1", 300, 0, a))).free == 1300 // 16
    assert await booked(money, "key_1") == (0, 300, 0)  # what is spare no call holds
    grant = await money.resize(asked(key, "res_2", 0, 5000, b))
    assert (grant.free, grant.elsewhere, grant.held) == (1600 - 381, 81, 381)
    grant = await money.resize(asked(key, "res_1", 300, 5000, a))
    assert (grant.free, grant.elsewhere, grant.held) == (81, 0, 1600 - 381)


@pytest.mark.parametrize(("left_s", "coming"), [(60, 0), (1, 100), (-1, 100)])
async def test_what_is_held_under_a_lease_that_was_not_renewed_comes_back(
    money: MoneyStore, leases: Leases, left_s: float, coming: int
) -> None:
    key = a_key(total=100)
    await money.resize(asked(key, "res_1", 100, 0, await leases.acquire("a", left_s)))
    for grant in (await money.resize(asked(key, "res_2", 0, 1)), await money.reserve("res_3", key, DAY, 1, job_id="1")):
        assert (grant.free, grant.elsewhere, grant.held) == (0, coming, 100)


async def test_what_must_be_held_is_held_even_beyond_the_budget(money: MoneyStore) -> None:
    key = a_key(total=10)
    await money.resize(asked(key, "res_1", must=0, demand=10))
    grant = await money.resize(asked(key, "res_1", must=25, demand=1))
    assert grant.free == -15
    assert await booked(money, "key_1") == (0, 25, 0)


async def test_booking_moves_money_from_reserved_to_spent(money: MoneyStore, database: Database) -> None:
    key = a_key(total=100, group=KeyGroup(id="grp_1", name="g"))
    await money.resize(asked(key, "res_1", must=0, demand=30))
    await money.book([a_row(7, key), a_row(None, key), a_row(5, key)], {"res_1": Kept(18, 10)})
    assert await booked(money, "key_1") == await booked(money, "grp_1") == (12, 8, 3)
    await money.book([], {"res_1": Kept(0)})
    assert await booked(money, "key_1") == (12, 0, 3)
    await money.book([a_row(3, key)], {"res_1": Kept(50)})  # it has ended: it does not come back
    assert await booked(money, "key_1") == (15, 0, 4)
    await check_invariants(database)


async def test_a_batch_may_be_handed_in_again(money: MoneyStore, database: Database) -> None:
    key = a_key(total=100)
    await money.resize(asked(key, "res_1", must=0, demand=30))
    first, second = [a_row(2, key) for _ in range(3)], [a_row(4, key)]
    for batch in (first, first, first + second, second):
        await money.book(batch, {"res_1": Kept(20)})
    assert await booked(money, "key_1") == (10, 20, 4)
    await check_invariants(database)


async def test_a_row_comes_back_as_it_was_booked(money: MoneyStore) -> None:
    key = a_key()
    row = a_row(
        7, key, request_id="req_ä", model="m", provider="p", prompt_tokens=2**40, images=3, estimated=True,
        streamed=True, end_reason="cancelled", first_event_ms=NOW + 1, repairs='{"role_missing":1}', status=499,
    )  # fmt: skip
    await money.book([row, a_row(1, key, started_ms=NOW - 5)], {})
    assert (await money.rows())[0] == row
    assert len(await money.rows(key_id="key_1", after=row.id)) == 1
    assert await money.rows(key_id="key_2") == []
    assert await money.prune_ledger(NOW) == 1
    assert await booked(money, "key_1") == (8, 0, 2)


async def test_a_jobs_reservation_ends_once(money: MoneyStore, database: Database) -> None:
    key, jobs = a_key(total=100), SqlJobs(database)
    await jobs.add(Job(id="job_1", kind="video", key_id=key.id))
    await money.reserve("res_1", key, DAY, 60, job_id="job_1")
    row = a_row(75, key, id="job_1", job_id="job_1")
    ended = await asyncio.gather(
        *(money.settle("res_1", row) for _ in range(5)), *(money.release("res_1") for _ in range(5))
    )
    assert sum(ended) == 1
    job = await jobs.get("job_1")
    assert job is not None
    if ended.index(True) < 5:
        assert await booked(money, "key_1") == (75, 0, 1)
        assert (job.billed, job.cost_microusd) == (True, 75)
    else:
        assert await booked(money, "key_1") == (0, 0, 0)
        assert not job.billed
    await check_invariants(database)


async def test_a_settlement_dearer_than_reserved_is_booked_whole(money: MoneyStore) -> None:
    key = a_key(total=100)
    await money.reserve("res_1", key, DAY, 60, job_id="job_1")
    assert await money.settle("res_1", a_row(175, key, job_id="job_1"))
    assert await booked(money, "key_1") == (175, 0, 1)
    assert (await money.reserve("res_2", key, DAY, 1, job_id="job_2")).free == -75


async def test_allowances_of_the_dead_are_swept(
    money: MoneyStore, leases: Leases, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, jobs = a_key(total=100), SqlJobs(database)
    alive, dead = await leases.acquire("a", 60), await leases.acquire("b", 0.02)
    await money.resize(asked(key, "res_alive", 0, 10, alive))
    await money.resize(asked(key, "res_dead", 0, 20, dead))
    await jobs.add(Job(id="job_1", kind="video"))
    await money.reserve("res_job", key, DAY, 30, job_id="job_1")
    before = await leases.acquire("c", 60)
    await money.resize(asked(key, "res_before", 0, 7, before))
    async with database.write() as connection:  # the clock was set back by three hours since
        await connection.execute(text("UPDATE leases SET until_ms = until_ms + 10800000 WHERE name = 'c'"))
    await asyncio.sleep(0.05)
    assert await money.sweep() == 1  # the other may only stall
    monkeypatch.setattr("trunkline.storage.sql.money.STALLED_MS", 0)
    assert await money.sweep() == 1
    assert await booked(money, "key_1") == (0, 40, 0)
    await money.book([a_row(5, key)], {"res_dead": Kept(15)})
    assert await booked(money, "key_1") == (5, 40, 1)
    with pytest.raises(StaleOwnerError):
        await money.resize(asked(key, "res_dead", 0, 1, dead))
    await check_invariants(database)


async def test_reservations_of_jobs_that_are_no_more_are_swept(money: MoneyStore, database: Database) -> None:
    key, jobs = a_key(total=100), SqlJobs(database)
    for name in ("job_ended", "job_runs"):
        await jobs.add(Job(id=name, kind="video"))
    await jobs.change("job_ended", 1, JobChanges(state="failed"))
    for name in ("job_ended", "job_runs", "job_never"):
        await money.reserve(f"res_{name}", key, DAY, 10, job_id=name)
    assert await money.sweep() == 0
    async with database.write() as connection:
        await connection.execute(reservations.update().values(updated_ms=1))
    assert await money.sweep() == 2
    assert await booked(money, "key_1") == (0, 10, 0)
    await check_invariants(database)


async def test_days_and_months_are_counted_apart(money: MoneyStore) -> None:
    key, month_ago = a_key(day=10, month=15), NOW - 31 * 86_400_000
    await money.book([a_row(9, key), a_row(100, key, started_ms=month_ago)], {})
    total, day, month = await money.spend("key_1", PERIODS)
    assert (total, day, month) == (Spend("total", 109, 0, 2), Spend(DAY, 9, 0, 1), Spend(DAY[:7], 9, 0, 1))
    assert (await money.reserve("res_1", key, DAY, 2, job_id="1")).free == 1
    assert (await money.reserve("res_2", key, day_of(month_ago), 10, job_id="2")).free == -90
    assert (await money.reserve("res_3", key, DAY, 1, job_id="3")).free == 1


async def test_many_processes_at_once_keep_the_sums_right(
    money: MoneyStore, leases: Leases, database: Database
) -> None:
    group = KeyGroup(id="grp_1", name="g", budget=Budget(total=5000))
    key = a_key(group=group, day=4000)

    async def process(name: str) -> int:
        holder = await leases.acquire(name, 60)
        spent = 0
        for turn in range(6):
            grant = await money.resize(asked(key, f"res_{name}_{turn % 3}", 0, 40, holder))
            cost = grant.free // 2
            await money.book([a_row(cost, key)], {f"res_{name}_{turn % 3}": Kept(grant.free - cost, 1)})
            await money.reserve(f"job_{name}_{turn}", key, DAY, 3, job_id="x")
            await money.settle(f"job_{name}_{turn}", a_row(2, key)) if turn % 2 else await money.sweep()
            spent += cost + 2 * (turn % 2)
        return spent

    spent = sum(await asyncio.gather(*(process(f"p{n}") for n in range(6))))
    assert (await booked(money, "key_1"))[0] == (await booked(money, "grp_1"))[0] == spent
    assert sum((await booked(money, "key_1"))[:2]) <= 4000
    await check_invariants(database)


steps = st.lists(
    st.tuples(
        st.sampled_from(["resize", "book", "reserve", "settle", "release"]), st.integers(0, 2), st.integers(0, 60)
    ),
    max_size=25,
)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(plan=steps)
async def test_whatever_happens_reserved_is_what_is_open(database: Database, plan: list[tuple[str, int, int]]) -> None:
    money, key = SqlMoney(database), a_key(group=KeyGroup(id="grp_1", name="g", budget=Budget(total=200)), total=150)
    run = secrets.token_hex(4)
    async with database.write() as connection:
        for table in (spend, reservations, ledger):
            await connection.execute(table.delete())
    for step, which, amount in plan:
        allowance, job = f"res_{run}_{which}", f"job_{run}_{which}"
        match step:
            case "resize":
                try:
                    await money.resize(asked(key, allowance, 0, amount))
                except StaleOwnerError:
                    continue
            case "book":
                await money.book([a_row(amount, key)], {allowance: Kept(amount // 2)})
            case "reserve":
                async with database.read() as connection:
                    if (await connection.execute(select(reservations.c.id).where(reservations.c.id == job))).first():
                        continue
                await money.reserve(job, key, DAY, amount, job_id=job)
            case "settle":
                await money.settle(job, a_row(amount, key))
            case "release":
                await money.release(job)
        await check_invariants(database)
