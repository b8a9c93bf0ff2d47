"""What an upstream counted: usage that comes once, again and again, in parts, or for one choice after the other."""

from typing import Any

import msgspec
from msgspec.structs import replace

from trunkline.core.events import Usage
from trunkline.core.notes import Notes
from trunkline.wire.openai_chunk import Choice, Delta
from trunkline.wire.read import as_count, as_dict
from trunkline.wire.usage import read_usage

_encode = msgspec.json.Encoder().encode
_SUMS = frozenset(("prompt_tokens", "completion_tokens", "total_tokens"))


class Counted:
    """Takes usage objects as they come."""

    __slots__ = ("_notes", "_timed", "_told")

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._told: Any = None  # where it is whole it is read at the end: some send one with every chunk
        self._timed = False  # they are llama.cpp's timings: so far, and only as long as there is no usage

    @property
    def usage(self) -> Usage | None:
        """What was counted so far."""
        return _read(self._told)

    def take(self, value: Any, *, of_another: bool = False) -> None:
        """Take a usage object; `of_another`: of another choice than the one before."""
        told = as_dict(value)
        whole = as_count(told.get("prompt_tokens")) and as_count(told.get("completion_tokens"))
        usage = value if whole else read_usage(value)
        if usage is None:
            if told:
                self._notes.add("usage_zero")
            return
        if self._told is not None and not self._timed:
            self._notes.add("usage_repeated")
            if of_another or not whole or _kinds(told) != _kinds(self._told):
                former, later = _read(self._told), _read(usage)
                if former and later:
                    usage = later.beside(former) if of_another else later.after(former)
        self._told, self._timed = usage, False

    def take_first(self, timings: Any, choices: list[Choice]) -> None:
        """Take llama.cpp's timings of an answer that came whole: with them its usage is the first choice's alone.

        The others have as many tokens for their length.
        """
        usage = self.usage
        if usage is not None and as_count(as_dict(timings).get("predicted_n")) == usage.completion_tokens:
            sizes = [_size(choice.message) for choice in choices]
            first = usage.completion_tokens
            others = [-(-first * size // sizes[0]) if sizes[0] else first for size in sizes[1:]]
            sums = {"completion_tokens": first + sum(others), "total_tokens": usage.total_tokens + sum(others)}
            self._told, self._timed = replace(usage, **sums, estimated=True), False

    def take_timings(self, value: Any) -> None:
        """Take llama.cpp's timings, where they are all there is."""
        if (self._told is None or self._timed) and as_count(as_dict(value).get("predicted_n")):
            self._told, self._timed = value, True


def _size(message: Delta | None) -> int:
    """Give how long a choice is."""
    said = (message.content, message.reasoning_content, message.tool_calls) if message else ()
    return sum(len(part if type(part) is str else _encode(part)) for part in said if part)


def _read(told: Any) -> Usage | None:
    return told if isinstance(told, Usage) else read_usage(told)


def _kinds(told: Any) -> dict[str, Any] | None:
    """Give what is told beside the sums; None where it has been read."""
    return {name: value for name, value in told.items() if name not in _SUMS} if type(told) is dict else None
