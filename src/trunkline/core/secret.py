"""A secret: to be used and compared, never printed."""

import hashlib
import hmac
from typing import NoReturn

SHORT_CHARS = 8
"""Shorter ones hide nothing in what providers say: they are words such as `none`, which any answer may hold."""


class Secret:
    """A password, key or token. `name` says where it came from, in words that are safe to show and to store.

    Two secrets are equal when their values are; the comparison takes constant time.
    """

    __slots__ = ("_value", "name")

    def __init__(self, value: str, name: str = "") -> None:
        self._value = value
        self.name = name or f"literal:{hashlib.sha256(value.encode()).hexdigest()[:8]}"

    def reveal(self) -> str:
        """Give the value itself: only where it is sent, hashed or compared."""
        return self._value

    def __repr__(self) -> str:
        return f"Secret({self.name})"

    __str__ = __repr__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and hmac.compare_digest(self._value.encode(), other._value.encode())

    def __hash__(self) -> int:
        return hash(self._value)

    def __bool__(self) -> bool:
        return bool(self._value)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a secret is not written down")
