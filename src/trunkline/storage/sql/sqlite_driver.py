"""aiosqlite with one visit to its thread a statement: SQLAlchemy's way takes four, each two switches of threads."""

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import partial
from typing import Any

import aiosqlite

Rows = list[Any]


class Cursor(aiosqlite.Cursor):
    """A cursor whose rows have come when its statement is done."""

    def __init__(self, connection: "Connection") -> None:
        super().__init__(connection, None)  # type: ignore[arg-type]  # there is none yet
        self._rows: Rows = []

    async def execute(self, sql: str, parameters: Iterable[Any] | None = None) -> "Cursor":
        """Execute a statement and fetch its rows."""
        return await self._do(sqlite3.Cursor.execute, sql, () if parameters is None else parameters)

    async def executemany(self, sql: str, parameters: Iterable[Iterable[Any]]) -> "Cursor":
        """Execute a statement once for each of the parameters."""
        return await self._do(sqlite3.Cursor.executemany, sql, parameters)

    async def fetchall(self) -> Rows:
        """Give the rows."""
        return self._rows

    async def close(self) -> None:
        """Do nothing: it was closed behind its statement."""

    async def _do(self, execute: Callable[..., sqlite3.Cursor], *args: Any) -> "Cursor":
        self._cursor, self._rows = await self._conn._execute(partial(self._work, execute, *args))  # type: ignore[no-untyped-call]  # noqa: SLF001
        return self

    def _work(self, execute: Callable[..., sqlite3.Cursor], *args: Any) -> tuple[sqlite3.Cursor, Rows]:
        with closing(self._conn._conn.cursor()) as cursor:  # noqa: SLF001
            execute(cursor, *args)
            return cursor, cursor.fetchall()


class Connection(aiosqlite.Connection):
    """A connection and its thread."""

    def cursor(self) -> Cursor:  # type: ignore[override]  # a context manager itself
        """Make a cursor."""
        return Cursor(self)

    async def rollback(self) -> None:
        """Roll back, if there is anything: the pool asks for it whenever a connection is returned."""
        if self._conn.in_transaction:
            await super().rollback()


def connect(database: str, **options: Any) -> Connection:
    """Open a connection when it is awaited; `options` are those of `sqlite3.connect`."""
    connection = Connection(partial(sqlite3.connect, database, **options), 64)
    connection._thread.daemon = True  # noqa: SLF001 - as SQLAlchemy does with its own
    return connection
