"""Writes `src/trunkline/providers/prices.jsonl` from the library genai-prices: `make prices`.

The library is used when prices are renewed, not when the gateway runs: its import takes a second and 40 MB.
"""

import json
from importlib.metadata import version
from pathlib import Path
from typing import Any

from genai_prices import types
from genai_prices.data_snapshot import get_snapshot

OUT = Path(__file__).parent.parent / "src" / "trunkline" / "providers" / "prices.jsonl"
KEYS = {
    "input_mtok": "input",
    "cache_read_mtok": "cached",
    "cache_audio_read_mtok": "cached_audio",
    "cache_write_mtok": "cache_write",
    "cache_write_1h_mtok": "cache_write_1h",
    "output_mtok": "output",
    "output_reasoning_mtok": "reasoning",
    "input_audio_mtok": "audio_input",
    "output_audio_mtok": "audio_output",
    "input_image_mtok": "image_input",
    "output_image_mtok": "image_output",
    "requests_kcount": "request",
}


TEXTS = {
    types.ClauseEquals: ("=", "equals"),
    types.ClauseStartsWith: ("^", "starts_with"),
    types.ClauseEndsWith: ("$", "ends_with"),
    types.ClauseContains: ("*", "contains"),
}


def clause(match: Any) -> list[Any]:
    """Give a match clause as a list: its kind, then its text or clauses."""
    if isinstance(match, types.ClauseOr):
        return ["|", *map(clause, match.or_)]
    if isinstance(match, types.ClauseAnd):
        return ["&", *map(clause, match.and_)]
    if isinstance(match, types.ClauseRegex):
        return ["~", match.regex]
    kind, name = TEXTS[type(match)]
    return [kind, getattr(match, name).lower()]


def usd(value: Any) -> Any:
    """Give a price: a number as text, or the number and its tiers."""
    if isinstance(value, types.TieredPrices):
        return [str(value.base), *([tier.start, str(tier.price)] for tier in value.tiers)]
    return str(value)


def prices(prices: Any) -> list[dict[str, Any]]:
    """Give a model's prices, the last that is in force counts: since when, from when to when of the day, how much."""
    several = prices if isinstance(prices, list) else [types.ConditionalPrice(prices=prices)]
    found = []
    for item in several:
        given = {short: value for key, short in KEYS.items() if (value := getattr(item.prices, key)) is not None}
        if "request" in given:
            given["request"] *= 1000
        entry = {short: usd(value) for short, value in given.items()}
        if isinstance(item.constraint, types.StartDateConstraint):
            entry["since"] = str(item.constraint.start_date)
        elif isinstance(item.constraint, types.TimeOfDateConstraint):
            entry["hours"] = [f"{time:%H:%M}" for time in (item.constraint.start_time, item.constraint.end_time)]
        found.append(entry)
    return found


def main() -> None:
    """Write the file."""
    lines: list[Any] = [
        {
            "source": f"genai-prices {version('genai-prices')}",
            "license": "MIT License, Copyright (c) Pydantic Services Inc. 2025 to present",
            "unit": "USD a million tokens, or requests",
        }
    ]
    for provider in sorted(get_snapshot().providers, key=lambda provider: provider.id):
        lines.append(
            {
                "provider": provider.id,
                "url": provider.api_pattern,
                "also": provider.fallback_model_providers or [],
            }
        )
        for model in provider.models:
            found = prices(model.prices)
            if any("input" in entry for entry in found):
                lines.append({"model": model.id, "match": clause(model.match), "prices": found})
    OUT.write_text("".join(json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n" for line in lines))


if __name__ == "__main__":
    main()
