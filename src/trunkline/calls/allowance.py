"""What this process holds of one key's budgets: taken from in memory, made larger and smaller in the database."""

import asyncio
import secrets
import time
from collections import deque

from msgspec import Struct

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.money import DAY_MS, day_of, dollars
from trunkline.core.state import Grant, Kept

SURE_S = 1.5
"""So long a call waits for any money that others hold: they may have ceased to use it, or to live, just now."""
PATIENCE_S = 10.0
"""How long it waits for what they do not use, or hold under a lease that is not renewed (8 s, until it is swept)."""


class Waiter(Struct, eq=False):
    """A call that waits for money."""

    amount: int
    since: float
    future: asyncio.Future[None]


class Allowance:
    """Money of one key on one day, in three parts: what the database holds reserved under `id` is their sum, or more.

    Taking and settling move money between the parts; only what is asked of the database changes the sum.
    """

    __slots__ = (
        "active", "asking", "day", "day_number", "free", "id", "idle", "key", "lock", "unbooked", "used", "waiting",
    )  # fmt: skip

    def __init__(self, key: Key, day_number: int) -> None:
        self.key = key
        self.day_number = day_number
        """Days since 1970."""
        self.day = day_of(day_number * DAY_MS)
        self.id = ""
        """The reservation; empty: nothing is reserved in the database."""
        self.free = 0
        """Not in use. Below zero: calls cost more than was set aside; nothing is free before that is made up for."""
        self.used = 0
        """Set aside for running calls."""
        self.unbooked = 0
        """Cost of calls that have ended and are not booked yet."""
        self.active = False
        """Something happened since the last look."""
        self.idle = 0
        """Looks since anything happened."""
        self.asking = False
        self.waiting: deque[Waiter] = deque()
        self.lock = asyncio.Lock()
        """Held while the database is asked to change this allowance."""

    def take(self, amount: int) -> bool:
        """Set money aside for a call, if enough is free."""
        if amount > self.free:
            return False
        self.free -= amount
        self.used += amount
        self.active = True
        return True

    def give_back(self, amount: int) -> None:
        """Undo `take`."""
        self.used -= amount
        self.free += amount
        self.active = True

    def settle(self, amount: int, cost: int) -> None:
        """End a call that took `amount` and cost `cost`."""
        self.used -= amount
        self.free += amount - cost
        self.unbooked += cost
        self.active = True

    def serve(self) -> None:
        """Let waiting calls have what is free, first come, first served; who asks for less may pass."""
        for waiter in list(self.waiting):
            if waiter.future.done():
                self.waiting.remove(waiter)
            elif self.take(waiter.amount):
                self.waiting.remove(waiter)
                waiter.future.set_result(None)

    def lose(self) -> None:
        """Note that the reservation was ended by others: nothing is free any more."""
        self.id = ""
        self.free = 0

    def look(self) -> None:
        """Count how long nothing has happened; called every tick."""
        self.idle = 0 if self.active or self.waiting else self.idle + 1
        self.active = False

    def kept(self, booked: int) -> Kept:
        """Give how large the reservation is to be once calls of this cost are booked."""
        spare = max(0, self.free)
        return Kept(spare + self.used + self.unbooked - booked, spare)

    @property
    def empty(self) -> bool:
        """Tell whether nothing depends on it."""
        return not (self.used or self.unbooked or self.free > 0 or self.waiting or self.asking or self.id)


def unavailable() -> GatewayError:
    """Give the error for calls that cost money while the ledger cannot be written."""
    return GatewayError(
        "storage_unavailable", "the database is away; calls that cost money are refused until it is back"
    )


def hopeless(grant: Grant, missing: int, since: float) -> bool:
    """Tell whether what is missing cannot come, to a call that waits since then."""
    waited_s = time.monotonic() - since
    return waited_s >= PATIENCE_S or missing > (grant.held if waited_s < SURE_S else grant.elsewhere)


def spent(grant: Grant, amount: int) -> GatewayError:
    """Give the error for a call that a budget does not allow; `amount` is the most that it may cost."""
    told = f"{grant.short} does not allow this call: it may cost up to {dollars(amount)}, and less than that is left"
    return GatewayError("budget_exceeded", told)


def new_id() -> str:
    """Name a reservation."""
    return f"res_{secrets.token_hex(12)}"
