"""Every call's money: set aside before it, settled once after it, booked in batches.

A key without a budget costs the database nothing before the call. For a key with one, this process holds an allowance:
a part of the budget that is reserved in the database, from which calls are admitted in memory; where little is left, it
is exactly what the waiting calls ask for (`docs/decisions/budgets.md`).
"""

import asyncio
import contextlib
import itertools
import logging
import time
from collections import defaultdict, deque
from collections.abc import Mapping

from msgspec import Struct

from trunkline.calls.allowance import Allowance, Waiter, hopeless, new_id, spent, unavailable
from trunkline.calls.inbox import Inbox
from trunkline.calls.life import Life
from trunkline.calls.unbroken import unbroken
from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.money import DAY_MS, LedgerRow, day_of
from trunkline.core.state import Ask, Journal, MoneyStore, StaleOwnerError, StorageError, UnstorableError
from trunkline.policy.budget import owners

TICK_S = 0.25
IDLE_TICKS = 240
"""An allowance that nobody used for so long gives back what is free, though nobody wants it."""
SWEEP_TICKS = 20
SWEEP_S = 1.0
"""While calls wait for money, what the dead hold is looked for more often."""
ASK_AGAIN_S = 0.25
TELL_AGAIN = 4
WANTED = "money_wanted"
"""The signal of a call that waits for money; its body is whose: the ids of a key and its group."""
MOST_ROWS = 20_000
"""Rows that are kept in memory while the database is away; the others are read from the journal."""
log = logging.getLogger(__name__)


class Hold(Struct, eq=False):
    """One call's money. It ends once: by `Billing.settle` or `Billing.release`."""

    amount: int
    allowance: Allowance | None = None
    open: bool = True


class Batch(Struct, eq=False):
    """Rows to be booked together, and what they take from allowances. `rows` None: they are in the journal alone."""

    rows: list[LedgerRow] | None
    segment: str | None
    costs: dict[Allowance, int]
    whole: bool = True
    """The segment has all of the rows."""


class Billing:
    """Reservations and the ledger of a process: `sweep` at start, then `run`, which books the rest when cancelled."""

    def __init__(self, store: MoneyStore, life: Life, journal: Journal, inbox: Inbox) -> None:
        self._store = store
        self._life = life
        self._inbox = inbox
        self._wanted: set[str] = set()  # whose money others have come to want
        self._journal = journal
        self._current: dict[str, Allowance] = {}
        self._all: set[Allowance] = set()
        self._unwritten: list[LedgerRow] = []
        self._rows: list[LedgerRow] = []
        self._costs: dict[Allowance, int] = defaultdict(int)
        self._batches: deque[Batch] = deque()
        self._flushing = asyncio.Lock()
        self._tasks: asyncio.TaskGroup | None = None
        self._written = True
        self._failed = False
        self._swept = 0.0
        life.on_lost.append(self._lose)
        inbox.listen(WANTED, lambda: any(a.id for a in self._all), lambda body: self._wanted.update(body.split()))

    @property
    def trouble(self) -> bool:
        """Tell whether the ledger cannot be written now, so that calls that cost money must wait."""
        return self._failed or not self._life.reachable

    # -- before and after a call ------------------------------------------------------------------------------------

    def try_reserve(self, key: Key, amount: int, now_ms: int) -> Hold | None:
        """Set aside `amount` micro-dollars if that needs no wait; None: ask `reserve`."""
        if not amount:
            return Hold(0)
        if not key.budgeted:
            return None if self.trouble else Hold(0)
        allowance, life = self._current.get(key.id), self._life
        if (
            allowance is not None
            and allowance.key is key
            and allowance.day_number == now_ms // DAY_MS
            and life.reachable
            and life.held
            and not self._failed
            and allowance.take(amount)
        ):
            return Hold(amount, allowance)
        return None

    async def reserve(self, key: Key, amount: int, now_ms: int) -> Hold:
        """Set aside the most that a call may cost; 0: it is free.

        Raises GatewayError `budget_exceeded`, or `storage_unavailable` while the ledger cannot be written.
        """
        if (hold := self.try_reserve(key, amount, now_ms)) is not None:
            return hold
        await self._life.regain()
        if self.trouble or not self._life.held or self._tasks is None:
            raise unavailable()
        if not key.budgeted:
            return Hold(0)
        allowance = self._allowance(key, now_ms // DAY_MS)
        waiter = Waiter(amount, time.monotonic(), asyncio.get_running_loop().create_future())
        allowance.waiting.append(waiter)
        if not allowance.asking:
            allowance.asking = True
            self._tasks.create_task(self._ask(allowance))
        try:
            await waiter.future
        except asyncio.CancelledError:
            if waiter.future.done() and not waiter.future.cancelled() and waiter.future.exception() is None:
                allowance.give_back(amount)
            self._costs[allowance] += 0  # what was asked for it is spare, which others are to know
            raise
        return Hold(amount, allowance)

    def settle(self, hold: Hold, row: LedgerRow) -> bool:
        """Settle a call that began, however it ended: never waits. False, and nothing done: it was settled before."""
        if not hold.open:
            return False
        hold.open = False
        self._put(hold, hold.amount, row)
        return True

    def book_beside(self, hold: Hold, row: LedgerRow) -> None:
        """Book what a call has cost beside its own answer; it is not settled by that."""
        if hold.open:
            self._put(hold, 0, row)

    def _put(self, hold: Hold, amount: int, row: LedgerRow) -> None:
        """Hand a row in, which ends `amount` of what was set aside."""
        allowance = hold.allowance
        if allowance is not None:
            cost = row.cost_microusd or 0
            allowance.settle(amount, cost)
            self._costs[allowance] += cost
        if not self._unwritten:
            asyncio.get_running_loop().call_soon(self._write)
        self._unwritten.append(row)
        self._rows.append(row)

    def release(self, hold: Hold) -> None:
        """Give back the money of a call that never began."""
        if hold.open and hold.allowance is not None:
            hold.allowance.give_back(hold.amount)
            self._costs[hold.allowance] += 0
        hold.open = False

    # -- jobs: their money outlives this process ----------------------------------------------------------------------

    async def reserve_job(self, key: Key, amount: int, job_id: str, now_ms: int) -> str:
        """Set money aside until the job is settled or released; gives the reservation's id. Raises as `reserve`."""
        reservation_id, since = new_id(), time.monotonic()
        for tries in itertools.count():
            try:
                grant = await unbroken(self._store.reserve(reservation_id, key, day_of(now_ms), amount, job_id=job_id))
                if grant.free >= amount:
                    break
                if hopeless(grant, amount - grant.free, since):
                    raise spent(grant, amount)
                await self._want(key, tries)
            except asyncio.CancelledError:
                with contextlib.suppress(StorageError):  # then the sweep ends it
                    await self._store.release(reservation_id)
                raise
            except StorageError as error:
                raise unavailable() from error
        return reservation_id

    async def settle_job(self, reservation_id: str, row: LedgerRow) -> bool:
        """Book a job's row and mark the job as billed; False, and nothing done: it was before. Raises StorageError."""
        if not reservation_id:
            await self._store.book([row], {})
            return True
        return await self._store.settle(reservation_id, row)

    async def release_job(self, reservation_id: str) -> bool:
        """Give a job's money back; False: it had ended. Raises StorageError."""
        return await self._store.release(reservation_id)

    # -- behind the calls ---------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Book what was settled, a few times a second; look after the reservations and journals of the dead."""
        try:
            async with asyncio.TaskGroup() as self._tasks:
                for tick in itertools.count(1):
                    await asyncio.sleep(TICK_S)
                    for allowance in self._all:
                        allowance.look()
                    await self.flush()
                    if tick % SWEEP_TICKS == 0:
                        await self.sweep()
        except BaseException as error:
            self._tasks = None
            if isinstance(error, asyncio.CancelledError):  # else the journal stays open, for the next process
                await self.flush(last=True)
                self._journal.close()
            raise

    async def flush(self, *, last: bool = False) -> None:
        """Book what was settled, or keep it; give back what others want, or all (`last`)."""
        async with self._flushing:
            self._write()
            if self._rows or self._costs:
                self._batches.append(Batch(self._rows, self._journal.cut(), self._costs, self._written))
                self._rows, self._costs, self._written = [], defaultdict(int), True
            try:
                while self._batches:
                    await self._book(self._batches[0])
                    self._batches.popleft()
                wanted, self._wanted = self._wanted, set()
                rested = [a for a in self._all if a.id and not a.asking]
                due = [a for a in rested if last or a.idle >= IDLE_TICKS or not wanted.isdisjoint(owners(a.key))]
                if due:
                    await self._set(dict.fromkeys(due, 0), [], give_back=True)
                self._failed = False
            except (StorageError, OSError) as error:
                self._failed = True
                self._unload()
                log.warning("the ledger cannot be written, calls that cost money are refused: %s", error)
        self._all = {allowance for allowance in self._all if not allowance.empty}
        self._current = {key_id: allowance for key_id, allowance in self._current.items() if allowance in self._all}

    async def _want(self, key: Key, tries: int) -> None:
        """Wait a little for what others hold of a key's budgets; now and then tell the living, and bury the dead."""
        if tries % TELL_AGAIN == 0:
            await self._inbox.send(WANTED, " ".join(owners(key)))
        if time.monotonic() - self._swept > SWEEP_S:
            await self.sweep()
        await asyncio.sleep(ASK_AGAIN_S)

    async def _book(self, batch: Batch) -> None:
        """Book a batch and what it leaves of allowances. Raises StorageError, and nothing was done."""
        rows = self._journal.read(batch.segment or "") if batch.rows is None else batch.rows
        try:
            await self._set(batch.costs, rows)
        except UnstorableError:
            await self._set(batch.costs, await self._reject(rows))
        if batch.segment is not None:
            self._journal.drop(batch.segment)

    async def _set(self, costs: Mapping[Allowance, int], rows: list[LedgerRow], *, give_back: bool = False) -> None:
        """Book rows, and set allowances to what is left of them then."""
        async with contextlib.AsyncExitStack() as locks:
            for allowance in costs:
                await locks.enter_async_context(allowance.lock)
                if give_back:
                    allowance.free = min(0, allowance.free)
            kept = {a.id: a.kept(cost) for a, cost in costs.items() if a.id}
            await self._store.book(rows, kept)
            for allowance, cost in costs.items():
                allowance.unbooked -= cost
                allowance.idle = 0 if give_back else allowance.idle
                if allowance.id in kept and not kept[allowance.id].amount:
                    allowance.id = ""

    async def _reject(self, rows: list[LedgerRow]) -> list[LedgerRow]:
        """Book rows one by one, put aside those that cannot be, and give the others (booked already)."""
        good = []
        for row in rows:
            try:
                await self._store.book([row], {})
                good.append(row)
            except UnstorableError as error:
                self._journal.reject(row)
                log.error("the ledger row of call %s cannot be stored and was put aside: %s", row.id, error)  # noqa: TRY400
        return good

    def _write(self) -> None:
        """Write to the journal what was settled since the last turn of the loop."""
        rows, self._unwritten = self._unwritten, []
        if not rows:
            return
        try:
            self._journal.write(rows)
        except OSError as error:
            self._written = False
            log.warning("the journal cannot be written: %s", error)

    def _unload(self) -> None:
        """Leave to the journal what is too much for the memory."""
        kept = 0
        for batch in self._batches:
            kept += len(batch.rows or ())
            if kept > MOST_ROWS and batch.segment is not None and batch.whole:
                batch.rows = None

    async def sweep(self) -> None:
        """Book what dead processes left in their journals and end their reservations; first of all at start."""
        self._swept = time.monotonic()
        try:
            try:
                with contextlib.closing(self._journal.left()) as segments:
                    for segment in segments:
                        await self._book(Batch(None, segment, {}))
            finally:
                await self._store.sweep()
        except (StorageError, OSError) as error:
            log.warning("what other processes left cannot be booked now: %s", error)

    # -- allowances ---------------------------------------------------------------------------------------------------

    def _allowance(self, key: Key, day_number: int) -> Allowance:
        """Give the allowance that a call of this key takes from today."""
        allowance = self._current.get(key.id)
        if allowance is None or (allowance.day_number, owners(allowance.key)) != (day_number, owners(key)):
            allowance = self._current[key.id] = Allowance(key, day_number)
            self._all.add(allowance)
        elif allowance.key is not key:  # it has changed: what is free was granted under other limits
            allowance.key = key
            allowance.free = min(0, allowance.free)
        return allowance

    async def _ask(self, allowance: Allowance) -> None:
        """Enlarge an allowance until nobody waits for it."""
        error: GatewayError | None = None
        try:
            for tries in itertools.count():
                async with allowance.lock:
                    await self._enlarge(allowance)
                if not allowance.waiting:
                    break
                await self._want(allowance.key, tries)
        except Exception as cause:  # whatever it is, the accounting of the other calls goes on
            if not isinstance(cause, StorageError):
                log.exception("money cannot be set aside for calls of key %s", allowance.key.id)
            error = unavailable()
            error.__cause__ = cause
        except asyncio.CancelledError:
            error = GatewayError("shutting_down", "the server is going down")
            raise
        finally:
            allowance.asking = False
            while allowance.waiting:
                waiter = allowance.waiting.popleft()
                if not waiter.future.done():
                    waiter.future.set_exception(error or unavailable())

    async def _enlarge(self, allowance: Allowance) -> None:
        """Ask the database once for what calls wait for; refuse those for which there is no hope."""
        allowance.serve()
        asking = list(allowance.waiting)
        if not asking:
            return
        allowance.id = allowance.id or new_id()
        allowance.free = 0
        ask = Ask(
            reservation_id=allowance.id,
            holder=self._life.holder,
            key=allowance.key,
            day=allowance.day,
            must=allowance.used + allowance.unbooked,
            demand=sum(waiter.amount for waiter in asking),
        )
        try:
            grant = await self._store.resize(ask)
        except StaleOwnerError:
            allowance.lose()
            return
        allowance.free += grant.free
        allowance.serve()
        refused = [
            waiter
            for waiter in asking
            if not waiter.future.done() and hopeless(grant, waiter.amount - allowance.free, waiter.since)
        ]
        if refused and allowance.free > 0:  # too little for them, though perhaps not for others elsewhere
            allowance.free = 0
            await self._store.book([], {allowance.id: allowance.kept(0)})
        for waiter in refused:
            if not waiter.future.done():  # it may have left meanwhile
                allowance.waiting.remove(waiter)
                waiter.future.set_exception(spent(grant, waiter.amount))

    def _lose(self) -> None:
        """Ask anew before anything is admitted: the lease was over, and what was reserved under it may be gone."""
        for allowance in self._all:
            allowance.free = min(0, allowance.free)
