"""Typed reading of single members of untrusted JSON: a value of the wrong type reads as absent, never raises."""

from collections.abc import Iterator
from typing import Any

_MAX_COUNT = 2**53
MOST_COUNT = 10**13
"""More is no count; times in milliseconds are less."""


def as_text(value: Any) -> str:
    """Give a string, `""` for anything else."""
    return value if type(value) is str else ""


def as_name(value: Any) -> str:
    """Give a string, or the digits of an integer: for ids and codes that some send as numbers."""
    if type(value) is str:
        return value
    return str(value) if type(value) is int and abs(value) < _MAX_COUNT else ""


def as_count(value: Any) -> int:
    """Give a whole number ≥ 0 from a number, also one written as a string; 0 for anything else."""
    if value is None:
        return 0
    if type(value) is int:
        return value if 0 <= value < MOST_COUNT else 0
    if type(value) is float:
        return int(value) if 0 <= value < MOST_COUNT else 0
    if type(value) is str and value.isascii() and len(value) < 16:
        whole, point, part = value.partition(".")
        return as_count(int(whole)) if whole.isdigit() and (part.isdigit() or not point) else 0
    return 0


def as_index(value: Any) -> int | None:
    """Give a place ≥ 0 in a list from an integer, also as a float or as digits; None for anything else."""
    if type(value) is int:
        return value if value >= 0 else None
    if type(value) is float:
        return int(value) if value.is_integer() and value >= 0 else None
    return int(value) if type(value) is str and value.isascii() and value.isdigit() and len(value) < 5 else None


def as_number(value: Any) -> float | None:
    """Give a finite number, also from a string; None for anything else."""
    if type(value) is int and abs(value) < _MAX_COUNT:
        return float(value)
    if type(value) is str and len(value) < 32:
        try:
            value = float(value)
        except ValueError:
            return None
    return value if type(value) is float and abs(value) < _MAX_COUNT else None


def as_dict(value: Any) -> dict[str, Any]:
    """Give an object, `{}` for anything else."""
    return value if type(value) is dict else {}


def as_list(value: Any) -> list[Any]:
    """Give an array, `[]` for anything else."""
    return value if type(value) is list else []


def dicts(value: Any) -> Iterator[dict[str, Any]]:
    """Give the objects of an array."""
    for item in as_list(value):
        if type(item) is dict:
            yield item
