"""SQLite behind SQLAlchemy: what a statement costs in switches of threads, and that nothing is lost by it."""

from pathlib import Path
from typing import Any

import aiosqlite
import pytest
from sqlalchemy import exc, text

from trunkline.storage.sql.database import Database


@pytest.fixture
async def database(tmp_path: Path) -> Any:
    opened = Database.at(tmp_path / "t.db")
    async with opened.write() as connection:
        await connection.execute(text("CREATE TABLE t (a INTEGER PRIMARY KEY, b TEXT)"))
    yield opened
    await opened.close()


async def test_a_statement_visits_the_thread_once(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    visits, visit = 0, aiosqlite.Connection._execute

    async def counted(self: aiosqlite.Connection, *args: Any) -> Any:
        nonlocal visits
        visits += 1
        return await visit(self, *args)  # type: ignore[no-untyped-call]

    monkeypatch.setattr(aiosqlite.Connection, "_execute", counted)
    async with database.write() as connection:
        before = visits
        inserted = await connection.execute(text("INSERT INTO t VALUES (:a, :b)"), [{"a": n, "b": "x"} for n in "123"])
        assert (visits - before, inserted.rowcount) == (1, 3)
        read = await connection.execute(text("SELECT a, b FROM t ORDER BY a"))
        assert visits - before == 2
        assert list(read.keys()) == ["a", "b"]
        assert [tuple(row) for row in read] == [(1, "x"), (2, "x"), (3, "x")]
        assert visits - before == 2


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
