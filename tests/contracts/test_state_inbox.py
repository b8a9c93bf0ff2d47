"""Messages between processes: one reading for all who want some, none while nobody does."""

import asyncio
from pathlib import Path

import pytest

from trunkline.calls.inbox import Inbox
from trunkline.core.state import Signal, StorageError
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.leases import SqlSignals


class Counted(SqlSignals):
    """Counts how often it is read; `away`: it cannot be."""

    reads = 0
    away = False

    async def recent(self) -> list[Signal]:
        self.reads += 1
        if self.away:
            raise StorageError("away")
        return await super().recent()


async def test_each_message_is_handed_once_to_who_wants_its_topic(database: Database, database_url: str | Path) -> None:
    signals, other = Counted(database), Database.at(database_url)
    inbox, calls, money = Inbox(signals), list[str](), list[str]()
    wants = {"calls": False, "money": False}
    inbox.listen("end_call", lambda: wants["calls"], calls.append)
    inbox.listen("money_wanted", lambda: wants["money"], money.append)
    await inbox.look()
    assert signals.reads == 0
    wants["money"] = True
    await Inbox(SqlSignals(other)).send("end_call", "req_1")
    await inbox.send("money_wanted", "key_1")
    for _ in range(3):
        await inbox.look()
    await inbox.send("money_wanted", "key_1")
    await inbox.send("odd", "key_2")
    await inbox.look()
    assert (calls, money, signals.reads) == (["req_1"], ["key_1", "key_1"], 4)
    await other.close()


async def test_it_goes_on_when_the_database_is_back(
    database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("trunkline.calls.inbox.LOOK_S", 0.01)
    signals, heard = Counted(database), asyncio.Event()
    inbox = Inbox(signals)
    inbox.listen("odd", lambda: True, lambda _body: heard.set())
    signals.away = True
    running = asyncio.ensure_future(inbox.run())
    async with asyncio.timeout(60):
        while not caplog.messages:  # noqa: ASYNC110 - it happens by the clock
            await asyncio.sleep(0.01)
        await inbox.send("odd", "")
        signals.away = False
        await heard.wait()
    running.cancel()
    await asyncio.wait([running])
