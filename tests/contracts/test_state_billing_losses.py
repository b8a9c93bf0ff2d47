"""Billing: nothing lost or doubled when the database goes away, a disk is full or a process is killed."""

import asyncio
import errno
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from billing_process import NOW, PRICE, Start, a_key, a_row, call, sums
from postgres import Postgres
from sqlalchemy import event, select, text
from way import Peer, Way

from trunkline.calls.billing import TICK_S, Billing
from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.money import LedgerRow
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.migrate import upgrade
from trunkline.storage.sql.tables import ledger

pytestmark = pytest.mark.scale


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
    await billing.sweep()  # an outage longer than the lease leaves what the life before held


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


class Silent(Way):
    """On which nothing is carried on while it is `silent`: no answer, and no end either."""

    silent = False

    async def carry(self, client: Peer, server: Peer) -> None:
        answers = asyncio.ensure_future(self._pass_on(server, client))
        await self._pass_on(client, server)
        answers.cancel()

    async def _pass_on(self, source: Peer, target: Peer) -> None:
        while data := await source.some():
            while self.silent:  # noqa: ASYNC110 - as it is told
                await asyncio.sleep(0.01)
            target.writer.write(data)


@pytest.mark.scale
async def test_a_silent_postgresql_refuses_calls_that_cost_money_and_loses_nothing(
    start: Start, postgres_url: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.storage.sql.database.WAITS", {"timeout": 2.0, "command_timeout": 2.0})
    async with Silent(postgres_url).open() as way:
        database = Database.at(way.url)
        await upgrade(database)
        async with start(database) as billing:
            await through_an_outage(
                billing, lambda: setattr(way, "silent", True), lambda: setattr(way, "silent", False)
            )
        assert await sums(database) == (77, 0, 77, 11)
        assert await sums(database, "key_2") == (77, 0, 77, 11)
        assert "the database cannot be used: it does not answer" in caplog.text
        await database.close()


async def test_a_journal_that_cannot_be_deleted_is_not_booked_twice(
    start: Start, database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, unlink = a_key(total=100), Path.unlink

    def refuse(path: Path, **options: bool) -> None:
        if path.suffix == ".jsonl":
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        unlink(path, **options)

    monkeypatch.setattr(Path, "unlink", refuse)
    async with start(database) as billing:
        for _ in range(3):
            assert await call(billing, key)
            await billing.flush()
            assert not billing.trouble
        assert await sums(database) == (21, 0, 21, 3)
    monkeypatch.undo()
    assert [*(tmp_path / "journal").glob("*.jsonl")]
    async with start(database):
        pass
    assert [*(tmp_path / "journal").iterdir()] == []
    assert await sums(database) == (21, 0, 21, 3)


async def test_a_bad_row_waits_for_a_disk_that_is_full(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, put_aside = a_key(), FileJournal.reject

    def full(_journal: FileJournal, _row: LedgerRow) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    async with start(database) as billing:
        monkeypatch.setattr(FileJournal, "reject", full)
        hold = await billing.reserve(key, PRICE, NOW)
        billing.settle(hold, a_row(key, 1 << 70))
        assert await call(billing, key)
        await until(lambda: billing.trouble)
        monkeypatch.setattr(FileJournal, "reject", put_aside)
        await until(lambda: not billing.trouble)
    assert await sums(database) == (7, 0, 7, 1)


async def test_a_database_that_does_not_answer_refuses_what_was_set_aside_too(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = a_key(total=10**6)
    async with start(database) as billing:
        assert await call(billing, key)
        hold = billing.try_reserve(key, PRICE, NOW)
        assert hold is not None  # it has more than one call's money at hand
        billing.release(hold)
        monkeypatch.setattr(billing._life, "reachable", False)
        assert await refused(billing, key) == "storage_unavailable"


async def test_whoever_leaves_while_it_is_refused_harms_nobody(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = a_key(total=100)
    async with start(database) as billing:
        hold = await billing.reserve(key, 70, NOW)
        asking = asyncio.ensure_future(billing.reserve(key, 60, NOW))
        book = billing._store.book

        async def leave(rows: Any, allowances: Any) -> None:
            asking.cancel()
            await asyncio.sleep(0)
            await book(rows, allowances)

        monkeypatch.setattr(billing._store, "book", leave)
        await asyncio.wait([asking])
        monkeypatch.undo()
        await asyncio.sleep(2 * TICK_S)
        billing.settle(hold, a_row(key, 70))
        assert await call(billing, key, 30)
    assert asking.cancelled()
    assert await sums(database) == (100, 0, 100, 2)


async def test_whoever_leaves_while_a_job_is_paid_for_holds_nothing(start: Start, database: Database) -> None:
    key = a_key(total=100)
    async with start(database) as billing:
        for turns in range(40):
            asking = asyncio.ensure_future(billing.reserve_job(key, 100, f"job_{turns}", NOW))
            for _ in range(turns):
                await asyncio.sleep(turns % 4 / 4000)
            if not asking.cancel():
                await billing.release_job(await asking)
            await asyncio.wait([asking])
        assert await billing.reserve_job(key, 100, "job", NOW)


WORKER = """
import asyncio, secrets, sys, time
from pathlib import Path
from trunkline.calls.billing import Billing
from trunkline.calls.inbox import Inbox
from trunkline.calls.life import Life
from trunkline.core.keys import Key
from trunkline.core.errors import GatewayError
from trunkline.core.money import Budget, LedgerRow
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.money import SqlMoney

async def main(url, journal, budget):
    database = Database.at(Path(url) if url.startswith("/") else url)
    life = Life(SqlLeases(database), secrets.token_hex(4))
    await life.begin()
    billing = Billing(SqlMoney(database), life, FileJournal(Path(journal)), Inbox(SqlSignals(database)))
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


async def test_a_key_without_a_budget_goes_on_when_the_ledger_is_back(
    start: Start, database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start(database) as billing:

        async def regain() -> None:
            billing._failed = False

        billing._failed = True
        monkeypatch.setattr(billing._life, "regain", regain)
        assert await call(billing, a_key())
        assert await call(billing, a_key("key_2", total=PRICE))
    assert await sums(database) == (7, 0, 7, 1)
