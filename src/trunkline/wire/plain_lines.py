"""Readers of streams that are no JSON events: events of plain text, and lines of JSON behind a one-letter code."""

import re
from abc import ABC, abstractmethod

from trunkline.core.notes import Notes
from trunkline.wire.frame import MAX_EVENT_BYTES, UNREADABLE, Frame, Parse

_NAME_BYTES = 32
_EOL = re.compile(rb"\r\n|\n|\r")


class _LineReader(ABC):
    """Cuts bytes into lines, however they end, and keeps what is held within bounds."""

    def __init__(self, parse: Parse, notes: Notes, line: int = 1) -> None:
        self._parse = parse
        self._notes = notes
        self.line = line
        """The line being read."""
        self._pieces: list[bytes] = []  # of a line whose end has not come
        self._held = 0  # bytes
        self._skip_lf = False
        self._dead = False

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes, cut anywhere."""
        frames: list[Frame] = []
        if self._skip_lf and data:
            self._skip_lf = False
            data = data.removeprefix(b"\n")
        self._skip_lf = self._skip_lf or data.endswith(b"\r")
        *lines, rest = _EOL.split(data)
        for line in lines:
            self._end_line(line, frames)
        self._keep(rest, frames)
        return frames

    def use(self, parse: Parse, frames: list[Frame]) -> None:
        """Read on with another dialect's `parse`; frames already cut are read anew."""
        self._parse = parse
        for frame in frames:
            if frame.kind == "json":
                frame.value = self._value(bytes(frame.data))

    def close(self) -> list[Frame]:
        """Say that no more bytes come."""
        frames: list[Frame] = []
        if self._pieces:
            self._notes.add("event_unterminated", self.line)
            self._end_line(b"", frames)
        return frames

    def _end_line(self, line: bytes, frames: list[Frame]) -> None:
        if self._pieces:
            line = b"".join((*self._pieces, line))
            self._pieces.clear()
            self._held = 0
        if not self._dead:
            self._read_line(line, frames)
        self.line += 1

    def _keep(self, rest: bytes, frames: list[Frame]) -> None:
        if not rest or self._dead:
            return
        self._pieces.append(rest)
        self._held += len(rest)
        if self._held > MAX_EVENT_BYTES:
            self._overflow(frames)

    def _overflow(self, frames: list[Frame]) -> None:
        self._dead = True
        self._pieces.clear()
        self._notes.add("event_too_large", self.line)
        frames.append(Frame("too_large", line=self.line))

    def _value(self, line: bytes) -> object:
        try:
            return self._parse(line)
        except UNREADABLE:
            return None

    @abstractmethod
    def _read_line(self, line: bytes, frames: list[Frame]) -> None:
        """Read one line, whole, without its end."""


class CodedLineReader(_LineReader):
    """Reads lines such as `0:"text"`, each a frame whose event is its code."""

    def _read_line(self, line: bytes, frames: list[Frame]) -> None:
        code, _, text = line.partition(b":")
        if text:
            frames.append(Frame("json", text, self._value(text), code[:8].decode("latin-1"), self.line))


class TextEventReader(_LineReader):
    """Reads an event stream by the book (WHATWG HTML 9.2.6): the data of an event are text, and kept to the blank."""

    def __init__(self, parse: Parse, notes: Notes, line: int = 1) -> None:
        super().__init__(parse, notes, line)
        self._event = ""
        self._data: list[bytes] = []
        self._begun = 0  # the line of the event's first data
        self._size = 0

    def close(self) -> list[Frame]:
        """Give the last event, too, that no empty line ends."""
        frames = super().close()
        if self._data:
            self._notes.add("event_unterminated", self.line)
            self._dispatch(frames)
        return frames

    def _read_line(self, line: bytes, frames: list[Frame]) -> None:
        if not line:
            self._dispatch(frames)
            return
        name = line[:_NAME_BYTES].partition(b":")[0]
        begin = len(name) + 1
        value = line[begin + (line[begin : begin + 1] == b" ") :]  # one copy, of what may be large
        if not name:
            frames.append(Frame("comment", line=self.line))
        elif name == b"event":
            self._event = value.decode("utf-8", "replace").strip().lower()
        elif name == b"data":
            self._begun = self._begun or self.line
            self._data.append(value)
            self._size += len(value)
            if self._size > MAX_EVENT_BYTES:
                self._overflow(frames)

    def _dispatch(self, frames: list[Frame]) -> None:
        if self._data:
            frames.append(Frame("text", b"\n".join(self._data), None, self._event, self._begun))
        self._data.clear()
        self._event, self._begun, self._size = "", 0, 0
