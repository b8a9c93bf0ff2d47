"""Budgets and the ledger on SQL: the port `core.state.MoneyStore`.

Locks are always taken in one order, reservations before spend, each sorted: transactions wait, but never in a ring.
"""

from collections.abc import Iterable, Mapping, Sequence
from operator import itemgetter

from msgspec import Struct, structs
from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Insert,
    and_,
    bindparam,
    case,
    delete,
    exc,
    exists,
    func,
    or_,
    select,
    update,
)

from trunkline.core.jobs import UNFINISHED
from trunkline.core.keys import Key
from trunkline.core.money import DAY_MS, LedgerRow, Spend, day_of, periods_of
from trunkline.core.state import Ask, Grant, Kept, StaleOwnerError
from trunkline.policy import budget
from trunkline.storage.sql.database import Database, among, now_ms, upsert
from trunkline.storage.sql.engine import AsyncConnection
from trunkline.storage.sql.leases import runs
from trunkline.storage.sql.records import Records, paged
from trunkline.storage.sql.tables import jobs, leases, ledger, reservations, spend

LEDGER = Records(ledger, LedgerRow)
SPEND = (spend.c.owner_id, spend.c.period, spend.c.spent_microusd, spend.c.reserved_microusd, spend.c.calls)
COUNTED = ("spent_microusd", "reserved_microusd", "calls")
COUNT: dict[str, Insert] = {}
"""Adds to `spend`, by dialect. Statements of every call are built once: building one takes as long as executing it."""
ROOMS = (
    select(*SPEND)
    .where(spend.c.owner_id.in_(bindparam("owners", expanding=True)))
    .where(spend.c.period.in_(bindparam("periods", expanding=True)))
    .order_by(spend.c.owner_id, spend.c.period)
    .with_for_update()
)
LOCK = (
    select(reservations.c.state, reservations.c.amount_microusd, reservations.c.key_id, reservations.c.group_id)
    .add_columns(reservations.c.day)
    .where(reservations.c.id == bindparam("which"))
    .with_for_update()
)
SET = (
    update(reservations)
    .where(reservations.c.id == bindparam("which"))
    .values(amount_microusd=bindparam("amount"), spare_microusd=bindparam("spare"), state=bindparam("now"))
    .values(updated_ms=now_ms())
)
FORGOTTEN_MS = 600_000
"""After this long a reservation of a job that is no more is ended."""
STALLED_MS = 5_000
"""So long after its lease a process keeps what it has reserved: if it only stalls, it makes its calls yet."""
DOUBTED_MS = 1_750
"""A lease that has less left was not renewed when it should have been (`calls.life`)."""
KEPT_MS = 7 * 24 * 3600 * 1000
"""So long it is remembered that a reservation ended."""
Place = tuple[str, str]
"""An owner and a period."""


def _leased(more_ms: int | ColumnElement[int]) -> ColumnElement[bool]:
    """Say that the lease of a reservation's holder runs for longer than this; it may have begun a new life."""
    return exists().where(runs(more_ms), reservations.c.holder.like(leases.c.name + "#%"))


ORPHANS = select(reservations.c.id).where(
    reservations.c.state == "open",
    or_(
        and_(reservations.c.job_id == "", ~_leased(-bindparam("stalled_ms", type_=BigInteger))),
        and_(
            reservations.c.job_id != "",
            reservations.c.updated_ms < now_ms() - FORGOTTEN_MS,
            reservations.c.job_id.not_in(select(jobs.c.id).where(jobs.c.state.in_(UNFINISHED))),
        ),
    ),
)
"""Reservations whose process is dead, or whose job is no more."""
FORGET = delete(reservations).where(reservations.c.state != "open", reservations.c.updated_ms < now_ms() - KEPT_MS)


class SqlMoney:
    """See `core.state.MoneyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        marks = ["?" if database.sqlite else f"${n + 1}" for n in range(len(LEDGER.columns))]
        names = ", ".join(column.name for column in LEDGER.columns)
        self._insert = f"INSERT INTO ledger ({names}) VALUES ({', '.join(marks)})"  # noqa: S608 - names of our own

    async def resize(self, ask: Ask) -> Grant:
        async with self._database.write() as connection:
            own = await _lock(connection, ask.reservation_id)
            if own is not None and own.state != "open":
                raise StaleOwnerError(ask.reservation_id)
            held = own.amount if own else 0
            rooms = await _rooms(connection, ask.key, ask.day, held)
            free = budget.grant([room for _, room in rooms], ask.must, ask.demand)
            now = Kept(ask.must + max(0, free), max(0, free - ask.demand))
            if own is None:
                await _open(connection, ask.reservation_id, ask.key, ask.day, now, holder=ask.holder)
            else:
                await _set(connection, [(ask.reservation_id, now, "open")])
            await _count(connection, _places(budget.owners(ask.key), ask.day, reserved=now.amount - held))
            if free >= ask.demand:
                return Grant(free)
            return await _too_little(connection, ask.reservation_id, rooms, free, ask.must + ask.demand)

    async def book(self, rows: Sequence[LedgerRow], allowances: Mapping[str, Kept]) -> None:
        try:
            await self._book(rows, allowances)
        except exc.IntegrityError:
            ids = [row.id for row in rows]
            booked = {row.id for row in await self._database.rows(select(ledger.c.id).where(ledger.c.id.in_(ids)))}
            await self._book([row for row in rows if row.id not in booked], allowances)

    async def _book(self, rows: Sequence[LedgerRow], allowances: Mapping[str, Kept]) -> None:
        counts: dict[Place, Spend] = {}
        async with self._database.write() as connection:
            kept = []
            for reservation_id in sorted(allowances):
                held = await _lock(connection, reservation_id)
                if held is None or held.state != "open":
                    continue
                now = allowances[reservation_id]
                kept.append((reservation_id, now))
                _add(counts, held.owners, held.day, reserved=now.amount - held.amount)
            if rows:
                await connection.exec_driver_sql(self._insert, [structs.astuple(row) for row in rows])
            for (key_id, group_id, day), (cost, calls) in _sums(rows).items():
                _add(counts, (key_id, group_id) if group_id else (key_id,), day, spent=cost, calls=calls)
            await _set(connection, [(id_, now, "open") for id_, now in kept if now.amount])
            ended = [id_ for id_, now in kept if not now.amount]
            if ended:
                await connection.execute(delete(reservations).where(reservations.c.id.in_(ended)))
            await _count(connection, counts)

    async def reserve(self, reservation_id: str, key: Key, day: str, amount: int, *, job_id: str) -> Grant:
        async with self._database.write() as connection:
            rooms = await _rooms(connection, key, day, 0)
            free = min((room for _, room in rooms), default=amount)
            if free < amount:
                return await _too_little(connection, reservation_id, rooms, free, amount)
            await _open(connection, reservation_id, key, day, Kept(amount), job_id=job_id)
            await _count(connection, _places(budget.owners(key), day, reserved=amount))
            return Grant(amount)

    async def settle(self, reservation_id: str, row: LedgerRow) -> bool:
        async with self._database.write() as connection:
            if not await _end(connection, reservation_id, "settled"):
                return False
            await connection.execute(ledger.insert().values(LEDGER.values(row)))
            owners = (row.key_id, row.group_id) if row.group_id else (row.key_id,)
            spent = _places(owners, day_of(row.started_ms), spent=row.cost_microusd or 0, calls=1)
            await _count(connection, spent)
            billed = update(jobs).where(jobs.c.id == row.job_id, jobs.c.billed.is_(False))
            await connection.execute(billed.values(billed=True, cost_microusd=row.cost_microusd, updated_ms=now_ms()))
            return True

    async def release(self, reservation_id: str) -> bool:
        async with self._database.write() as connection:
            return await _end(connection, reservation_id, "released")

    async def sweep(self) -> int:
        orphans = [row.id for row in await self._database.rows(ORPHANS, {"stalled_ms": STALLED_MS})]
        ended = 0
        for orphan in orphans:  # each alone, for the order of locks
            async with self._database.write() as connection:
                ended += await _end(connection, orphan, "expired")
        async with self._database.write() as connection:
            await connection.execute(FORGET)
        return ended

    async def spend(self, owner_id: str, periods: Sequence[str]) -> list[Spend]:
        async with self._database.read() as connection:
            found = await spends(connection, [owner_id], periods)
        return [found.get((owner_id, period), Spend(period)) for period in periods]

    async def rows(self, *, key_id: str | None = None, after: str = "", limit: int = 50) -> list[LedgerRow]:
        query = select(*LEDGER.columns).limit(limit)
        if key_id is not None:
            query = query.where(ledger.c.key_id == key_id)
        return [LEDGER.read(row) for row in await self._database.rows(paged(query, ledger, after, by="started_ms"))]

    async def prune_ledger(self, before_ms: int) -> int:
        async with self._database.write() as connection:
            return (await connection.execute(delete(ledger).where(ledger.c.started_ms < before_ms))).rowcount


async def spends(connection: AsyncConnection, owner_ids: Sequence[str], periods: Sequence[str]) -> dict[Place, Spend]:
    """Give what keys or groups have spent, and what their running calls and jobs hold: not what is spare."""
    which = (among(spend.c.owner_id, owner_ids), spend.c.period.in_(periods))
    found = {(row[0], row[1]): Spend(*row[1:]) for row in await connection.execute(select(*SPEND).where(*which))}
    columns = (reservations.c.key_id, reservations.c.group_id, reservations.c.day)
    spare = (
        select(*columns, func.sum(reservations.c.spare_microusd))
        .where(reservations.c.state == "open", reservations.c.spare_microusd > 0)
        .where(or_(among(reservations.c.key_id, owner_ids), among(reservations.c.group_id, owner_ids)))
        .group_by(*columns)
    )
    counts: dict[Place, Spend] = {}
    for key_id, group_id, day, amount in await connection.execute(spare):
        _add(counts, (key_id, group_id), day, reserved=int(amount))
    return {
        place: structs.replace(now, reserved=now.reserved - counts[place].reserved) if place in counts else now
        for place, now in found.items()
    }


class Held(Struct, frozen=True):
    """A reservation as it is."""

    state: str
    amount: int
    owners: tuple[str, ...]
    day: str


async def _lock(connection: AsyncConnection, reservation_id: str) -> Held | None:
    """Give a reservation and keep others from it until the transaction's end."""
    row = (await connection.execute(LOCK, {"which": reservation_id})).one_or_none()
    if row is None:
        return None
    state, amount, key_id, group_id, day = row
    return Held(state, amount, (key_id, group_id) if group_id else (key_id,), day)


async def _open(  # noqa: PLR0913 - the columns of a row
    connection: AsyncConnection,
    reservation_id: str,
    key: Key,
    day: str,
    kept: Kept,
    *,
    holder: str = "",
    job_id: str = "",
) -> None:
    values = {
        "id": reservation_id,
        "key_id": key.id,
        "group_id": key.group_id,
        "day": day,
        "holder": holder,
        "job_id": job_id,
        "amount_microusd": kept.amount,
        "spare_microusd": kept.spare,
        "created_ms": now_ms(),
        "updated_ms": now_ms(),
    }
    await connection.execute(reservations.insert().values(values))


async def _set(connection: AsyncConnection, kept: Iterable[tuple[str, Kept, str]]) -> None:
    """Set amount, spare part and state of reservations."""
    rows = [{"which": id_, "amount": now.amount, "spare": now.spare, "now": state} for id_, now, state in kept]
    if rows:
        await connection.execute(SET, rows)


async def _end(connection: AsyncConnection, reservation_id: str, state: str) -> bool:
    """End an open reservation, giving all of it back; False: it is not open."""
    held = await _lock(connection, reservation_id)
    if held is None or held.state != "open":
        return False
    await _set(connection, [(reservation_id, Kept(0), state)])
    await _count(connection, _places(held.owners, held.day, reserved=-held.amount))
    return True


async def _rooms(connection: AsyncConnection, key: Key, day: str, held: int) -> list[tuple[budget.Limit, int]]:
    """Give what each budget of the key has left, `held` counted as free; locks them until the transaction's end."""
    limits = budget.limits(key, day)
    if not limits:
        return []
    owners, periods = budget.owners(key), periods_of(day)
    places = {"owners": owners, "periods": periods}
    found = {(row[0], row[1]): Spend(*row[1:]) for row in await connection.execute(ROOMS, places)}
    if len(found) < len(owners) * len(periods):
        await _count(connection, _places(owners, day))
        found = {(row[0], row[1]): Spend(*row[1:]) for row in await connection.execute(ROOMS, places)}
    return [(limit, budget.left(limit, found, held)) for limit in limits]


async def _too_little(
    connection: AsyncConnection, own: str, rooms: list[tuple[budget.Limit, int]], free: int, wanted: int
) -> Grant:
    """Say which budget ends, and how much of what it has given others do not use."""
    short = [limit for limit, room in rooms if room < wanted]
    amount, spare = reservations.c.amount_microusd, reservations.c.spare_microusd
    coming = case((_leased(DOUBTED_MS), spare), else_=amount)
    sums = []
    for owner in {limit.owner_id for limit in short}:
        query = select(func.coalesce(func.sum(coming), 0), func.coalesce(func.sum(amount), 0)).where(
            reservations.c.state == "open",
            reservations.c.job_id == "",
            reservations.c.id != own,
            or_(reservations.c.key_id == owner, reservations.c.group_id == owner),
        )
        sums.append((await connection.execute(query)).one())
    elsewhere, held = (int(min(column)) for column in zip(*sums, strict=True))
    return Grant(free, short[0].name, elsewhere, held)


def _places(
    owners: Iterable[str], day: str, *, spent: int = 0, reserved: int = 0, calls: int = 0
) -> dict[Place, Spend]:
    """Give what is to be added, everywhere that a call of these owners on this day counts."""
    counts: dict[Place, Spend] = {}
    _add(counts, owners, day, spent=spent, reserved=reserved, calls=calls)
    return counts


def _add(  # noqa: PLR0913 - the columns of a row
    counts: dict[Place, Spend], owners: Iterable[str], day: str, *, spent: int = 0, reserved: int = 0, calls: int = 0
) -> None:
    for owner in owners:
        for period in periods_of(day):
            now = counts.get((owner, period)) or Spend(period)
            counts[owner, period] = Spend(period, now.spent + spent, now.reserved + reserved, now.calls + calls)


def _sums(rows: Iterable[LedgerRow]) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Add up what rows cost, and how many they are, by key, group and day."""
    sums: dict[tuple[str, str, int], tuple[int, int]] = {}
    for row in rows:
        place = (row.key_id, row.group_id, row.started_ms // DAY_MS)
        cost, calls = sums.get(place, (0, 0))
        sums[place] = (cost + (row.cost_microusd or 0), calls + 1)
    return {(key, group, day_of(day * DAY_MS)): summed for (key, group, day), summed in sums.items()}


async def _count(connection: AsyncConnection, counts: Mapping[Place, Spend]) -> None:
    """Add to what was spent and reserved, in the order of places."""
    if not counts:
        return
    dialect = connection.dialect.name
    statement = COUNT.get(dialect)
    if statement is None:
        added = upsert(connection, spend)
        statement = COUNT[dialect] = added.on_conflict_do_update(
            index_elements=[spend.c.owner_id, spend.c.period],
            set_={name: spend.c[name] + added.excluded[name] for name in COUNTED},
        )
    rows = [
        {"owner_id": owner, "period": period, **dict(zip(COUNTED, (now.spent, now.reserved, now.calls), strict=True))}
        for (owner, period), now in sorted(counts.items(), key=itemgetter(0))
    ]
    await connection.execute(statement, rows)
