"""Reading JSON that is nearly right: broken UTF-8, half surrogates, control characters in strings."""

import json
from typing import Any

import msgspec

from trunkline.core.notes import Notes
from trunkline.wire.frame import UNREADABLE

Loose = bytes | bytearray | memoryview


def read_loose(data: Loose, notes: Notes, line: int = 0) -> Any:
    """Read a JSON text, or give None where no reading makes sense of it.

    Half surrogates become U+FFFD, but for those in `content`, which may be paired with the next delta's (`TextJoin`).
    """
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        pass
    raw = bytes(data)
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        notes.add("utf8_invalid", line)
        text = raw.decode("utf-8", "replace")
    try:
        return _whole(json.loads(text, strict=False))
    except (ValueError, RecursionError):  # ValueError also for integers of more digits than Python reads
        notes.add("malformed", line, "no JSON")
        return None


def _whole(value: Any, name: str = "") -> Any:
    """Replace half surrogates in all strings that are not joined later."""
    if type(value) is str:
        return value if name == "content" else _paired(value)
    if type(value) is list:
        return [_whole(item, name) for item in value]
    if type(value) is dict:
        return {_paired(key): _whole(item, key) for key, item in value.items()}
    return value


def _paired(text: str) -> str:
    """Pair surrogates, and replace those without a partner."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


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
        return _paired(text)

    def close(self) -> str:
        """Give what was held back: half a character becomes U+FFFD."""
        held, self.held = self.held, ""
        return "\ufffd" if held else ""
