"""Ratios, tiers and pixels of pictures and films, and how one follows from the other (wire.md section 3.2)."""

import math
from collections.abc import Iterable

TABLE_1K: dict[str, tuple[int, int]] = {
    "1:1": (1024, 1024),
    "2:3": (848, 1264),
    "3:2": (1264, 848),
    "3:4": (896, 1200),
    "4:3": (1200, 896),
    "4:5": (928, 1152),
    "5:4": (1152, 928),
    "9:16": (768, 1376),
    "16:9": (1376, 768),
    "21:9": (1584, 672),
    "1:4": (512, 2048),
    "4:1": (2048, 512),
    "1:8": (384, 3072),
    "8:1": (3072, 384),
}
"""Pixels of tier 1K by ratio; 2K is twice as wide and high, 4K four times, 512 half."""

SIDES = {"512": 512, "1K": 1024, "2K": 2048, "4K": 4096}
"""Side of a square picture by tier."""
LINES = {"2k": 1440, "4k": 2160}
"""Shorter side of a film by tier, where the tier does not name it as `720p` does."""


def value_of(ratio: str) -> float:
    """Give `W:H` as a number."""
    width, _, height = ratio.partition(":")
    return float(width) / float(height)


def distance(one: float, other: float) -> float:
    """Say how far two ratios are apart: |log|, the same for 2:1 and 1:2 as seen from 1:1."""
    return abs(math.log(one / other))


def nearest_ratio(width: int, height: int, ratios: Iterable[str]) -> str:
    """Choose the ratio that pixels come closest to."""
    return min(ratios, key=lambda ratio: distance(width / height, value_of(ratio)))


def lines(tier: str) -> int | None:
    """Give a film's shorter side in pixels."""
    low = tier.lower()
    return int(low[:-1]) if low.endswith("p") and low[:-1].isdigit() else LINES.get(low)


def nearest_tier(width: int, height: int, tiers: Iterable[str]) -> str:
    """Choose the tier of pixels: pictures by √(w·h), films by their shorter side."""

    def far(tier: str) -> float:
        side = SIDES.get(tier.upper())
        if side is not None and not tier.islower():
            return distance(math.sqrt(width * height), side)
        return distance(min(width, height), lines(tier) or 1)

    return min(tiers, key=far)


def pixels(ratio: str, tier: str, *, step: int = 1) -> tuple[int, int]:
    """Give the pixels of a ratio in a tier, as multiples of `step`."""
    side = None if tier.islower() else SIDES.get(tier.upper())
    if side is not None and ratio in TABLE_1K:
        width, height = (length * side / 1024 for length in TABLE_1K[ratio])
    elif side is not None:
        root = math.sqrt(value_of(ratio))
        step = max(step, 16)
        width, height = side * root, side / root
    else:
        short, value = lines(tier) or 720, value_of(ratio)
        step = max(step, 2)
        width, height = (short * value, float(short)) if value >= 1 else (float(short), short / value)
    return _whole(width, step), _whole(height, step)


def size_text(size: tuple[int, int] | None, mark: str = "x") -> str | None:
    """Write pixels as `WxH`."""
    return f"{size[0]}{mark}{size[1]}" if size else None


def read_pixels(text: str) -> tuple[int, int] | None:
    """Read `WxH`."""
    width, _, height = text.partition("x")
    return (int(width), int(height)) if width.isdecimal() and height.isdecimal() else None


def asked_pixels(
    ratio: str | None, tier: str | None, width: int | None, height: int | None, usual_tier: str
) -> tuple[int, int] | None:
    """Give the pixels that were asked for, in whatever way; None: nothing was."""
    if width and height:
        return width, height
    if not ratio and not tier:
        return None
    return pixels(ratio or ("16:9" if usual_tier.endswith("p") else "1:1"), tier or usual_tier)


def _whole(length: float, step: int) -> int:
    return max(round(length / step), 1) * step
