"""How often a provider is asked whether it is done: pure arithmetic."""

from collections.abc import Mapping

SHORTEST_S = 0.2
LONGEST_S = 120.0
TELLING = 10.0
"""Percent from which on the speed so far says more than former work."""
RETRIED = frozenset({408, 425, 429})
"""Statuses that say nothing about the work: ask again. So do all from 500 on."""


def pause_s(elapsed_s: float, failures: int, hint_s: float | None) -> float:
    """Say how long to wait before the next poll.

    As the provider wants it, if it says so; else a tenth of the time so far (1 to 10 s). After failures in a row the
    pause doubles each time, up to a minute.
    """
    usual = min(max(elapsed_s / 10, 1.0), 10.0)
    if failures:
        usual = min(usual * 2 ** min(failures, 6), 60.0)
    return min(max(usual if hint_s is None else max(hint_s, usual if failures else 0.0), SHORTEST_S), LONGEST_S)


def left_s(elapsed_s: float, percent: float | None, expected_s: float) -> float | None:
    """Say how long work will take yet; `expected_s` is what such work usually takes in all, 0: not known."""
    if percent is not None and percent >= TELLING:
        return elapsed_s * (100 - percent) / percent
    return expected_s - elapsed_s if expected_s > elapsed_s + 0.5 else None


def hint_s(headers: Mapping[str, str]) -> float | None:
    """Read when the provider wants to be asked next: milliseconds before seconds; dates are not read."""
    for name, unit_s in (("openai-poll-after-ms", 0.001), ("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = headers.get(name, "").strip()
        if text.isascii() and text.replace(".", "", 1).isdigit() and len(text) < 12:
            return float(text) * unit_s
    return None


def is_transient(status: int) -> bool:
    """Tell whether an answer's status says nothing about the work itself."""
    return status in RETRIED or status >= 500
