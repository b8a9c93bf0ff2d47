"""Reading a JSON value into Structs although members have wrong types: those count as absent."""

import types
import typing
from functools import lru_cache
from typing import Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from trunkline.wire.read import as_number

S = TypeVar("S", bound=Struct)
_UNREADABLE = (msgspec.ValidationError, RecursionError)


def mend(value: Any, kind: type[S]) -> S | None:
    """Read an object into a Struct whose members all have defaults; None where the value is no object."""
    if type(value) is not dict:
        return None
    try:
        return msgspec.convert(value, kind)
    except _UNREADABLE:
        pass
    found = {}
    for name, wire_name, hint in _members(kind):
        if wire_name in value:
            item = _mend(value[wire_name], hint)
            if item is not None:
                found[name] = item
    return kind(**found)


@lru_cache
def _members(kind: type[Struct]) -> list[tuple[str, str, Any]]:
    return [(field.name, field.encode_name, field.type) for field in fields(kind)]


def _mend(value: Any, hint: Any) -> Any:
    """Give a value that fits the type, None where there is none. One object counts as a list of it."""
    if value is None:
        return None
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        found = (_mend(value, part) for part in typing.get_args(hint) if part is not type(None))
        return next((item for item in found if item is not None), None)
    if origin is list:
        (inner,) = typing.get_args(hint)
        items = value if type(value) is list else [value]
        return [item for item in (_mend(each, inner) for each in items) if item is not None]
    if isinstance(hint, type) and issubclass(hint, Struct):
        return mend(value, hint)
    return _plain(value, hint)


def _plain(value: Any, hint: Any) -> Any:
    """Give a value that is no list and no object; some write whole numbers as `7.0` or `"7"`."""
    if hint is int:
        number = as_number(value)
        return int(number) if number is not None and number.is_integer() else None
    try:
        return msgspec.convert(value, hint)
    except _UNREADABLE:
        return None
