"""Money: whole micro-dollars, rounded up; periods of a budget; the row a call leaves in the ledger."""

from decimal import ROUND_CEILING, Decimal
from functools import lru_cache
from typing import Literal

from msgspec import Struct

MICRO = 1_000_000
DAY_MS = 86_400_000

Period = Literal["total", "day", "month"]
EndReason = Literal["completed", "failed", "cancelled", "timeout", "refused", "shutdown", "crashed"]
"""How a call ended: `cancelled` by its client, `refused` by content rules, `crashed` with its process."""


END_OF_CODE: dict[str, EndReason] = {"upstream_timeout": "timeout", "content_filter": "refused"}
"""How calls end whose last error has this code; others have `failed`."""


def microusd(usd: Decimal | float | str) -> int:
    """Dollars as whole micro-dollars, rounded up. Raises ValueError for what is no finite number."""
    amount = Decimal(str(usd)) if isinstance(usd, float | int) else Decimal(usd)
    if not amount.is_finite():
        raise ValueError(f"{usd} is no amount of dollars")
    return int((amount * MICRO).to_integral_value(rounding=ROUND_CEILING))


def usd(microusd: int) -> float:
    """Micro-dollars as dollars, for people and JSON."""
    return microusd / MICRO


def dollars(microusd: int) -> str:
    """Say an amount to people: `$5.00`, `$0.000012`."""
    whole, rest = divmod(microusd, MICRO)
    return f"${whole:,}.{f'{rest:06d}'.rstrip('0'):0<2}"


@lru_cache(maxsize=16)
def _date(day: int) -> str:
    """Give the date (`2026-11-04`) of a number of days since 1970."""
    # Years are counted from 1 March of the year 0, so that the leap day is the last of its year.
    days = day + 719_468
    era, of_era = divmod(days, 146_097)
    year = (of_era - of_era // 1460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    shifted = (5 * of_year + 2) // 153
    month = shifted + 3 if shifted < 10 else shifted - 9
    return f"{year + era * 400 + (month <= 2):04d}-{month:02d}-{of_year - (153 * shifted + 2) // 5 + 1:02d}"


def day_of(ms: int) -> str:
    """Give the day (UTC, `2026-11-04`) of an instant; its first seven characters are the month."""
    return _date(ms // DAY_MS)


def periods_of(day: str) -> tuple[str, str, str]:
    """Give the periods that a day's spending counts in: `total`, the day, its month."""
    return ("total", day, day[:7])


class Budget(Struct, frozen=True, forbid_unknown_fields=True):
    """The most that may be spent, in micro-dollars: in all, on one day, in one month (UTC). None: no limit."""

    total: int | None = None
    day: int | None = None
    month: int | None = None

    def __bool__(self) -> bool:
        """Tell whether there is any limit."""
        return self.total is not None or self.day is not None or self.month is not None


class Spend(Struct, frozen=True):
    """What an owner has spent, and what is reserved of its budgets, in one period, in micro-dollars."""

    period: str
    spent: int = 0
    reserved: int = 0
    calls: int = 0


class LedgerRow(Struct, frozen=True):
    """One call, settled. The id makes booking idempotent: a row is booked once, however often it is handed in.

    The cost belongs to the day and month in which the call began. `cost_microusd` None: no price was known.
    `estimated`: the tokens are our own count. `repairs` is JSON, name to count; `extra` is JSON of what the upstream
    counted beyond our fields.
    """

    id: str
    key_id: str
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
    cache_hit: bool = False
    """The answer came from the response cache: no provider was asked, and it costs nothing."""
