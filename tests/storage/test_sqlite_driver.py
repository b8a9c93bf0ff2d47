"""SQLite behind SQLAlchemy: what a statement costs in switches of threads, and that nothing is lost by it."""

from functools import partial
from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import exc, text

from trunkline.core.state import StorageError
from trunkline.storage.sql.database import Database


@pytest.fixture
async def database(tmp_path: Path) -> Any:
    opened = Database.at(tmp_path / "t.db")
    async with opened.write() as connection:
        await connection.execute(text("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)"))
    yield opened
    await opened.close()


@pytest.fixture
def visits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a connection's thread was asked to do."""
    asked: list[str] = []
    visit = aiosqlite.Connection._execute

    async def counted(self: aiosqlite.Connection, work: Any, *args: Any, **options: Any) -> Any:
        asked.append(work.args[1] if isinstance(work, partial) else work.__name__)
        return await visit(self, work, *args, **options)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(aiosqlite.Connection, "_execute", counted)
    return asked


async def test_a_statement_visits_the_thread_once(database: Database, visits: list[str]) -> None:
    async with database.write() as connection:
        del visits[:]
        inserted = await connection.execute(text("INSERT INTO t VALUES (:a, :b)"), [{"a": n, "b": "x"} for n in "123"])
        assert (len(visits), inserted.rowcount) == (1, 3)
        read = await connection.execute(text("SELECT a, b FROM t ORDER BY a"))
        assert len(visits) == 2
        assert list(read.keys()) == ["a", "b"]
        assert [tuple(row) for row in read] == [(1, "x"), (2, "x"), (3, "x")]
        assert len(visits) == 2


async def test_what_is_read_at_one_go_needs_no_transaction_and_nothing_is_rolled_back_for_nothing(
    database: Database, visits: list[str]
) -> None:
    await database.rows(text("SELECT 1"))  # connects
    del visits[:]
    assert [tuple(row) for row in await database.rows(text("SELECT a FROM t WHERE a = :a"), {"a": 1})] == []
    assert visits == ["SELECT a FROM t WHERE a = ?"]
    del visits[:]
    async with database.write() as connection:
        await connection.execute(text("INSERT INTO t VALUES (1, 'x')"))
    assert visits == ["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1, 'x')", "commit"]
    del visits[:]
    async with database.read() as connection:  # both of one moment
        await connection.execute(text("SELECT 1"))
        await connection.execute(text("SELECT 2"))
    assert visits == ["BEGIN", "SELECT 1", "SELECT 2", "rollback"]
    with pytest.raises(StorageError, match="no such table"):
        await database.rows(text("SELECT * FROM none"))


async def test_what_is_refused_is_rolled_back_and_the_connection_goes_on(database: Database) -> None:
    async def twice() -> None:
        async with database.write() as connection:
            await connection.execute(text("INSERT INTO t VALUES (1, 'x')"))
            await connection.execute(text("INSERT INTO t VALUES (1, 'y')"))

    with pytest.raises(exc.IntegrityError):
        await twice()
    async with database.write() as connection:
        assert (await connection.execute(text("SELECT count(*) FROM t"))).scalar_one() == 0
        assert (await connection.execute(text("UPDATE t SET b = 'z'"))).rowcount == 0
