"""Which processes live, and messages between them, on SQL: the ports `core.state.Leases` and `core.state.Signals`."""

import secrets

from sqlalchemy import BigInteger, ColumnElement, Select, Text, and_, bindparam, delete, func, select, update

from trunkline.core.state import Lease, Signal
from trunkline.storage.sql.database import Database, now_ms, upsert
from trunkline.storage.sql.records import Records
from trunkline.storage.sql.tables import leases, signals

LEASES = Records(leases, Lease)
SIGNALS = Records(signals, Signal)
SIGNALS_KEPT_MS = 60_000
OVER_MS = 24 * 3600 * 1000
LONGEST_MS = 60_000
"""No lease is given for longer: one that seems to be is of before the clock was set back."""


def runs(more_ms: int | ColumnElement[int] = 0) -> ColumnElement[bool]:
    """Say that a lease runs, for longer than this yet."""
    return and_(leases.c.until_ms > now_ms() + more_ms, leases.c.until_ms <= now_ms() + LONGEST_MS)


# Built once, as all that is asked again and again: to build a statement takes longer than to execute it.
RENEW = (
    update(leases)
    .where(leases.c.holder == bindparam("who"), runs())
    .values(until_ms=now_ms() + bindparam("ttl_ms", type_=BigInteger))
    .values(info=func.coalesce(bindparam("told", type_=Text), leases.c.info))
)
RECENT = (
    select(*SIGNALS.columns)
    .where(signals.c.created_ms >= now_ms() - SIGNALS_KEPT_MS)
    .order_by(signals.c.created_ms, signals.c.id)
)
ALIVE = select(*LEASES.columns).where(runs()).order_by(leases.c.name)


def living() -> Select[tuple[str]]:
    """Select the holders whose lease runs."""
    return select(leases.c.holder).where(runs())


class SqlLeases:
    """See `core.state.Leases`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def acquire(self, name: str, ttl_s: float) -> str:
        holder = f"{name}#{secrets.token_hex(8)}"
        life = {"holder": holder, "started_ms": now_ms(), "until_ms": now_ms() + int(ttl_s * 1000), "info": "{}"}
        async with self._database.write() as connection:
            await connection.execute(delete(leases).where(leases.c.until_ms < now_ms() - OVER_MS))
            await connection.execute(
                upsert(connection, leases)
                .values(name=name, **life)
                .on_conflict_do_update(index_elements=[leases.c.name], set_=life)
            )
        return holder

    async def renew(self, holder: str, ttl_s: float, info: str | None = None) -> bool:
        values = {"who": holder, "ttl_ms": int(ttl_s * 1000), "told": info}
        async with self._database.write() as connection:
            return (await connection.execute(RENEW, values)).rowcount > 0

    async def release(self, holder: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(leases).where(leases.c.holder == holder))

    async def alive(self) -> list[Lease]:
        return [LEASES.read(row) for row in await self._database.rows(ALIVE)]


class SqlSignals:
    """See `core.state.Signals`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def send(self, topic: str, body: str) -> None:
        signal = {"id": f"sig_{secrets.token_hex(12)}", "topic": topic, "body": body, "created_ms": now_ms()}
        async with self._database.write() as connection:
            await connection.execute(delete(signals).where(signals.c.created_ms < now_ms() - SIGNALS_KEPT_MS))
            await connection.execute(signals.insert().values(signal))

    async def recent(self) -> list[Signal]:
        return [SIGNALS.read(row) for row in await self._database.rows(RECENT)]
