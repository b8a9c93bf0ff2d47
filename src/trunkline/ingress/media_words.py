"""The words in which clients say what a picture or film shall be like, and their values (wire.md section 11)."""

import re
from collections.abc import Callable
from math import gcd
from typing import Any

from msgspec import Struct

from trunkline.wire.read import as_count, as_name, as_number

Value = str | int | float | bool | tuple[int, int]
RATIO = "ratio"
TIER = "tier"
PIXELS = "pixels"
SIZE = "size"
"""A word that may say any of the three."""

_RATIO = re.compile(r"(\d{1,5}(?:\.\d{1,2})?)(?:\s*[:x×/：]\s*|\s+)(\d{1,5}(?:\.\d{1,2})?)", re.IGNORECASE)
_PIXELS = re.compile(r"(\d{2,5})\s*[x×*]\s*(\d{2,5})", re.IGNORECASE)
_TIER = re.compile(r"0?\.5k|[1248]k|512|1024|2048|4096|\d{3,4}p", re.IGNORECASE)
_TIERS = {"0.5k": "512", ".5k": "512", "1024": "1K", "2048": "2K", "4096": "4K"}
_SHAPES = {"landscape": "16:9", "portrait": "9:16", "square": "1:1", "horizontal": "16:9", "vertical": "9:16"}
_FORMATS = {"png": "png", "jpeg": "jpeg", "jpg": "jpeg", "webp": "webp", "mp4": "mp4"}
_QUOTES = "\"'`“”"
_NOTHING = frozenset({"", "auto", "default", "adaptive"})
_SMALLEST = 64
"""Below this, `16x9` is a ratio; from it on, pixels."""
_TRUE, _FALSE = frozenset({"true", "1", "yes", "on"}), frozenset({"false", "0", "no", "off"})


class Found(Struct, frozen=True):
    """One thing that was said: its meaning, its value, and how the client spelt it."""

    meaning: str
    value: Value
    spelling: str


def read_ratio(value: Any) -> str | None:
    """Read `16:9`, also as `16x9`, `16/9`, `1920:1080`, `landscape`."""
    text = _text(value)
    if text.lower() in _SHAPES:
        return _SHAPES[text.lower()]
    found = _RATIO.fullmatch(text)
    if found is None or not float(found[1]) or not float(found[2]):
        return None
    if found[1].isdigit() and found[2].isdigit() and max(len(found[1]), len(found[2])) > 2:
        width, height = int(found[1]), int(found[2])
        return f"{width // gcd(width, height)}:{height // gcd(width, height)}"
    return f"{found[1]}:{found[2]}"


def read_pixels(value: Any) -> tuple[int, int] | None:
    """Read `1024x768`, also as `{"width": 1024, "height": 768}`."""
    if type(value) is dict:
        value = f"{as_count(value.get('width'))}x{as_count(value.get('height'))}"
    found = _PIXELS.fullmatch(_text(value))
    if found is None or min(int(found[1]), int(found[2])) < _SMALLEST:
        return None
    return int(found[1]), int(found[2])


def read_tier(value: Any) -> str | None:
    """Read `1K`, `0.5K` (which is 512), `2048` (which is 2K), `720p`."""
    text = _text(value).lower()
    if not _TIER.fullmatch(text):
        return None
    return _TIERS.get(text) or (text if text.endswith("p") else text.upper())


def read_format(value: Any) -> str | None:
    """Read a file type, also as a MIME type or an ending: `image/webp`, `.png`."""
    return _FORMATS.get(_text(value).lower().rpartition("/")[2].removeprefix("."))


def read_count(value: Any) -> int | None:
    """Read a whole number from 1 on."""
    number = as_number(_unquoted(value))
    return int(number) if number is not None and number >= 1 and number.is_integer() else None


def read_seed(value: Any) -> int | None:
    """Read a whole number from 0 on."""
    number = as_number(_unquoted(value))
    return int(number) if number is not None and number >= 0 and number.is_integer() else None


def read_seconds(value: Any) -> float | None:
    """Read a duration: `5`, `"5"`, `5s`."""
    number = as_number(_text(value).lower().removesuffix("s").strip()) if isinstance(value, str) else as_number(value)
    return number if number is not None and number > 0 else None


def read_flag(value: Any) -> bool | None:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    text = _text(value).lower()
    return True if text in _TRUE else False if text in _FALSE else None


def read_word(value: Any) -> str | None:
    """Read a word of a model's own."""
    return _text(value) or None


class Meaning(Struct, frozen=True):
    """What a word is about: how its value is read, and what is allowed, for a message."""

    read: Callable[[Any], Value | None]
    allowed: str


MEANINGS: dict[str, Meaning] = {
    RATIO: Meaning(read_ratio, "a ratio as `16:9`"),
    TIER: Meaning(read_tier, "a tier as `1K`, `2K`, `4K` or `720p`"),
    PIXELS: Meaning(read_pixels, "pixels as `1024x1024`"),
    SIZE: Meaning(lambda _value: None, "pixels as `1024x1024`, a ratio as `16:9` or a tier as `2K`"),
    "format": Meaning(read_format, "`png`, `jpeg` or `webp`"),
    "n": Meaning(read_count, "a whole number from 1 on"),
    "quality": Meaning(read_word, "a word"),
    "background": Meaning(read_word, "a word"),
    "seconds": Meaning(read_seconds, "a number of seconds"),
    "fps": Meaning(read_count, "a whole number from 1 on"),
    "seed": Meaning(read_seed, "a whole number from 0 on"),
    "negative": Meaning(read_word, "a text"),
    "audio": Meaning(read_flag, "true or false"),
    "width": Meaning(read_count, "a number of pixels"),
    "height": Meaning(read_count, "a number of pixels"),
    "user": Meaning(read_word, "a text"),
    "partial": Meaning(read_seed, "a whole number from 0 to 3"),
}

WORDS: dict[str, str] = {
    **dict.fromkeys(("aspectratio", "aspect", "ratio"), RATIO),
    **dict.fromkeys(("size", "imagesize", "resolution"), SIZE),
    **dict.fromkeys(("outputformat", "format", "mimetype"), "format"),
    **dict.fromkeys(("n", "numimages", "numberofimages", "numberofvideos", "samplecount", "numoutputs"), "n"),
    **dict.fromkeys(("seconds", "duration", "durationseconds"), "seconds"),
    **dict.fromkeys(("withaudio", "generateaudio"), "audio"),
    "quality": "quality",
    "background": "background",
    "fps": "fps",
    "seed": "seed",
    "negativeprompt": "negative",
    "width": "width",
    "height": "height",
    "user": "user",
    "partialimages": "partial",
}
"""Names of body members, without dashes, underscores and case."""

ONLY: dict[str, str] = {
    **dict.fromkeys(("seconds", "fps", "audio"), "video"),
    **dict.fromkeys(("background", "partial"), "image"),
}
"""Meanings that only one kind of model knows; for the others the word says nothing."""

FLAGS: dict[str, str] = {
    **dict.fromkeys(("aspectratio", "aspect", "ar", "ratio"), RATIO),
    **dict.fromkeys(("size", "resolution"), SIZE),
    **dict.fromkeys(("outputformat", "format"), "format"),
    **dict.fromkeys(("duration", "seconds"), "seconds"),
    "n": "n",
    "quality": "quality",
    "fps": "fps",
    "seed": "seed",
}
"""Names of flags in a prompt, likewise."""


QUALITIES: dict[str, tuple[str, ...]] = {
    "hd": ("high", "quality"),
    "high": ("hd",),
    "standard": ("medium",),
    "fast": ("speed", "low"),
    "pro": ("quality", "high"),
    **dict.fromkeys(("low", "medium", "xhigh", "max", "ultra", "speed", "quality", "auto"), ()),
}
"""Words for how well something is to be made; with them what models that do not know a word call the same."""


def meaning_of(name: str, kind: str, words: dict[str, str]) -> str | None:
    """Give what a name is about, for a model of this kind; None: nothing that is known."""
    meaning = words.get(plain(name))
    return None if meaning is None or ONLY.get(meaning, kind) != kind else meaning


def plain(name: str) -> str:
    """Give a name without leading dashes, and without what spellings differ in."""
    return name.strip().lstrip("-—–").replace("_", "").replace("-", "").lower()


def read_value(meaning: str, value: Any, spelling: str) -> Found | None:
    """Read a value; None when it is none of its meaning."""
    if meaning != SIZE:
        read = MEANINGS[meaning].read(value)
        return None if read is None else Found(meaning, read, spelling)
    for exact, reader in ((PIXELS, read_pixels), (TIER, read_tier), (RATIO, read_ratio)):
        found: Value | None = reader(value)
        if found is not None:
            return Found(exact, found, spelling)
    return None


def says_nothing(value: Any) -> bool:
    """Tell whether a value leaves the choice to the model."""
    return value is None or (isinstance(value, str) and _text(value).lower() in _NOTHING)


def _text(value: Any) -> str:
    text = f"{value:g}" if isinstance(value, float) else as_name(value)
    return text.strip().strip(_QUOTES).strip()


def _unquoted(value: Any) -> Any:
    return value.strip().strip(_QUOTES).strip() if isinstance(value, str) else value
