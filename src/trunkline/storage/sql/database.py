"""The database's two doors, `read` and `write`, on SQLite (one writer, any readers) or PostgreSQL."""

import asyncio
import contextlib
import sqlite3
import time
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from sqlalchemy import ColumnElement, Connection, Executable, Row, Table, event, exc, false, make_url
from sqlalchemy.dialects import sqlite
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.expression import FunctionElement
from sqlalchemy.types import BigInteger
from sqlalchemy.util import await_only

from trunkline.core.errors import GatewayError
from trunkline.core.state import StorageError, UnstorableError
from trunkline.storage.sql.engine import SINGLE, AsyncConnection, AsyncEngine

if TYPE_CHECKING:
    from sqlalchemy.dialects import postgresql

sqlite3.register_adapter(bool, int)  # else it looks each one's class over, which takes as long as a tenth of a row
BUSY_S = 10.0
READERS = 4
POOL = 12
WAITS = {"timeout": 5.0, "command_timeout": 30.0}
"""Seconds until PostgreSQL is taken for lost: to connect, and to answer."""
Parameters = Mapping[str, Any]
AnyRow = Row[*tuple[Any, ...]]


class now_ms(FunctionElement[int]):  # noqa: N801 - reads as the SQL function that it is
    """The database's clock, Unix milliseconds."""

    type = BigInteger()
    inherit_cache = True


@compiles(now_ms, "sqlite")
def _now_sqlite(element: now_ms, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ARG001 - SQLAlchemy's signature
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


@compiles(now_ms, "postgresql")
def _now_postgresql(element: now_ms, compiler: SQLCompiler, **kw: Any) -> str:  # noqa: ARG001 - SQLAlchemy's signature
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS BIGINT)"


def upsert(connection: AsyncConnection, table: Table) -> "sqlite.Insert | postgresql.Insert":
    """Begin an insert that may say `on_conflict_do_nothing` or `on_conflict_do_update`."""
    if connection.dialect.name == "sqlite":
        return sqlite.insert(table)
    from sqlalchemy.dialects import postgresql  # noqa: PLC0415 - 4 MB that SQLite does not need

    return postgresql.insert(table)


def among(column: ColumnElement[Any], values: Collection[object]) -> ColumnElement[bool]:
    """Say that a column has one of the values, of which there may be none.

    SQLAlchemy asks all that it has loaded about the type of an empty `IN`, and breaks while a thread loads its ORM.
    """
    return column.in_(values) if values else false()


class Database:
    """Connections to one database. On SQLite all writes of this process go through one connection, in turn."""

    def __init__(self, writer: AsyncEngine, reader: AsyncEngine) -> None:
        self.writer = writer
        self.reader = reader
        self.sqlite = writer.dialect.name == "sqlite"

    @classmethod
    def at(cls, url: str | Path) -> Self:
        """Open a SQLite file (a path), or PostgreSQL (`postgresql://…`); nothing is connected yet."""
        if isinstance(url, Path):
            from trunkline.storage.sql import sqlite_driver  # noqa: PLC0415 - PostgreSQL does not need it

            target = f"sqlite+aiosqlite:///{url}"
            options = {"timeout": BUSY_S, "async_creator_fn": sqlite_driver.connect}
            engines = [
                AsyncEngine(target, pool_size=size, max_overflow=0, connect_args=options) for size in (1, READERS)
            ]
            for engine, begin in zip(engines, ("BEGIN IMMEDIATE", "BEGIN"), strict=True):
                _listen(engine, begin)
            return cls(*engines)
        parsed = make_url(url)
        if parsed.get_backend_name() not in {"postgresql", "postgres"}:
            raise ValueError(f"storage.database: {parsed.drivername}:// is not known; allowed: postgresql://…")
        try:
            dsn = parsed.set(drivername="postgresql").render_as_string(hide_password=False)
            # read by the driver, which knows `sslmode` and its like
            engine = AsyncEngine("postgresql+asyncpg://", pool_size=POOL, connect_args={**WAITS, "dsn": dsn})
        except ModuleNotFoundError:
            told = "PostgreSQL needs the extra: pip install 'trunkline[scale]'."
            raise GatewayError("storage_unavailable", told) from None
        return cls(engine, engine)

    @contextlib.asynccontextmanager
    async def read(self) -> AsyncIterator[AsyncConnection]:
        """Give a connection for several statements, all of one moment on SQLite. Raises StorageError."""
        with _storage_errors():
            async with self.reader.connect() as connection:
                yield connection

    async def rows(self, statement: Executable, parameters: Parameters | None = None) -> Sequence[AnyRow]:
        """Read with one statement, which sees one moment without a transaction around it. Raises StorageError."""
        with _storage_errors():
            async with self.reader.connect(single=True) as connection:
                return (await connection.execute(statement, parameters)).all()

    async def first(self, statement: Executable, parameters: Parameters | None = None) -> AnyRow | None:
        """Read with one statement that gives one row or none. Raises StorageError."""
        return next(iter(await self.rows(statement, parameters)), None)

    @contextlib.asynccontextmanager
    async def write(self, *, durable: bool = False) -> AsyncIterator[AsyncConnection]:
        """Give a transaction, committed at the end. `durable`: on the disk by then. Raises StorageError."""
        with _storage_errors():
            if not (durable and self.sqlite):
                async with self.writer.begin() as connection:
                    yield connection
                return
            async with self.writer.connect() as connection:
                try:
                    await connection.run_sync(_synchronous, "FULL")
                    async with connection.begin():
                        yield connection
                finally:
                    await connection.run_sync(_synchronous, "NORMAL")

    async def close(self) -> None:
        """Close all connections."""
        await self.writer.dispose()
        await self.reader.dispose()


def _listen(engine: AsyncEngine, begin: str) -> None:
    """Take transactions from the driver into our own hands: a write begins by taking the write lock."""

    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        cursor = connection.cursor()
        _write_ahead(cursor)
        cursor.execute("PRAGMA synchronous = NORMAL")
        cursor.execute("PRAGMA foreign_keys = ON")
        cursor.close()

    def begun(connection: Connection) -> None:
        if not connection.get_execution_options().get(SINGLE):
            connection.exec_driver_sql(begin)

    event.listen(engine.sync_engine, "connect", connected)
    event.listen(engine.sync_engine, "begin", begun)


def _write_ahead(cursor: Any) -> None:
    """Turn the write-ahead log on. For this alone SQLite does not wait for others that do the same."""
    until = time.monotonic() + BUSY_S
    while True:
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > until:
                raise
            await_only(asyncio.sleep(0.02))
        else:
            return


def _synchronous(connection: Any, level: str) -> None:
    cursor = connection.connection.cursor()
    cursor.execute(f"PRAGMA synchronous = {level}")
    cursor.close()


@contextlib.contextmanager
def _storage_errors() -> Iterator[None]:
    try:
        yield
    except exc.IntegrityError:
        raise
    except (OverflowError, UnicodeError) as error:
        raise UnstorableError(str(error)) from error
    except (exc.DBAPIError, exc.TimeoutError, OSError) as error:
        if isinstance(error, exc.DBAPIError) and _is_of_the_data(error):
            raise UnstorableError(_reason(error)) from error
        raise StorageError(f"the database cannot be used: {_reason(error)}") from error


def _is_of_the_data(error: exc.DBAPIError) -> bool:
    """Tell whether what we wanted to write is at fault (SQLSTATE class 22, or refused by the driver itself)."""
    state = getattr(error.orig, "sqlstate", None)
    if state is not None:
        return str(state).startswith("22")
    return isinstance(error, exc.DataError) or isinstance(
        getattr(error.orig, "__cause__", None), ValueError | TypeError
    )


def _reason(error: Exception) -> str:
    """Say in one line what the database says, without statement and parameters."""
    cause = error.orig if isinstance(error, exc.DBAPIError) and error.orig is not None else error
    if isinstance(cause, TimeoutError):
        return "it does not answer"
    lines = str(cause).strip().split("\n")
    return lines[0] or type(cause).__name__
