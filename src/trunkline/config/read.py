"""From TOML's values to typed ones, with every fault named by its dotted path."""

import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct

from trunkline.config.secrets import SecretError
from trunkline.core.near import near
from trunkline.core.secret import Secret

T = TypeVar("T", bound=Struct)
NAMES = {
    str: ("text", "text"),
    bool: ("true or false", "true or false"),
    int: ("a whole number", "whole numbers"),
    float: ("a number", "numbers"),
    Secret: ("a secret", "secrets"),
}
"""Of one, and of many."""
BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


class ConfigError(Exception):
    """The configuration cannot be used. `problems` are whole sentences; the first one is the message."""

    def __init__(self, problems: list[str], source: str = "") -> None:
        self.problems = problems = [one_line(problem) for problem in problems]
        self.source = source
        more = f" ({len(problems) - 1} more: trunkline config check)" if len(problems) > 1 else ""
        super().__init__(f"{source}: {problems[0]}{more}" if source else f"{problems[0]}{more}")


class Reading:
    """One reading of a table: `problems` is filled as it goes on, and what is read despite them is of no use."""

    def __init__(self, secret: Callable[[str], Secret]) -> None:
        self.problems: list[str] = []
        self._secret = secret

    def struct(self, value: Any, cls: type[T], path: str) -> T | None:
        """Read a table into a Struct; None when that cannot be."""
        if not isinstance(value, Mapping):
            self.problems.append(f"{named(path)} must be a table; it is {kind_of(value)}")
            return None
        hints = hints_of(cls)
        for key in value:
            if key not in hints:
                self.problems.append(unknown(join(path, key), key, list(hints)))
        for key in required(cls):
            if key not in value:
                self.problems.append(f"{named(join(path, key))} is missing")
        read = {key: self.value(value[key], hint, join(path, key)) for key, hint in hints.items() if key in value}
        return cls(**read) if set(required(cls)) <= set(read) else None

    def value(self, value: Any, hint: Any, path: str) -> Any:
        """Read any value into what the type hint says."""
        plain, origin, args = shape(hint)
        if isinstance(plain, type) and issubclass(plain, Struct):
            return self.struct(value, plain, path)
        if plain is Secret:
            return self._read_secret(value, path)
        if origin in (Union, UnionType):
            choices = [arg for arg in args if arg is not NoneType]
            fits = [choice for choice in choices if is_table(choice) == isinstance(value, Mapping)]
            return self.value(value, (fits or choices)[0], path)
        if origin is dict:
            return self._table(value, args[1], path)
        if origin is tuple:
            return self._list(value, args[0], path)
        return self._leaf(value, hint, path)

    def _table(self, value: Any, hint: Any, path: str) -> dict[str, Any]:
        if not isinstance(value, Mapping):
            self.problems.append(f"{named(path)} must be a table; it is {kind_of(value)}")
            return {}
        return {key: self.value(item, hint, join(path, key)) for key, item in value.items()}

    def _list(self, value: Any, hint: Any, path: str) -> tuple[Any, ...]:
        if strip(hint) is Secret and isinstance(value, str):
            return (self._read_secret(value, path),)
        if not isinstance(value, list | tuple):
            self.problems.append(f"{named(path)} must be a list; it is {kind_of(value)}")
            return ()
        return tuple(self.value(item, hint, f"{path}[{at}]") for at, item in enumerate(value))

    def _read_secret(self, value: Any, path: str) -> Secret:
        if not isinstance(value, str):
            self.problems.append(f"{named(path)} must be text (env:NAME, file:PATH or itself); it is {kind_of(value)}")
        else:
            try:
                return self._secret(value)
            except SecretError as error:
                self.problems.append(f"{named(path)}: {error}")
        return Secret("")

    def _leaf(self, value: Any, hint: Any, path: str) -> Any:
        try:
            endless = isinstance(value, float) and not math.isfinite(value)
            return msgspec.convert(object() if endless else value, hint)
        except msgspec.ValidationError:
            plain = strip(hint)
            if get_origin(plain) is Literal and isinstance(value, str):
                options = [str(option) for option in get_args(plain)]
                self.problems.append(not_one_of(path, value, options))
            else:
                self.problems.append(f"{named(path)} must be {describe(hint)}; it is {kind_of(value)}")
            return None


@cache
def hints_of(cls: type[Struct]) -> dict[str, Any]:
    """Give a Struct's fields and their types."""
    return get_type_hints(cls, include_extras=True)


def join(path: str, key: str) -> str:
    """Write a dotted path as TOML does, quoting keys that need it."""
    key = key if BARE_KEY.fullmatch(key) else '"' + key.replace('"', '\\"') + '"'
    return f"{path}.{key}" if path else key


def one_line(text: str) -> str:
    """Write line breaks and control characters as escapes: a fault is one line on somebody's terminal."""
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def named(path: str) -> str:
    """Write a path into a sentence."""
    return f"`{path}`" if path else "the file"


def unknown(path: str, key: str, allowed: list[str]) -> str:
    """Say that a key is not known, what was meant perhaps, and what is allowed."""
    close = near(key, allowed)
    meant = f": did you mean `{close[0]}`?" if close else ";"
    return f"unknown key `{path}`{meant} allowed: {', '.join(sorted(allowed)) or 'nothing'}"


def not_one_of(path: str, value: str, allowed: list[str]) -> str:
    """Say that a value is none of those allowed."""
    close = near(value, allowed)
    meant = f": did you mean `{close[0]}`?" if close else ";"
    return f"{named(path)} is `{value[:80]}`{meant} allowed: {', '.join(allowed) or 'nothing'}"


@cache
def required(cls: type[Struct]) -> list[str]:
    """Name the fields without a default."""
    return [item.name for item in msgspec.structs.fields(cls) if item.required]


def strip(hint: Any) -> Any:
    """Take `Annotated` off a type hint, and the `None` that only says: not given."""
    while get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, UnionType):
        args = [arg for arg in get_args(hint) if arg is not NoneType]
        if len(args) == 1:
            return strip(args[0])
    return hint


@cache
def shape(hint: Any) -> tuple[Any, Any, tuple[Any, ...]]:
    """Give a type hint stripped, its origin and its arguments: a start asks some thousand times."""
    plain = strip(hint)
    return plain, get_origin(plain), get_args(plain)


def is_table(hint: Any) -> bool:
    """Tell whether a value of this type is a TOML table."""
    plain = strip(hint)
    return get_origin(plain) is dict or (isinstance(plain, type) and issubclass(plain, Struct))


def kind_of(value: Any) -> str:
    """Say what a TOML value is, without showing text: it may be a secret in the wrong place."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return f"the number {value}"
    names = ((str, "text"), (list, "a list"), (Mapping, "a table"))
    return next((name for cls, name in names if isinstance(value, cls)), "a date or time")


def describe(hint: Any, *, many: bool = False) -> str:
    """Name a type for people: in messages and in the documentation."""
    plain, origin, args = shape(hint)
    if plain in NAMES:
        return NAMES[plain][many] + bounds(hint)
    if origin is Literal:
        return ("" if many else "one of ") + ", ".join(map(str, args))
    if origin is tuple:
        either = "a secret or " if strip(args[0]) is Secret else ""
        return f"{either}a list of {describe(args[0], many=True)}"
    if origin is dict:
        return f"a table of {describe(args[1], many=True)}"
    if origin in (Union, UnionType):
        return " or ".join(describe(arg, many=many) for arg in args if arg is not NoneType)
    return "tables" if many else "a table"


def bounds(hint: Any) -> str:
    """Name the limits of a number."""
    words = {"gt": "above", "ge": "at least", "lt": "below", "le": "at most"}
    found = [
        f" {word} {getattr(meta, key)}"
        for meta in metas(hint)
        for key, word in words.items()
        if getattr(meta, key) is not None
    ]
    return " and".join(found)


def metas(hint: Any) -> Iterator[Meta]:
    """Give the constraints and descriptions of a type hint, also of what stands beside its `None`."""
    if get_origin(hint) is Annotated:
        yield from (item for item in hint.__metadata__ if isinstance(item, Meta))
        yield from metas(get_args(hint)[0])
    elif get_origin(hint) in (Union, UnionType):
        for arg in get_args(hint):
            yield from metas(arg)
