"""The billing of processes on one database, as a gateway runs it, and what its books say."""

import asyncio
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, select

from trunkline.calls.billing import Billing
from trunkline.calls.inbox import Inbox
from trunkline.calls.life import Life
from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key, KeyGroup
from trunkline.core.money import Budget, LedgerRow
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.tables import ledger, reservations, spend

NOW = time.time_ns() // 1_000_000
PRICE = 7
TTL_S = 60.0
Start = Callable[..., AbstractAsyncContextManager[Billing]]


def a_key(name: str = "key_1", group: KeyGroup | None = None, **budget: int) -> Key:
    return Key(id=name, name=name, budget=Budget(**budget), group=group)


def a_row(key: Key, cost: int | None, **changes: object) -> LedgerRow:
    facts = {"key_id": key.id, "group_id": key.group_id, "started_ms": NOW, "ended_ms": NOW, "cost_microusd": cost}
    return LedgerRow(**({"id": f"call_{secrets.token_hex(8)}"} | facts | changes))  # type: ignore[arg-type]


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """Start the billing of one more process on a database; it keeps its lease also when the machine stalls."""
    monkeypatch.setattr("trunkline.calls.life.TTL_S", TTL_S)

    @asynccontextmanager
    async def process(on: Database) -> AsyncIterator[Billing]:
        life = Life(SqlLeases(on), f"p-{secrets.token_hex(4)}")
        await life.begin()
        inbox = Inbox(SqlSignals(on))
        billing = Billing(SqlMoney(on), life, FileJournal(tmp_path / "journal"), inbox)
        await billing.sweep()
        tasks = [asyncio.ensure_future(run) for run in (life.run(), inbox.run(), billing.run())]
        await asyncio.sleep(0)
        try:
            yield billing
        finally:
            for task in reversed(tasks):
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()
            await life.end()
            await SqlMoney(on).sweep()  # as the next process does, if this one's lease was over

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
