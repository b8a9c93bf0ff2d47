"""In which order a route's targets and their credentials are tried."""

from collections.abc import Callable, Sequence

from trunkline.core.route import Route, RouteTarget
from trunkline.core.secret import Secret
from trunkline.routing.fallback import Failure
from trunkline.routing.health import Health, Key


class Attempt:
    """One target with one of its credentials (None: it needs none)."""

    __slots__ = ("credential", "item", "key")

    def __init__(self, item: RouteTarget, credential: Secret | None = None) -> None:
        self.item = item
        self.credential = credential
        target = item.target
        self.key: Key = (target.provider, target.model, credential.name if credential else "")
        """What its health is kept under."""


def plan(route: Route, health: Health, now: float, *, chance: float = 0.0, turn: int = 0) -> list[Attempt]:
    """Give the attempts of a call, best first; those that rest are left out, but never the last one.

    `chance` in [0, 1) decides weights; `turn` counts a provider's calls, so that its credentials take turns.
    """
    attempts = [
        Attempt(item, credential)
        for item in ordered(route, lambda item: _speed(item, health, now), chance)
        for credential in rotated(item.credentials, turn) or (None,)
    ]
    usable = [attempt for attempt in attempts if health.usable(attempt.key, now)]
    return usable or [min(attempts, key=lambda attempt: health.ready_at(attempt.key))]


def following(rest: Sequence[Attempt], failed: Attempt, failure: Failure) -> list[Attempt]:
    """Give those of the rest that may still be tried after a failure."""
    if failure.blame == "request":
        return []
    if failure.blame == "credential":
        return list(rest)
    return [attempt for attempt in rest if attempt.key[:2] != failed.key[:2]]


def ordered(route: Route, speed: Callable[[RouteTarget], float | None], chance: float) -> list[RouteTarget]:
    """Put a route's targets in order by its strategy. `speed` gives a target's usual seconds to the first event."""
    if route.settings.strategy == "weighted":
        return weighted(route.targets, chance)
    if route.settings.strategy == "fastest":
        return fastest(route.targets, speed)
    return list(route.targets)


def weighted(targets: Sequence[RouteTarget], chance: float) -> list[RouteTarget]:
    """Draw targets one after another, each by its share of what is left; one number in [0, 1) decides all draws."""
    left = list(targets)
    drawn: list[RouteTarget] = []
    while left:
        point = chance * sum(item.weight for item in left)
        for at, item in enumerate(left):  # noqa: B007 - `at` is used behind the loop
            if point < item.weight:
                break
            point -= item.weight
        item = left.pop(at)
        chance = min(max(point / item.weight, 0.0), 1.0 - 2**-53)
        drawn.append(item)
    return drawn


def fastest(targets: Sequence[RouteTarget], speed: Callable[[RouteTarget], float | None]) -> list[RouteTarget]:
    """Put the quickest first; one without a figure goes before all, so that it gets one."""
    return sorted(targets, key=lambda item: speed(item) or 0.0)


def rotated(credentials: Sequence[Secret], turn: int) -> list[Secret]:
    """Begin with the credential whose turn it is."""
    at = turn % len(credentials) if credentials else 0
    return [*credentials[at:], *credentials[:at]]


def _speed(item: RouteTarget, health: Health, now: float) -> float | None:
    """Give the best figure over a target's credentials."""
    keys = [Attempt(item, credential).key for credential in item.credentials or (None,)]
    figures = [figure for key in keys if (figure := health.first_event_s(key, now)) is not None]
    return min(figures) if figures else None
