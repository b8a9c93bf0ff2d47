"""Rates: how much a key may ask for in any 60 seconds, exact to one, and how many streams it may have open."""

from msgspec import Struct, field

from trunkline.core.errors import GatewayError
from trunkline.core.keys import Rates
from trunkline.core.rates import Left, RateKind, Verdict

WINDOW = 600
"""Slots in the window: 60 seconds."""
SLOT_S = 0.1


class Window(Struct):
    """What was counted in the last 60 seconds, by tenths of a second; a slot leaves when all of it is older."""

    slots: list[tuple[int, int]] = field(default_factory=list)
    total: int = 0

    def forget(self, slot: int) -> None:
        """Let go of what is older than the window, and of what was counted before the clock was set back."""
        first, last = slot - WINDOW, slot + WINDOW
        if not self.slots or (self.slots[0][0] >= first and self.slots[-1][0] <= last):
            return
        self.slots = [counted for counted in self.slots if first <= counted[0] <= last]
        self.total = sum(amount for _, amount in self.slots)

    def add(self, amount: int, slot: int) -> None:
        """Count. What is corrected later (a negative amount too) counts in the slot it was first counted in."""
        if not amount:
            return
        for at in range(len(self.slots) - 1, -1, -1):
            then, counted = self.slots[at]
            if then == slot:
                self.slots[at] = (slot, counted + amount)
                break
            if then < slot:
                self.slots.insert(at + 1, (slot, amount))
                break
        else:
            self.slots.insert(0, (slot, amount))
        self.total += amount

    def wait_s(self, surplus: int, slot: int) -> float:
        """Give how long it takes until so much has left."""
        for then, counted in self.slots:
            surplus -= counted
            if surplus <= 0:
                return (then + WINDOW + 1 - slot) * SLOT_S
        return WINDOW * SLOT_S


class Counters(Struct):
    """What one key has asked for lately."""

    requests: Window = field(default_factory=Window)
    tokens: Window = field(default_factory=Window)
    images: Window = field(default_factory=Window)
    streams: int = 0

    def take(self, rates: Rates, slot: int, *, tokens: int, images: int, streams: int) -> Verdict:
        """Count a call in all windows, or in none; `streams` is 1 if it is to be streamed."""
        if rates.streams is not None and streams and self.streams + streams > rates.streams:
            return Verdict("streams", rates.streams, 1.0)
        asked: tuple[tuple[RateKind, Window, int | None, int], ...] = (
            ("requests", self.requests, rates.requests, 1),
            ("tokens", self.tokens, rates.tokens, tokens),
            ("images", self.images, rates.images, images),
        )
        for kind, window, limit, amount in asked:
            window.forget(slot)
            if limit is not None and amount and window.total + amount > limit:
                return Verdict(kind, limit, window.wait_s(window.total + amount - limit, slot))
        for _, window, limit, amount in asked:
            if limit is not None:
                window.add(amount, slot)
        self.streams += streams
        return Verdict(
            requests=_left(self.requests, rates.requests, slot), tokens=_left(self.tokens, rates.tokens, slot)
        )

    def end(self, slot: int, *, more_tokens: int, streams: int) -> None:
        """End a call that was let in at `slot`: `more_tokens` is what it used beyond (or below) what was counted."""
        self.streams -= streams
        self.tokens.add(more_tokens, slot)

    @property
    def empty(self) -> bool:
        """Tell whether there is nothing to remember."""
        return not (self.streams or self.requests.slots or self.tokens.slots or self.images.slots)


def slot_of(now_s: float) -> int:
    """Give the slot of an instant, of any clock."""
    return int(now_s / SLOT_S)


def _left(window: Window, limit: int | None, slot: int) -> Left | None:
    if limit is None:
        return None
    reset_s = (window.slots[-1][0] + WINDOW + 1 - slot) * SLOT_S if window.slots else 0.0
    return Left(limit, max(0, limit - window.total), reset_s)


def headers(verdict: Verdict) -> tuple[tuple[str, str], ...]:
    """Give the `x-ratelimit-*` headers of an answer, as OpenAI spells them."""
    found: list[tuple[str, str]] = []
    for kind, left in (("requests", verdict.requests), ("tokens", verdict.tokens)):
        if left is not None:
            found += [
                (f"x-ratelimit-limit-{kind}", str(left.limit)),
                (f"x-ratelimit-remaining-{kind}", str(left.remaining)),
                (f"x-ratelimit-reset-{kind}", f"{left.reset_s:.1f}s"),
            ]
    return tuple(found)


def refusal(verdict: Verdict, *, tokens: int = 0, images: int = 0) -> GatewayError:
    """Give the error of a call that a rate stands against (429 with `retry-after`).

    One that alone counts for more than the rate is told so: clients are not to ask again by themselves.
    """
    alone = {"tokens": tokens, "images": images}.get(verdict.short or "", 0)
    if alone > verdict.limit:
        told = f"this call alone counts for {alone} {verdict.short}, and this key may use {verdict.limit} a minute"
        if verdict.short == "tokens":
            told += "; they are its input and the most that it asks for: a smaller `max_tokens` helps"
        never = (("retry-after", f"{WINDOW * SLOT_S:.0f}"), ("x-should-retry", "false"))
        return GatewayError("rate_limit_exceeded", told, headers=never)
    if verdict.short == "streams":
        told = f"this key may have {verdict.limit} streams open at once, and has"
    else:
        what = verdict.short if verdict.limit != 1 else (verdict.short or "").removesuffix("s")
        told = f"this key may use {verdict.limit} {what} a minute, and this call would be more"
    seconds = max(1, -int(-verdict.retry_after_s // 1))
    return GatewayError(
        "rate_limit_exceeded", f"{told}; try again in {seconds} s", headers=(("retry-after", str(seconds)),)
    )
