"""Which failures may go to another target, and which of several failures the client hears of (contract section 6)."""

from collections.abc import Sequence
from typing import Literal, TypeVar

from msgspec import Struct

from trunkline.core.route import Alias

Blame = Literal["request", "credential", "target"]
"""Whose fault a failure is: the request's (nobody else would take it), one credential's, or the target's."""

BY_CHOICE = frozenset({"context_length_exceeded", "content_filter"})
REQUEST_STATUSES = frozenset({400, 405, 406, 409, 411, 413, 414, 415, 416, 422, 431})
AUTH_STATUSES = frozenset({401, 402, 403})
RETRY_S = 0.25
LONGEST_RETRY_S = 4.0


class Failure(Struct, frozen=True):
    """A failed attempt, as routing sees it."""

    code: str
    status: int | None = None
    """The upstream's own; None: there was no answer."""
    blame: Blame = "target"
    kind: Literal["auth", "rate", "missing", "refused", "broken"] = "broken"
    retry_after_s: float | None = None


def judge(
    code: str, status: int | None, retry_after_s: float | None = None, fallback_on: Sequence[str] = ()
) -> Failure:
    """Judge a failure by its code (ours or the upstream's) and the upstream's status.

    `fallback_on` is the alias's choice of refusals that another target may still answer.
    """
    if code in BY_CHOICE:
        return Failure(code, status, "target" if code in fallback_on else "request", "refused", retry_after_s)
    if code in {"upstream_auth", "insufficient_quota"} or status in AUTH_STATUSES:
        return Failure(code, status, "credential", "auth", retry_after_s)
    if code == "rate_limit_exceeded" or status == 429:
        return Failure(code, status, "credential", "rate", retry_after_s)
    if code == "model_not_found" or status in {404, 410}:
        return Failure(code, status, "target", "missing", retry_after_s)
    if status in REQUEST_STATUSES:
        return Failure(code, status, "request", "refused", retry_after_s)
    return Failure(code, status, "target", "broken", retry_after_s)


F = TypeVar("F")


def verdict(failures: Sequence[tuple[Failure, F]]) -> F:
    """Choose what the client hears when every target failed: the last one, but a 404 only if there is nothing else."""
    telling = [item for failure, item in failures if failure.kind != "missing"]
    return telling[-1] if telling else failures[-1][1]


def retry_delay_s(failure: Failure, tries: int, elapsed_s: float, settings: Alias, chance: float) -> float | None:
    """Say how long to wait before the same target is tried again; None: it is not.

    `tries` were made at this target, `elapsed_s` since the call began; `chance` in [0, 1) is the jitter.
    """
    if failure.kind != "broken" or tries > settings.retries:
        return None
    delay_s = min(RETRY_S * 2 ** (tries - 1), LONGEST_RETRY_S) * (0.5 + 0.5 * chance)
    delay_s = max(delay_s, failure.retry_after_s or 0.0)
    return delay_s if elapsed_s + delay_s <= settings.retry_within_s else None
