"""What the stations of the line noticed and repaired, counted by name; kept one by one for who wants to read them."""

from typing import ClassVar

from msgspec import Struct


class Departure(Struct, frozen=True):
    """One departure from the output contract. `line` counts from 1 in the upstream's bytes; 0: not known."""

    rule: str
    line: int
    message: str


class Notes(Struct, eq=False):
    """Repairs of one stream. `thorough`: keep each one, and look for those that cost time to see."""

    MOST: ClassVar[int] = 10_000
    thorough: bool = False
    counts: dict[str, int] = {}
    departures: list[Departure] = []

    def add(self, rule: str, line: int = 0, message: str = "") -> None:
        """Count a departure under the name of a rule of `core.rules`."""
        self.counts[rule] = self.counts.get(rule, 0) + 1
        if self.thorough and len(self.departures) < self.MOST:
            self.departures.append(Departure(rule, line, message))
