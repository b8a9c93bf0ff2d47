"""Money: whole micro-dollars, rounded up; periods of a budget; the row a call leaves in the ledger."""

from decimal import ROUND_CEILING, Decimal
from typing import Literal

from msgspec import Struct

MICRO = 1_000_000

Period = Literal["total", "day", "month"]
EndReason = Literal["completed", "failed", "cancelled", "timeout", "refused", "shutdown", "crashed"]
"""How a call ended: `cancelled` by its client, `refused` by content rules, `crashed` with its process."""


def microusd(usd: Decimal | float | str) -> int:
    """Dollars as whole micro-dollars, rounded up. Raises ValueError for what is no finite number."""
    amount = Decimal(str(usd)) if isinstance(usd, float | int) else Decimal(usd)
    if not amount.is_finite():
        raise ValueError(f"{usd} is no amount of dollars")
    return int((amount * MICRO).to_integral_value(rounding=ROUND_CEILING))


def usd(microusd: int) -> float:
    """Micro-dollars as dollars, for people and JSON."""
    return microusd / MICRO


class Budget(Struct, frozen=True, forbid_unknown_fields=True):
    """The most that may be spent, in micro-dollars: in all, on one day, in one month (UTC). None: no limit."""

    total: int | None = None
    day: int | None = None
    month: int | None = None

    def __bool__(self) -> bool:
        """Tell whether there is any limit."""
        return self.total is not None or self.day is not None or self.month is not None


class Spend(Struct, frozen=True):
    """What an owner has spent and holds reserved in one period, in micro-dollars."""

    period: str
    spent: int = 0
    reserved: int = 0
    calls: int = 0


class LedgerRow(Struct, frozen=True, kw_only=True):
    """One call, settled. The id makes booking idempotent: a row is booked once, however often it is handed in.

    `day` (`2026-11-04`, UTC, of the call's start) says which periods the cost belongs to. `cost_microusd` None: no
    price was known. `estimated`: the tokens are our own count. `repairs` is JSON, name to count; `extra` is JSON of
    what the upstream counted beyond our fields.
    """

    id: str
    key_id: str
    day: str
    started_ms: int
    ended_ms: int
    group_id: str = ""
    request_id: str = ""
    job_id: str = ""
    route: str = ""
    kind: Literal["text", "image", "video", "embedding"] = "text"
    model: str = ""
    provider: str = ""
    upstream_model: str = ""
    credential_id: str = ""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    audio_input_tokens: int = 0
    audio_output_tokens: int = 0
    image_input_tokens: int = 0
    image_output_tokens: int = 0
    images: int = 0
    video_ms: int = 0
    cost_microusd: int | None = None
    price_version: str = ""
    estimated: bool = False
    streamed: bool = False
    end_reason: EndReason = "completed"
    error_code: str = ""
    status: int = 200
    attempts: int = 1
    first_event_ms: int | None = None
    repairs: str = "{}"
    extra: str = "{}"
