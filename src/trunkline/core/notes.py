"""What the stations of the line noticed and repaired, counted by name; kept one by one for who wants to read them."""

from msgspec import Struct


class Departure(Struct, frozen=True):
    """One departure from the output contract. `line` counts from 1 in the upstream's bytes; 0: not known."""

    rule: str
    line: int
    message: str


class Notes:
    """Repairs of one stream. `thorough`: keep each one, and look for those that cost time to see."""

    MOST = 10_000

    def __init__(self, *, thorough: bool = False) -> None:
        self.thorough = thorough
        self.counts: dict[str, int] = {}
        self.departures: list[Departure] = []

    def add(self, rule: str, line: int = 0, message: str = "") -> None:
        """Count a departure under the name of a rule of `core.rules`."""
        self.counts[rule] = self.counts.get(rule, 0) + 1
        if self.thorough and len(self.departures) < self.MOST:
            self.departures.append(Departure(rule, line, message))
