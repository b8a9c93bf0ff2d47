"""A gateway whose work behind the calls fails: its process ends, said and booked, and is started again."""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from gateway import chat, to_upstream
from gateway_process import Home, Process
from raw_upstream import raw_upstream
from text_upstream import Held

pytestmark = pytest.mark.faults


def in_database(folder: Path, *statements: str) -> list[str]:
    """Do something to the database from outside; gives the first column of what it answers last."""
    with closing(sqlite3.connect(folder / "a" / "trunkline.db", timeout=60)) as database, database:
        answers = [database.execute(statement).fetchall() for statement in statements]
    return [str(row[0]) for row in answers[-1]]


def spoil(when: str) -> str:
    """Make the database refuse some statements as no database of ours does."""
    return f"CREATE TRIGGER spoiled BEFORE {when} BEGIN SELECT RAISE(ABORT, 'spoiled'); END"


async def until(happens: Callable[[], bool]) -> None:
    async with asyncio.timeout(120):
        while not happens():  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.02)


def said(gate: Process, words: str) -> Callable[[], bool]:
    return lambda: words in gate.log.read_text()


@pytest.mark.parametrize(
    ("when", "failing"),
    [("INSERT ON ledger", "Billing.run"), ("UPDATE ON leases", "Life.run")],
)
async def test_it_lets_answers_end_and_ends(tmp_path: Path, when: str, failing: str) -> None:
    held = Held()
    async with raw_upstream(held) as upstream:
        home = Home(tmp_path, to_upstream(upstream.url))
        async with home.gateway() as gate:
            first, second = [await gate.ask(chat(stream=True)) for _ in range(2)]
            assert b"begun" in await first.chunk()
            in_database(tmp_path, spoil(when))
            first.leave()  # its row is booked at once
            await until(said(gate, f"{failing} has failed; this process ends, to be started again"))
            held.go_on.set()
            assert (await second.body()).endswith(b"data: [DONE]\n\n")
            assert await gate.end() == 1
            log = gate.log.read_text()
            assert "IntegrityError: spoiled" in log
            assert log.count("has failed;") == 1
            assert "parameters: (" not in log
        in_database(tmp_path, "DROP TRIGGER spoiled")
        async with home.gateway() as gate, home.books() as books:
            rows = await books.rows(2)
            assert sorted(row.end_reason for row in rows) == ["cancelled", "completed"]


async def test_a_worker_that_fails_is_started_again(tmp_path: Path) -> None:
    held = Held()
    held.go_on.set()
    async with raw_upstream(held) as upstream:
        home = Home(tmp_path, to_upstream(upstream.url))
        async with home.gateway("a", "--workers", "2") as gate:
            [name, _] = in_database(tmp_path, "SELECT name FROM leases")
            in_database(tmp_path, spoil(f"UPDATE ON leases WHEN old.name = '{name}'"))
            await until(said(gate, "ended (status 1); it is started again"))
            assert gate.log.read_text().count("Life.run has failed;") == 1
            await until(lambda: len(in_database(tmp_path, "SELECT name FROM leases")) == 2)
            assert name not in in_database(tmp_path, "SELECT name FROM leases")
            for _ in range(8):
                answer = await gate.ask(chat(stream=True))
                assert (await answer.body()).endswith(b"data: [DONE]\n\n")
            assert gate.process.poll() is None
