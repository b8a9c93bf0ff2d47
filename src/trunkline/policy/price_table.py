"""Reads the shipped price table (`providers/prices.jsonl`): which entry is a model's, which of its prices counts when.

A line is a provider, known by its address, or a model of the provider above it, known by its name.
"""

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import msgspec
from msgspec import Struct

Clause = list[Any]
"""Kind (`=` is, `^` begins, `$` ends, `*` holds, `~` matches, `|` any of, `&` all of), then a text or clauses."""
Usd = str | list[str | list[int | str]]
"""Dollars a million tokens, or requests; or those, and `[from more input tokens than, dollars]` in ascending order."""


class TableProvider(Struct, rename={"name": "provider"}):
    """The line of a provider; `also` names providers whose models it serves."""

    name: str
    url: str
    also: list[str] = []


class TablePrice(Struct, kw_only=True):
    """One set of prices; of several, the last that is in force counts."""

    input: Usd | None = None
    cached: Usd | None = None
    cached_audio: Usd | None = None
    cache_write: Usd | None = None
    cache_write_1h: Usd | None = None
    output: Usd | None = None
    reasoning: Usd | None = None
    audio_input: Usd | None = None
    audio_output: Usd | None = None
    image_input: Usd | None = None
    image_output: Usd | None = None
    request: Usd | None = None
    since: str = ""
    hours: tuple[str, str] | None = None

    def in_force(self, day: str, time: str) -> bool:
        """Tell whether it counts on this day (`2026-11-04`) at this time (`16:30`), UTC."""
        if self.hours is None:
            return self.since <= day
        begin, end = self.hours
        return begin <= time < end if begin <= end else time >= begin or time < end


class TableModel(Struct, rename={"id": "model"}):
    """The line of a model."""

    id: str
    match: Clause
    prices: list[TablePrice]


class TableHead(Struct):
    """The first line."""

    source: str


class PriceTable:
    """The table. It stays as bytes, and is looked through when a model is asked for that was not asked for before."""

    def __init__(self, data: bytes) -> None:
        self._lines = data.strip().split(b"\n")
        self.source = msgspec.json.decode(self._lines[0], type=TableHead).source
        self._providers = {
            provider.name: (provider, at + 1)
            for at, line in enumerate(self._lines)
            if line.startswith(b'{"provider"') and (provider := msgspec.json.decode(line, type=TableProvider))
        }

    def find(self, base_url: str, model: str) -> TableModel | None:
        """Give a model's entry, by the address of its provider and the name the provider has for it."""
        for provider, _ in self._providers.values():
            if re.match(provider.url, base_url):
                for name in (provider.name, *provider.also):
                    for entry in self._models(name):
                        if matches(entry.match, model.lower()):
                            return entry
                return None
        return None

    def _models(self, provider: str) -> Iterator[TableModel]:
        _, begin = self._providers[provider]
        for at in range(begin, len(self._lines)):
            if not self._lines[at].startswith(b'{"model"'):
                return
            yield msgspec.json.decode(self._lines[at], type=TableModel)


def matches(clause: Clause, text: str) -> bool:
    """Tell whether a text, in lower case, satisfies a clause."""
    kind, *rest = clause
    if kind in ("|", "&"):
        found = (matches(part, text) for part in rest)
        return any(found) if kind == "|" else all(found)
    wanted: str = rest[0]
    match kind:
        case "=":
            return text == wanted
        case "^":
            return text.startswith(wanted)
        case "$":
            return text.endswith(wanted)
        case "*":
            return wanted in text
        case _:
            return re.search(wanted, text) is not None


def tiers_of(price: TablePrice) -> list[tuple[int, dict[str, Decimal]]]:
    """Give a set of prices by tier: from more than how many input tokens on, which dollars a million tokens."""
    given: dict[str, Usd] = {
        name: value
        for name in price.__struct_fields__
        if name not in ("since", "hours") and (value := getattr(price, name)) is not None
    }
    starts = {0} | {int(tier[0]) for value in given.values() if isinstance(value, list) for tier in value[1:]}
    return [(start, {name: _at(value, start) for name, value in given.items()}) for start in sorted(starts)]


def _at(value: Usd, start: int) -> Decimal:
    if isinstance(value, str):
        return Decimal(value)
    found = str(value[0])
    for tier in value[1:]:
        if isinstance(tier, list) and int(tier[0]) <= start:
            found = str(tier[1])
    return Decimal(found)
