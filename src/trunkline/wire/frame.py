"""One unit cut from an upstream's bytes, and the shape of what cuts them."""

from collections.abc import Callable
from typing import Any, Literal, Protocol

from msgspec import DecodeError, Struct

FrameKind = Literal["json", "done", "comment", "text", "malformed", "too_large", "array_end"]


class Frame(Struct, gc=False):
    """A JSON value, the end mark, the end of an array of values, or what was neither.

    `value` is what the reader's `parse` made of the data, None where that failed; `line` counts from 1.
    """

    kind: FrameKind
    data: bytes | bytearray | memoryview = b""
    value: Any = None
    event: str = ""
    line: int = 0


class Reader(Protocol):
    """Cuts bytes into frames. Never raises, whatever comes in; memory is bounded."""

    @property
    def line(self) -> int:
        """The line being read, from 1."""

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes, cut anywhere."""

    def use(self, parse: "Parse", frames: list[Frame]) -> None:
        """Read on with another dialect's `parse`; frames already cut are read anew."""

    def close(self) -> list[Frame]:
        """Say that no more bytes come."""


ERROR_EVENTS = frozenset(
    ("error", "exception", "err", "run_error", "failed", "failure", "abort", "aborted", "timeout", "cancelled",
     "canceled")
)  # fmt: skip
"""Names of events that tell of a failure, whatever their data are."""

END_EVENTS = frozenset(
    ("done", "end", "finish", "finished", "complete", "completed", "close", "message_end", "interaction.complete",
     "chat.end", "run_finished", "stream_end")
)  # fmt: skip
"""Names of events that end an answer, when they have no data that does."""

UNREADABLE = (DecodeError, UnicodeDecodeError, RecursionError)
"""What msgspec raises for bytes that are no JSON, are not of the type, or are nested too deeply."""

Parse = Callable[[bytes | bytearray | memoryview], Any]
"""Reads a JSON text into a typed value; raises one of `UNREADABLE` where it cannot."""

MAX_EVENT_BYTES = 65 * 1024 * 1024
"""An event of 64 MiB passes, with its framing."""
