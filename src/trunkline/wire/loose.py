"""Reading JSON that is nearly right: broken UTF-8, half surrogates, control characters in strings."""

import json
from typing import Any

import msgspec

from trunkline.core.notes import Notes

Loose = bytes | bytearray | memoryview


def read_loose(data: Loose, notes: Notes, line: int = 0) -> Any:
    """Read a JSON text, or give None where no reading makes sense of it.

    Strings may hold half surrogates afterwards; who puts text together pairs or replaces them (`pair_surrogates`).
    """
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, RecursionError):
        pass
    raw = bytes(data)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        notes.add("utf8_invalid", line)
        text = raw.decode("utf-8", "replace")
    try:
        return json.loads(text, strict=False)
    except (ValueError, RecursionError):  # ValueError also for integers of more digits than Python reads
        notes.add("malformed", line, "no JSON")
        return None


class TextJoin:
    """Makes text of pieces whole: half surrogates are paired over pieces, or replaced by U+FFFD."""

    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = ""

    def feed(self, text: str) -> str:
        """Give the text that is certain by now; a first half at its end is held back."""
        if self.held:
            text = self.held + text
            self.held = ""
        if text.isascii():
            return text
        if text and "\ud800" <= text[-1] <= "\udbff":
            self.held = text[-1]
            text = text[:-1]
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return text

    def close(self) -> str:
        """Give what was held back: half a character becomes U+FFFD."""
        held, self.held = self.held, ""
        return "\ufffd" if held else ""
