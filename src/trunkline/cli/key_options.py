"""The options of `keys` and `groups`, and the settings that they come to."""

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple

import typer

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

Models = Annotated[str | None, typer.Option(metavar="GLOB,…", help="Models it may ask for [all].")]
BudgetUsd = Annotated[
    str | None, typer.Option("--budget-usd", metavar="USD", help="The most that it may spend; `none`: no limit.")
]
Per = Annotated[Period | None, typer.Option(help="The period of --budget-usd [total].")]
Rpm = Annotated[str | None, typer.Option(metavar="N", help="Requests a minute; `none`: no limit.")]
Tpm = Annotated[str | None, typer.Option(metavar="N", help="Tokens a minute.")]
Ipm = Annotated[str | None, typer.Option(metavar="N", help="Pictures and films a minute.")]
Streams = Annotated[str | None, typer.Option(metavar="N", help="Streams open at once.")]
Group = Annotated[str | None, typer.Option(metavar="GROUP", help="The group it belongs to, by id or name; or `none`.")]
Expires = Annotated[
    str | None, typer.Option(metavar="WHEN", help="`30d`, `12h`, `2027-01-31`, `2027-01-31T12:00Z` or `none`.")
]
Metadata = Annotated[list[str] | None, typer.Option("--metadata", metavar="NAME=VALUE", help="Repeat for more.")]
Style = Annotated[str | None, typer.Option("--media-style", metavar="STYLE", help="How media stand in its answers.")]
Cache = Annotated[bool | None, typer.Option("--cache/--no-cache", help="Its answers may come from the cache.")]
Record = Annotated[
    bool | None, typer.Option("--record/--no-record", help="Its prompts and answers may be kept, to find faults.")
]


class Asked(NamedTuple):
    """The options that both making and changing a key take; None: not named."""

    models: Models = None
    budget_usd: BudgetUsd = None
    per: Per = None
    rpm: Rpm = None
    tpm: Tpm = None
    ipm: Ipm = None
    streams: Streams = None
    group: Group = None
    expires: Expires = None
    metadata: Metadata = None
    media_style: Style = None
    cache: Cache = None
    record: Record = None


def takes_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Put the options of `Asked` in the place of a command's parameter `asked`."""
    kinds, defaults = inspect.get_annotations(Asked), Asked._field_defaults

    @wraps(command)
    def run(**given: Any) -> None:
        command(asked=Asked(**{name: given.pop(name) for name in kinds}), **given)

    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=defaults[name], annotation=kind)
        for name, kind in kinds.items()
    ]
    parameters: list[inspect.Parameter] = []
    for own in inspect.signature(command).parameters.values():
        parameters += options if own.name == "asked" else [own]
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {one.name: one.annotation for one in parameters}
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
        raise typer.BadParameter(f"{option} takes a whole number from {LEAST_RATE} on, or `{NONE}`; it is {text!r}")
    return number


def budget(former: "Budget", text: str | None, per: Period | None) -> "Budget | UnsetType":
    """Read a budget: that of the named period changes, the others stay."""
    from decimal import Decimal, InvalidOperation

    from msgspec import UNSET
    from msgspec.structs import replace

    from trunkline.core.money import microusd

    if text is None:
        if per is not None:
            raise typer.BadParameter("--per says for which time --budget-usd is: name both")
        return UNSET
    period = per or "total"
    if text == NONE:
        return replace(former, **{period: None})
    try:
        amount = Decimal(text)
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and 0 <= amount <= 10**9):
        raise typer.BadParameter(f"--budget-usd takes dollars, such as 12.50, or `{NONE}`; it is {text!r}")
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
        raise typer.BadParameter(told) from None
    if read.tzinfo is None:
        read = read.replace(tzinfo=UTC)
    return int(read.timestamp() * 1000)


def metadata(pairs: list[str] | None) -> "dict[str, str] | UnsetType":
    """Read metadata; it replaces what was there."""
    from msgspec import UNSET

    if pairs is None:
        return UNSET
    read = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"--metadata takes NAME=VALUE; it is {pair!r}")
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
    from typing import get_args

    from msgspec import UNSET

    from trunkline.core.route import MediaStyle

    if text is None:
        return UNSET
    allowed: tuple[MediaStyle, ...] = get_args(MediaStyle)
    if text == NONE:
        return ""
    if text not in allowed:
        raise typer.BadParameter(f"--media-style takes {', '.join(allowed)} or `{NONE}`; it is {text!r}")
    return text
