"""How much of a budget a process may hold: the rule behind `docs/decisions/budgets.md`."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from trunkline.core.keys import Key
from trunkline.core.money import Budget, Spend, dollars, periods_of

SHARE = 16
"""Where there is plenty, a process holds at most this part of what is left."""


class Limit(Struct, frozen=True):
    """One budget that counts for a call: whose, in which period, how much."""

    owner_id: str
    period: str
    most: int
    name: str


def owners(key: Key) -> tuple[str, ...]:
    """Give whose spending a call of this key is: the key's, and its group's."""
    return (key.id, key.group.id) if key.group else (key.id,)


def limits(key: Key, day: str) -> list[Limit]:
    """Give the budgets of a key and its group that count on this day."""
    found = _limits(key.id, key.budget, day, "this key's")
    return found + _limits(key.group.id, key.group.budget, day, "the group's") if key.group else found


def _limits(owner_id: str, budget: Budget, day: str, whose: str) -> list[Limit]:
    mosts = ((budget.total, "in all"), (budget.day, "a day"), (budget.month, "a month"))
    return [
        Limit(owner_id, period, most, f"{whose} budget of {dollars(most)} {per}")
        for period, (most, per) in zip(periods_of(day), mosts, strict=True)
        if most is not None
    ]


def left(limit: Limit, spend: Mapping[tuple[str, str], Spend], own: int) -> int:
    """Give what is left of a budget, with `own` (what the asking process holds reserved) counted as free."""
    now = spend[limit.owner_id, limit.period]
    return limit.most - now.spent - now.reserved + own


def grant(rooms: Sequence[int], must: int, demand: int) -> int:
    """Give what may be held beyond `must`: the demand if there is room, and more where there is plenty.

    Below zero: what must be held is more than the budgets have; so much has to come back before anything is given.
    """
    room = min(rooms) - must
    return min(room, max(demand, room // SHARE))
