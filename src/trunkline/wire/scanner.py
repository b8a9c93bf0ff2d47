"""Finds whole JSON values in text that comes in pieces, by depth; looks at each byte once."""

import re

_STRUCTURE = re.compile(rb'[{}\[\]"]')
_STRING = re.compile(rb'["\\]')
_PAIR = {0x7D: 0x7B, 0x5D: 0x5B}  # } closes {, ] closes [
MAX_DEPTH = 256
_END_BYTES = 4096  # looked at in one step for blanks


class Scanner:
    """Holds one JSON value as it grows. `surplus` counts closing brackets that closed nothing and were left out."""

    def __init__(self) -> None:
        self.buffer = bytearray()
        self.open = bytearray()
        self.in_string = False
        self.surplus = 0
        self._escaped = False

    @property
    def depth(self) -> int:
        """How many brackets are open."""
        return len(self.open)

    def clear(self) -> None:
        """Forget everything."""
        self.buffer = bytearray()
        self.open.clear()
        self.in_string = self._escaped = False
        self.surplus = 0

    def take(self) -> bytearray:
        """Give the whole value and start anew."""
        value = self.buffer
        self.clear()
        return value

    def rstrip(self, blanks: bytes) -> None:
        """Forget the blanks at the end, without a copy of the whole; a value must have begun."""
        while self.buffer[-1] in blanks:
            end = self.buffer[-_END_BYTES:]
            del self.buffer[len(self.buffer) - len(end) + len(end.rstrip(blanks)) :]

    def feed(self, text: bytes | bytearray, start: int = 0) -> int:
        """Read on until the value is whole; give the position behind it, or -1 when it needs more text.

        Must begin at a `{` or `[`. When too deep, everything is kept and the value never becomes whole.
        """
        position = start
        begun = start
        while True:
            if self.in_string:
                position = self._string(text, position)
                if position < 0:
                    break
                continue
            found = _STRUCTURE.search(text, position)
            if found is None:
                break
            position = found.end()
            byte = text[position - 1]
            if byte == 0x22:
                self.in_string = True
            elif byte in (0x7B, 0x5B):
                self.open.append(byte)
            elif self.open and self.open[-1] == _PAIR[byte]:
                self.open.pop()
                if not self.open:
                    self.buffer += memoryview(text)[begun:position]
                    return position
            else:
                self.surplus += 1
                self.buffer += memoryview(text)[begun : position - 1]
                begun = position
        self.buffer += memoryview(text)[begun:]
        return -1

    def _string(self, text: bytes | bytearray, position: int) -> int:
        """Skip to behind the string's end, or give -1 at the end of the text."""
        if self._escaped and position < len(text):
            self._escaped = False
            position += 1
        while (found := _STRING.search(text, position)) is not None:
            position = found.end()
            if text[position - 1] == 0x22:
                self.in_string = False
                return position
            if position == len(text):
                self._escaped = True
                return -1
            position += 1
        return -1
