"""Billing: what lies idle of a budget comes back to who asks for it, whatever happened to who holds it."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from billing_process import NOW, PRICE, Start, a_key, call, sums
from sqlalchemy import text

from trunkline.calls.billing import Billing
from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key, KeyGroup
from trunkline.core.money import Budget, day_of
from trunkline.core.state import Ask, StorageError
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlLeases
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.scale


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait for what others hold without using it, however long a busy machine takes; it comes when asked for."""
    monkeypatch.setattr("trunkline.calls.allowance.SURE_S", 30.0)
    monkeypatch.setattr("trunkline.calls.allowance.PATIENCE_S", 30.0)
    monkeypatch.setattr("trunkline.calls.billing.IDLE_TICKS", 10**9)


async def test_a_key_that_changes_its_group_takes_nothing_of_the_new_one_along(
    start: Start, database: Database
) -> None:
    old, new = (KeyGroup(id=name, name=name, budget=Budget(total=1600 * PRICE)) for name in ("group_1", "group_2"))
    async with start(database) as billing:
        assert await call(billing, a_key("key_1", old))  # and holds a sixteenth
        for key in (a_key("key_1", new), a_key("key_2", new), a_key("key_1", old)):
            assert await call(billing, key)
        assert await call(billing, a_key("key_2", new), 1598 * PRICE, 0)
        assert not await call(billing, a_key("key_2", new), 1599 * PRICE)
        await billing.flush()
        async with database.read() as connection:
            query = text("SELECT owner_id, reserved_microusd FROM spend WHERE period = 'total'")
            reserved: dict[str, int] = dict((await connection.execute(query)).all())
            query = text(
                "SELECT group_id, sum(amount_microusd) FROM reservations WHERE state = 'open' GROUP BY group_id"
            )
            held: dict[str, int] = dict((await connection.execute(query)).all())
        assert {owner: reserved[owner] for owner in ("group_1", "group_2")} == {"group_1": 0, "group_2": 0} | held
    for group in ("group_1", "group_2"):
        assert (await sums(database, group))[:2] == (2 * PRICE, 0)


async def test_who_leaves_while_its_money_is_asked_for_keeps_it_from_nobody(
    start: Start, database: Database, database_url: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, other = a_key(total=PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        asking = asyncio.ensure_future(one.reserve(key, PRICE, NOW))
        resize = one._store.resize

        async def leave(ask: Any) -> Any:
            grant = await resize(ask)
            asking.cancel()
            await asyncio.sleep(0)
            return grant

        monkeypatch.setattr(one._store, "resize", leave)
        await asyncio.wait([asking])
        assert asking.cancelled()
        await one.flush()
        assert await call(two, key)
    await other.close()


async def test_what_could_not_be_given_back_is_given_back_to_the_next_who_asks(
    start: Start, database: Database, database_url: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, other = a_key(total=1600 * PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        assert await call(one, key)
        await one.flush()

        async def fail(*_: Any) -> None:
            raise StorageError("locked")

        with monkeypatch.context() as away:
            away.setattr(one._store, "book", fail)
            await one._inbox.send("money_wanted", key.id)
            async with asyncio.timeout(30):
                while not one.trouble:  # noqa: ASYNC110 - it happens by the clock
                    await asyncio.sleep(0.01)
        assert await call(two, key, 1599 * PRICE)
    await other.close()


async def test_what_was_held_under_a_lost_lease_is_given_back_to_who_asks(
    start: Start, database: Database, database_url: str | Path
) -> None:
    key, other = a_key(total=1600 * PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        assert await call(one, key)
        await one.flush()
        one._lose()
        assert await call(two, key, 1599 * PRICE)
    await other.close()


async def reserved(billing: Billing, key: Key, what: str) -> None:
    """Set money aside for a call or a job."""
    await (billing.reserve(key, PRICE, NOW) if what == "call" else billing.reserve_job(key, PRICE, "job_1", NOW))


@pytest.mark.parametrize("what", ["call", "job"])
async def test_the_rest_of_a_call_that_has_just_ended_elsewhere_is_waited_for(
    start: Start, database: Database, database_url: str | Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("trunkline.calls.billing.TICK_S", 3600.0)  # it is booked when we say so
    key, other, refused = a_key(total=PRICE), Database.at(database_url), asyncio.Event()
    async with start(database) as one, start(other) as two:
        hold = await one.reserve(key, PRICE, NOW)
        want = two._want

        async def wanting(*args: Any) -> None:
            refused.set()
            await want(*args)

        monkeypatch.setattr(two, "_want", wanting)
        asking = asyncio.ensure_future(reserved(two, key, what))
        one.release(hold)
        async with asyncio.timeout(30):
            await refused.wait()
            while not asking.done():
                await one.flush()
                await asyncio.sleep(0.01)
        await asking
    await other.close()


@pytest.mark.parametrize("what", ["call", "job"])
async def test_what_the_dead_hold_is_waited_for(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr("trunkline.storage.sql.money.STALLED_MS", 0)
    monkeypatch.setattr("trunkline.calls.allowance.SURE_S", 0.0)
    monkeypatch.setattr("trunkline.calls.billing.SWEEP_TICKS", 10**9)
    key, holder = a_key(total=PRICE), await SqlLeases(database).acquire("dead", 1.0)
    ask = Ask(reservation_id="res_1", holder=holder, key=key, day=day_of(NOW), must=PRICE, demand=0)
    await SqlMoney(database).resize(ask)
    async with start(database) as billing:
        await reserved(billing, key, what)


async def test_what_a_running_call_holds_elsewhere_is_not_waited_for_long(
    start: Start, database: Database, database_url: str | Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.calls.allowance.SURE_S", 0.1)
    key, other = a_key(total=PRICE), Database.at(database_url)
    async with start(database) as one, start(other) as two:
        hold = await one.reserve(key, PRICE, NOW)
        assert not await call(two, key)
        one.release(hold)
    await other.close()


async def test_a_long_call_does_not_give_back_anew_at_every_look(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.calls.billing.TICK_S", 3600.0)
    monkeypatch.setattr("trunkline.calls.billing.IDLE_TICKS", 1)
    async with start(database) as billing:
        hold = await billing.reserve(a_key(total=1600 * PRICE), PRICE, NOW)
        booked, book = 0, billing._store.book

        async def counted(*args: Any) -> None:
            nonlocal booked
            booked += 1
            await book(*args)

        monkeypatch.setattr(billing._store, "book", counted)
        assert hold.allowance is not None
        hold.allowance.idle = 1
        for _ in range(5):
            await billing.flush()
        assert (booked, hold.allowance.free) == (1, 0)
        billing.release(hold)


async def test_a_mistake_in_one_key_s_accounting_leaves_the_others_theirs(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(database) as billing:
        with monkeypatch.context() as wrong:
            wrong.setattr(billing, "_enlarge", lambda _allowance: 1 / 0)
            with pytest.raises(GatewayError, match="the database is away"):
                await billing.reserve(a_key(total=PRICE), PRICE, NOW)
        assert await call(billing, a_key("key_2", total=PRICE))
    assert (await sums(database, "key_2"))[:2] == (PRICE, 0)
