"""The port of reports: what operators ask of the ledger, of keys and of their spending. Reads only.

Methods raise `core.state.StorageError`. Instants are Unix milliseconds, money is whole micro-dollars.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from trunkline.core.money import Spend

UsageBy = Literal["model", "key", "provider"]
Quantity = Literal["first_event_ms", "token_gap_ms", "duration_ms"]
FAILED = ("failed", "timeout", "crashed", "shutdown")
"""End reasons that count as failures; a client that left, and content that was refused, are none."""


class Span(Struct, frozen=True):
    """A stretch of time in buckets; `start_ms` (included) is a multiple of `bucket_ms`, `end_ms` is not included."""

    start_ms: int
    end_ms: int
    bucket_ms: int


class Used(Struct, frozen=True, kw_only=True):
    """What calls used: of one bucket (`at_ms`, its start) or, summed, of all."""

    at_ms: int = 0
    name: str | None = ""
    """The model, provider or key id; None: all that are not among the largest."""
    calls: int = 0
    failed: int = 0
    estimated: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    images: int = 0
    video_ms: int = 0
    cost_microusd: int = 0


class Quantiles(Struct, frozen=True):
    """The middle and the slow end of one bucket."""

    at_ms: int
    p50: float
    p95: float
    p99: float


class Repaired(Struct, frozen=True):
    """How often a departure was repaired in one bucket."""

    at_ms: int
    provider: str
    rule: str
    count: int


class ProviderCalls(Struct, frozen=True):
    """How one provider did. `failed` counts what was the provider's fault."""

    calls: int = 0
    failed: int = 0
    first_event_ms: float | None = None
    """The median."""
    last_error_code: str = ""
    last_error_ms: int = 0


class KeyCounts(Struct, frozen=True):
    """How many keys there are; `over_budget` are active ones whose budget is spent."""

    active: int = 0
    blocked: int = 0
    over_budget: int = 0


class KeyRef(Struct, frozen=True):
    """A key where it is mentioned. `record`: its prompts and answers may be kept."""

    id: str
    name: str
    record: bool = False


class Reports(Protocol):
    """See the module."""

    async def usage(self, span: Span, by: UsageBy, *, most: int) -> list[Used]:
        """Give what the `most` largest names (by cost, then calls) used in each bucket, and all others as None."""

    async def used(self, span: Span) -> list[Used]:
        """Give what all calls used in each bucket in which there were any."""

    async def quantiles(
        self, span: Span, quantity: Quantity, *, model: str = "", provider: str = ""
    ) -> list[Quantiles]:
        """Give the quantiles of each bucket in which there was something to measure."""

    async def repairs(self, span: Span, *, model: str = "", provider: str = "") -> list[Repaired]:
        """Give what was repaired in each bucket."""

    async def providers(self, since_ms: int) -> dict[str, ProviderCalls]:
        """Say how providers did since then."""

    async def key_counts(self, day: str) -> KeyCounts:
        """Count keys; budgets are looked at for this day and its month."""

    async def key_refs(self, key_ids: Iterable[str]) -> dict[str, KeyRef]:
        """Say which keys these are; unknown ones are left out."""

    async def last_used(self, key_ids: Sequence[str]) -> dict[str, int]:
        """Give when the last call of each key began; keys without a call are left out."""

    async def spends(self, owner_ids: Sequence[str], periods: Sequence[str]) -> Mapping[tuple[str, str], Spend]:
        """Give what keys or groups have spent and hold, by owner and period; left out where nothing was."""
