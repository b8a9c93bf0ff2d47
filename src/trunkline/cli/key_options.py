"""The options of `keys` and `groups`, and the settings that they come to."""

import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from msgspec import UnsetType

    from trunkline.core.keys import Rates
    from trunkline.core.money import Budget
    from trunkline.core.route import MediaStyle

Period = Literal["total", "day", "month"]
NONE = "none"
_SPAN = re.compile(r"(\d{1,6})(d|h|m)")
_SPAN_MS = {"d": 86_400_000, "h": 3_600_000, "m": 60_000}

takes_budget_usd = click.option("--budget-usd", metavar="USD", help="The most that it may spend; `none`: no limit.")
takes_per = click.option("--per", type=click.Choice(get_args(Period)), help="The period of --budget-usd [total].")
takes_metadata = click.option("--metadata", metavar="NAME=VALUE", multiple=True, help="Repeat for more.")
SETTINGS = (
    click.option("--models", metavar="GLOB,…", help="Models it may ask for [all]."),
    takes_budget_usd,
    takes_per,
    click.option("--rpm", metavar="N", help="Requests a minute; `none`: no limit."),
    click.option("--tpm", metavar="N", help="Tokens a minute."),
    click.option("--ipm", metavar="N", help="Pictures and films a minute."),
    click.option("--streams", metavar="N", help="Streams open at once."),
    click.option("--group", metavar="GROUP", help="The group it belongs to, by id or name; or `none`."),
    click.option("--expires", metavar="WHEN", help="`30d`, `12h`, `2027-01-31`, `2027-01-31T12:00Z` or `none`."),
    takes_metadata,
    click.option("--media-style", metavar="STYLE", help="How media stand in its answers."),
    click.option("--cache/--no-cache", default=None, help="Its answers may come from the cache."),
    click.option("--record/--no-record", default=None, help="Its prompts and answers may be kept, to find faults."),
)


class Asked(NamedTuple):
    """What the `SETTINGS` of making and changing a key say; None: not named."""

    models: str | None
    budget_usd: str | None
    per: Period | None
    rpm: str | None
    tpm: str | None
    ipm: str | None
    streams: str | None
    group: str | None
    expires: str | None
    metadata: tuple[str, ...]
    media_style: str | None
    cache: bool | None
    record: bool | None


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the `SETTINGS`, as its parameter `asked`."""

    @wraps(command)
    def run(**given: Any) -> None:
        command(asked=Asked(**{name: given.pop(name) for name in Asked._fields}), **given)

    for option in reversed(SETTINGS):
        option(run)
    return run


def limit(option: str, text: str | None) -> "int | UnsetType | None":
    """Read a whole number, or `none`."""
    from msgspec import UNSET

    from trunkline.policy.key_rules import LEAST_RATE, MOST_RATE

    if text is None:
        return UNSET
    if text == NONE:
        return None
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 20 else 0
    if not LEAST_RATE <= number <= MOST_RATE:
        raise click.BadParameter(f"{option} takes a whole number from {LEAST_RATE} on, or `{NONE}`; it is {text!r}")
    return number


def budget(former: "Budget", text: str | None, per: Period | None) -> "Budget | UnsetType":
    """Read a budget: that of the named period changes, the others stay."""
    from decimal import Decimal, InvalidOperation

    from msgspec import UNSET
    from msgspec.structs import replace

    from trunkline.core.money import microusd

    if text is None:
        if per is not None:
            raise click.BadParameter("--per says for which time --budget-usd is: name both")
        return UNSET
    period = per or "total"
    if text == NONE:
        return replace(former, **{period: None})
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and 0 <= amount <= 10**9):
        raise click.BadParameter(f"--budget-usd takes dollars, such as 12.50, or `{NONE}`; it is {text!r}")
    return replace(former, **{period: microusd(amount)})


def rates(former: "Rates", asked: "Mapping[str, tuple[str, str | None]]") -> "Rates | UnsetType":
    """Read rates, `{member: (option, text)}`: those that are named change, the others stay."""
    from msgspec import UNSET
    from msgspec.structs import replace

    read = {name: limit(option, text) for name, (option, text) in asked.items()}
    named = {name: value for name, value in read.items() if value is not UNSET}
    return replace(former, **named) if named else UNSET


def expires_ms(text: str | None, now_ms: int) -> "int | UnsetType | None":
    """Read when a key expires, as an instant in milliseconds."""
    from datetime import UTC, datetime

    from msgspec import UNSET

    if text is None:
        return UNSET
    if text == NONE:
        return None
    if span := _SPAN.fullmatch(text):
        return now_ms + int(span[1]) * _SPAN_MS[span[2]]
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        told = f"--expires takes 30d, 12h, 90m, 2027-01-31, 2027-01-31T12:00Z or `{NONE}`; it is {text!r}"
        raise click.BadParameter(told) from None
    if read.tzinfo is None:
        read = read.replace(tzinfo=UTC)
    return int(read.timestamp() * 1000)


def metadata(pairs: tuple[str, ...]) -> "dict[str, str] | UnsetType":
    """Read metadata; it replaces what was there. None is named: it stays."""
    from msgspec import UNSET

    if not pairs:
        return UNSET
    read = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise click.BadParameter(f"--metadata takes NAME=VALUE; it is {pair!r}")
        read[name] = value
    return read


def models(text: str | None) -> "tuple[str, ...] | UnsetType":
    """Read the globs of models; empty text: all."""
    from msgspec import UNSET

    if text is None:
        return UNSET
    return tuple(glob.strip() for glob in text.split(",") if glob.strip())


def media_style(text: str | None) -> "MediaStyle | Literal[''] | UnsetType":
    """Read a media style; `none` is the empty one."""
    from msgspec import UNSET

    from trunkline.core.route import MediaStyle

    if text is None:
        return UNSET
    allowed: tuple[MediaStyle, ...] = get_args(MediaStyle)
    if text == NONE:
        return ""
    if text not in allowed:
        raise click.BadParameter(f"--media-style takes {', '.join(allowed)} or `{NONE}`; it is {text!r}")
    return text
