"""Which targets are well: a circuit breaker and cool-down per provider, upstream model and credential."""

from collections import defaultdict

from msgspec import Struct

from trunkline.routing.fallback import Failure

Key = tuple[str, str, str]
"""Provider, upstream model, the credential's name."""

TRIP_AFTER = 3
"""Failures in a row that open the circuit."""
REST_S = 5.0
LONGEST_REST_S = 120.0
AUTH_REST_S = 60.0
LONGEST_RETRY_AFTER_S = 3600.0
PROBE_S = 30.0
"""While one call tries a target again, others leave it alone for at most this long."""
FRESH_S = 300.0
"""A measured time to the first event counts for so long; then the target is measured again."""
SMOOTHING = 0.3
MOST_KEYS = 4096


class Condition(Struct):
    """What is known of one key; all times are the caller's clock, in seconds."""

    failures: int = 0
    """In a row."""
    refused: bool = False
    """The last failure was of the credential."""
    rests: int = 0
    """In a row; above 0 the circuit is open, or half open once the rest is over."""
    rest_until: float = 0.0
    probe_until: float = 0.0
    first_event_s: float | None = None
    measured_at: float = 0.0
    whole: bool = False
    """What was measured are answers that come whole, in the time that all of it takes."""


class Health:
    """Conditions of targets, given the time with every call. The least recently touched are forgotten first."""

    def __init__(self) -> None:
        self._conditions: dict[Key, Condition] = {}
        self.attempts: dict[str, int] = defaultdict(int)
        """Calls that went to a provider."""
        self.failures: dict[tuple[str, str], int] = defaultdict(int)
        """Those that failed before they answered, by provider and `Failure.kind`."""

    def usable(self, key: Key, now: float) -> bool:
        """Tell whether a call may go there: not resting, and nobody else trying it again just now."""
        condition = self._conditions.get(key)
        return not condition or (now >= condition.rest_until and now >= condition.probe_until)

    def ready_at(self, key: Key) -> float:
        """Give the time at which it may be tried again."""
        condition = self._conditions.get(key)
        return max(condition.rest_until, condition.probe_until) if condition else 0.0

    def began(self, key: Key, now: float) -> None:
        """Note that a call goes there; the first one after a rest is the probe."""
        self.attempts[key[0]] += 1
        condition = self._conditions.get(key)
        if condition and condition.rests:
            condition.probe_until = now + PROBE_S

    def succeeded(self, key: Key, now: float, first_event_s: float | None = None, *, whole: bool = False) -> None:
        """Note an answer; `first_event_s` is how long its first event took.

        `whole`: the answer was not streamed, and says little of that; it counts where no stream was measured lately.
        """
        condition = self._touch(key)
        if condition.failures:  # else it neither rests nor is it tried again
            condition.failures = condition.rests = 0
            condition.refused = False
            condition.rest_until = condition.probe_until = 0.0
        if first_event_s is None:
            return
        known = condition.first_event_s
        if known is None or now - condition.measured_at > FRESH_S or (condition.whole and not whole):
            condition.first_event_s, condition.whole = first_event_s, whole
        elif condition.whole == whole:
            condition.first_event_s = known + SMOOTHING * (first_event_s - known)
        else:
            return
        condition.measured_at = now

    def failed(self, key: Key, now: float, failure: Failure) -> None:
        """Note a failure; a refusal of the request says nothing of the target's health."""
        self.failures[key[0], failure.kind] += 1
        if failure.kind == "refused":
            self.left(key)
            return
        condition = self._touch(key)
        condition.probe_until = 0.0
        condition.failures += 1
        condition.refused = failure.kind == "auth"
        rest_s = _rest_s(condition, failure)
        if rest_s:
            condition.rests += 1
            condition.rest_until = max(condition.rest_until, now + rest_s)

    def left(self, key: Key) -> None:
        """Note that a call ended without a verdict: its client left, or its request was refused."""
        condition = self._conditions.get(key)
        if condition:
            condition.probe_until = 0.0

    def first_event_s(self, key: Key, now: float) -> float | None:
        """Give the usual time to the first event, smoothed; None: not measured lately."""
        condition = self._conditions.get(key)
        if not condition or condition.first_event_s is None or now - condition.measured_at > FRESH_S:
            return None
        return condition.first_event_s

    def snapshot(self, now: float) -> dict[Key, tuple[bool, float | None]]:
        """Give for every key that is known: whether it is usable, and its time to the first event."""
        return {key: (self.usable(key, now), self.first_event_s(key, now)) for key in self._conditions}

    def resting(self, now: float) -> dict[Key, tuple[float, bool]]:
        """Give the keys that rest: for how long yet, and whether because their credential was refused."""
        return {
            key: (condition.rest_until - now, condition.refused)
            for key, condition in self._conditions.items()
            if condition.rest_until > now
        }

    def _touch(self, key: Key) -> Condition:
        condition = self._conditions.pop(key, None)
        if condition is None:
            condition = Condition()
            if len(self._conditions) >= MOST_KEYS:
                del self._conditions[next(iter(self._conditions))]
        self._conditions[key] = condition
        return condition


def _rest_s(condition: Condition, failure: Failure) -> float:
    """How long to rest after a failure; 0: not at all."""
    if failure.retry_after_s:
        return min(failure.retry_after_s, LONGEST_RETRY_AFTER_S)
    doubled = 2.0 ** min(condition.rests, 10)
    if failure.kind == "auth":
        return min(AUTH_REST_S * doubled, LONGEST_RETRY_AFTER_S)
    if failure.kind == "rate" or condition.rests or condition.failures >= TRIP_AFTER:
        return min(REST_S * doubled, LONGEST_REST_S)
    return 0.0
