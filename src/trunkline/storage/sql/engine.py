"""SQLAlchemy's engine, awaited.

`sqlalchemy.ext.asyncio` does the same, but brings the whole ORM, which nothing here uses: a quarter of a second and
6 MB in every process.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar, TypeVarTuple

from sqlalchemy import URL, Connection, CursorResult, Executable, create_engine
from sqlalchemy.engine import Dialect
from sqlalchemy.util import greenlet_spawn

from trunkline.calls.unbroken import unbroken

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
SINGLE = "single"
"""The execution option of a SQLite connection that is lent for one statement."""


class AsyncConnection:
    """A connection whose driver is asynchronous."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # SQLite's thread does what it was given: broken off here, it would hold the lock until it is garbage.
        self._do = _unbroken if connection.dialect.name == "sqlite" else greenlet_spawn

    @property
    def dialect(self) -> Dialect:
        """What the database speaks."""
        return self._connection.dialect

    async def execute(
        self, statement: Executable, parameters: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    ) -> CursorResult[*tuple[Any, ...]]:
        """Execute a statement; all rows have come when it is done."""
        result: CursorResult[*tuple[Any, ...]] = await self._do(self._connection.execute, statement, parameters)
        return result

    async def exec_driver_sql(self, statement: str, parameters: Sequence[tuple[Any, ...]]) -> None:
        """Execute a statement in the driver's own words, once for each of the parameters."""
        await self._do(self._connection.exec_driver_sql, statement, parameters)

    async def run_sync(self, work: Callable[[Connection, *Ts], T], *args: *Ts) -> T:
        """Do work that is written for a synchronous connection."""
        return await self._do(work, self._connection, *args)

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[None]:
        """Hold a transaction: committed at the end, rolled back when that is an exception."""
        try:
            await self._do(self._connection.begin)
            yield
            await self._do(self._connection.commit)
        except BaseException:
            await asyncio.shield(greenlet_spawn(self._connection.rollback))
            raise


class AsyncEngine:
    """A pool of connections to a URL that names an asynchronous driver."""

    def __init__(self, url: str | URL, **options: Any) -> None:
        self.sync_engine = create_engine(url, hide_parameters=True, **options)  # errors may be logged
        # For SQLite's driver to set the level would be a visit to its thread; our own option tells `database`.
        self._single = {SINGLE: True} if self.dialect.name == "sqlite" else {"isolation_level": "AUTOCOMMIT"}

    @property
    def dialect(self) -> Dialect:
        """What the database speaks."""
        return self.sync_engine.dialect

    @asynccontextmanager
    async def connect(self, *, single: bool = False) -> AsyncIterator[AsyncConnection]:
        """Lend a connection, for a `single` statement, without a transaction, or more, rolled back at the end."""
        connection = await greenlet_spawn(self.sync_engine.connect)
        if single:
            connection = connection.execution_options(**self._single)
        try:
            yield AsyncConnection(connection)
        finally:
            await asyncio.shield(greenlet_spawn(connection.close))

    @asynccontextmanager
    async def begin(self) -> AsyncIterator[AsyncConnection]:
        """Lend a connection in a transaction."""
        async with self.connect() as connection, connection.begin():
            yield connection

    async def dispose(self) -> None:
        """Close all connections that are not lent."""
        await greenlet_spawn(self.sync_engine.dispose)


async def _unbroken(work: Callable[[*Ts], T], *args: *Ts) -> T:
    return await unbroken(greenlet_spawn(work, *args))
