"""Reading JSON that is nearly right: broken UTF-8, half surrogates, control characters in strings."""

import json
import re
from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.notes import Notes
from trunkline.wire.frame import UNREADABLE

_HALF = re.compile("[\ud800-\udfff]")
Loose = bytes | bytearray | memoryview
_JOINED = frozenset(("content", "text", "response", "delta", "reasoning_content", "reasoning", "thinking", "arguments"))


def read_loose(data: Loose, notes: Notes, line: int = 0) -> Any:
    """Read a JSON text, or give None where no reading makes sense of it.

    Half surrogates become U+FFFD, but for those in texts, which may be paired with the next piece's (`TextJoin`).
    """
    try:
        return msgspec.json.decode(data)
    except UNREADABLE:
        pass
    try:
        text = str(data, "utf-8")
    except UnicodeDecodeError:
        notes.add("utf8_invalid", line)
        text = str(data, "utf-8", "replace")
    try:
        return _whole(json.loads(text, strict=False), "", _JOINED)
    except (ValueError, RecursionError):  # ValueError also for integers of more digits than Python reads
        notes.add("malformed", line, "no JSON")
        return None


def as_raw(value: Any) -> Raw:
    """Write a value that was read loosely; half surrogates become U+FFFD."""
    try:
        return Raw(msgspec.json.encode(value))
    except UnicodeEncodeError:
        return Raw(msgspec.json.encode(_whole(value)))


def _whole(value: Any, name: str = "", joined: frozenset[str] = frozenset()) -> Any:
    """Replace half surrogates in all strings that are not joined later."""
    if type(value) is str:
        return value if name in joined else paired(value)
    if type(value) is list:
        return [_whole(item, name, joined) for item in value]
    if type(value) is dict:
        return {paired(key): _whole(item, key, joined) for key, item in value.items()}
    return value


def paired(text: str) -> str:
    """Pair surrogates, and replace those without a partner."""
    if text.isascii() or _HALF.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


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
        return paired(text)

    def close(self) -> str:
        """Give what was held back: half a character becomes U+FFFD."""
        held, self.held = self.held, ""
        return "\ufffd" if held else ""
