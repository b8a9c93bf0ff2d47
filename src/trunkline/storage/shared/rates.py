"""Rates counted in this process: the port `core.rates.RateLimiter`, for a gateway that is one process."""

import time

from trunkline.core.keys import Key
from trunkline.core.rates import Passed, Verdict
from trunkline.policy.rate import Counters, slot_of

SWEEP_EVERY = 4096


class LocalRates:
    """See `core.rates.RateLimiter`."""

    def __init__(self) -> None:
        self._counters: dict[str, Counters] = {}
        self._takes = 0

    async def take(self, key: Key, *, tokens: int, images: int, streams: int) -> tuple[Verdict, Passed]:
        slot = slot_of(time.monotonic())
        counters = self._counters.get(key.id)
        if counters is None:
            counters = self._counters[key.id] = Counters()
        self._takes += 1
        if self._takes % SWEEP_EVERY == 0:
            self._sweep(slot)
        verdict = counters.take(key.rates, slot, tokens=tokens, images=images, streams=streams)
        return verdict, Passed(key.id, slot, tokens, streams)

    def check(self, key: Key) -> None:
        """Let every key pass: nothing here can be away."""

    def end(self, passed: Passed, tokens: int) -> None:
        if (counters := self._counters.get(passed.key_id)) is not None:
            counters.end(passed.mark, more_tokens=tokens - passed.tokens, streams=passed.streams)

    def close(self) -> None:
        """Nothing is open."""

    def _sweep(self, slot: int) -> None:
        """Forget keys that have not called for a minute."""
        for key_id, counters in list(self._counters.items()):
            for window in (counters.requests, counters.tokens, counters.images):
                window.forget(slot)
            if counters.empty:
                del self._counters[key_id]
