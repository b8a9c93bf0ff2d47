"""The tolerant reader: event streams as providers really send them, cut into frames (wire.md section 9)."""

import re

from trunkline.core.notes import Notes
from trunkline.wire.frame import ERROR_EVENTS, MAX_EVENT_BYTES, UNREADABLE, Frame, Parse
from trunkline.wire.lines import DONE, LARGE_BYTES, SPACE, LineReader

_DONE_LINE = b"data: " + DONE
_EOL = re.compile(rb"\r\n|\n|\r")
_GOES_ON = frozenset((b"{", b"[", b"}", b"]", b'"', b","))  # a line that begins so is the next of its value
_PROMPT_BYTES = 16 * 1024  # a line this short is tried before its newline is there


class EventReader(LineReader):
    """Reads SSE, SSE without blank lines or prefixes, JSON over lines, glued JSON, NDJSON and JSON arrays.

    Rules 1 to 8 and 10 of wire.md section 9. A line that is a whole JSON value goes to `parse` at once;
    only what does not parse is scanned by depth. Values are given out when they are whole, not when their line is;
    how the bytes were cut changes nothing.
    """

    def __init__(self, parse: Parse, notes: Notes, *, max_bytes: int = MAX_EVENT_BYTES) -> None:
        super().__init__(parse, notes, max_bytes=max_bytes)
        self._tail = bytearray()  # what is not read yet of a line whose newline is not here
        self._begun = False  # a first part of that line has been read
        self._marked = False  # it was the end mark
        self._skip_lf = False  # the line before ended with CR
        self.at_rest = True
        """Whether nothing is held, and a new event may begin."""

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes, cut anywhere."""
        plain = self.at_rest and data[-3:] == b"}\n\n" and data[:7] == b"data: {"
        if plain and data.count(b"\n") == 2 and b"\r" not in data:
            text, line = data[6:-2], self.line  # one event, as nearly every read of a slow stream has it
            try:
                value = self._parse(text)
            except UNREADABLE:
                pass  # line by line, as below
            else:
                self.line = line + 2
                return [Frame("json", text, value, "", line)]
        return self._feed(data)

    def _feed(self, data: bytes) -> list[Frame]:
        frames: list[Frame] = []
        if self._dead:
            return frames
        if self._skip_lf and data:
            self._skip_lf = False
            data = data.removeprefix(b"\n") if data[:1] == b"\n" else data
        if b"\r" in data:
            lines = _EOL.split(data)
            self._skip_lf = data.endswith(b"\r")
        else:
            lines = data.split(b"\n")
        rest = lines.pop()
        if lines and (self._tail or self._begun):
            self._end_line(lines.pop(0), frames)
        self._read_lines(lines, frames)
        if rest and not self._dead:
            self._grow(rest, frames)
        held = self._tail or self._begun or self._skip_lf or self._done_tail or self._scanner.buffer or self._event
        self.at_rest = self._separated and not (held or self._dead)
        return frames

    def use(self, parse: Parse, frames: list[Frame]) -> None:
        """Read on with another dialect's `parse`; frames already cut are read anew."""
        self._parse = parse
        for frame in frames:
            if frame.kind == "json":
                frame.value = self._read_value(frame.data)

    def close(self) -> list[Frame]:
        """Say that no more bytes come: what is whole is given, what is cut is malformed."""
        frames: list[Frame] = []
        if self._dead:
            return frames
        if self._tail or self._begun or not self._separated:
            self._notes.add("event_unterminated", self.line)
        if self._tail or self._begun:
            self._end_line(b"", frames)
        if self._done_tail:
            self._done(frames)
        if self._scanner.buffer:
            self._drop(frames, "the stream ends within a JSON value")
        elif self._in_array:
            self._notes.add("malformed", self.line, "the stream ends within a JSON array")
            frames.append(Frame("malformed", line=self.line))
        return frames

    def _read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Read whole lines; the usual ones are `data: {…}`, which goes to `parse` as it is, and the end mark."""
        parse, scanner = self._parse, self._scanner
        for line in lines:
            if not line:
                if self._event in ERROR_EVENTS:  # whatever came with that name, or nothing
                    frames.append(Frame("text", b"", None, self._event, self.line))
                self._event = ""
                self._separated = True
            elif line[:7] == b"data: {" and line[-1] == 0x7D and not scanner.buffer and not self._done_tail:
                text = line[6:]
                try:
                    value = parse(text)
                except UNREADABLE:
                    self._read_line(line, frames)
                else:
                    if not self._separated:
                        self._notes.add("blank_line_missing", self.line)
                    self._separated = False
                    frames.append(Frame("json", text, value, self._event, self.line))
            elif line == _DONE_LINE and self._separated and not (scanner.buffer or self._done_tail or self._in_array):
                self._separated = False
                frames.append(Frame("done", line=self.line))
            else:
                self._read_line(line, frames)
            self.line += 1

    def _end_line(self, piece: bytes, frames: list[Frame]) -> None:
        """Read a line that came in pieces, with its last one."""
        if self._begun:
            self._begun = False
            self._read_more(piece, frames, whole=True)
            self._marked = False
            self.line += 1
            return
        line, self._tail = self._tail, bytearray()
        line += piece
        if len(line) < LARGE_BYTES:
            self._read_lines([bytes(line)], frames)
            return
        if not self._read_large(memoryview(line), frames):
            self._read_line(line, frames)
        self.line += 1

    def _read_large(self, line: memoryview, frames: list[Frame]) -> bool:
        """Read a large event without a copy of it."""
        if self._scanner.buffer or self._done_tail or bytes(line[:5]) != b"data:":
            return False
        try:
            value = self._parse(line[5:])
        except UNREADABLE:
            return False
        self._separate(prefixed=True)
        frames.append(Frame("json", line[5:], value, self._event, self.line))
        return True

    def _grow(self, piece: bytes, frames: list[Frame]) -> None:
        """Keep the start of a line; give out a value in it that is whole already."""
        if self._begun:
            self._read_more(piece, frames, whole=False)
            return
        self._tail += piece
        tail, scanner = self._tail, self._scanner
        if len(tail) + len(scanner.buffer) > self._max_bytes:
            self._overflow(frames)
        elif scanner.buffer:
            if not scanner.in_string and bytes(tail[:64].lstrip(SPACE)[:1]) in _GOES_ON:
                self._begin()
                self._read_more(bytes(tail), frames, whole=False)
        elif self._is_bare(tail):
            self._begin()
            self._tail += self._read_line(tail.lstrip(SPACE), frames, whole=False)
        elif self._done_tail:
            return
        elif tail == _DONE_LINE:
            self._begin()
            self._marked = True
            self._separate(prefixed=True)
            self._done(frames, mangled=False)
        elif tail[-1] == 0x7D and len(tail) <= _PROMPT_BYTES and tail[:5] == b"data:":
            text = tail[6 if tail[5] == 0x20 else 5 :]
            try:
                value = self._parse(text)
            except UNREADABLE:
                return
            self._begin()
            self._separate(prefixed=True)
            self._glued_line = self.line
            frames.append(Frame("json", text, value, self._event, self.line))

    def _begin(self) -> None:
        self._tail = bytearray()
        self._begun = True

    def _overflow(self, frames: list[Frame]) -> None:
        self._tail = bytearray()
        super()._overflow(frames)

    def _is_bare(self, tail: bytearray) -> bool:
        """Say whether a line is JSON without a prefix: it is scanned as it comes, its newline may never come."""
        first = bytes(tail[:64].lstrip(SPACE)[:2])
        return first[:1] == b"{" or first in (b"[{", b"[ ", b"[[") or (self._in_array and first[:1] in (b",", b"]"))

    def _read_more(self, piece: bytes, frames: list[Frame], *, whole: bool) -> None:
        """Read on in a line of which a first part has been read; `whole`: this is its last part."""
        if self._marked and piece.strip(SPACE):
            self._notes.add("done_mangled", self.line)
            self._marked = False
        if self._scanner.buffer:
            position = self._scanner.feed(piece)
            if position < 0:
                self._guard(frames, whole=whole)
                return
            self._emit(frames)
            piece = piece[position:]
        self._tail += piece
        if whole:
            text, self._tail = bytes(self._tail.rstrip(SPACE)), bytearray()
            self._scan(text, frames)
        elif len(self._tail) - len(piece) <= len(DONE):  # else it waits for its end already
            text, self._tail = bytes(self._tail), bytearray()
            self._tail += self._scan(text, frames, whole=False)
        elif len(self._tail) > self._max_bytes:
            self._overflow(frames)
