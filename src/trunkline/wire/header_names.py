"""Headers' names in lower case."""

MOST = 1024
"""How many are remembered."""


class _Lower(dict[bytes, bytes]):
    def __missing__(self, name: bytes) -> bytes:
        if len(self) >= MOST:
            self.clear()
        lower = self[name] = name.lower()
        return lower


LOWER = _Lower()
"""Gives a name in lower case: the same few come again and again."""
