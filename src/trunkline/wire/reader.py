"""The tolerant reader: event streams as providers really send them, cut into frames (wire.md section 9)."""

import re
from typing import Any

import msgspec

from trunkline.core.notes import Notes
from trunkline.wire.frame import END_EVENTS, ERROR_EVENTS, MAX_EVENT_BYTES, UNREADABLE, Frame, Parse
from trunkline.wire.scanner import MAX_DEPTH, Scanner

_EOL = re.compile(rb"\r\n|\n|\r")
_FIELD = re.compile(rb"(data|event|id|retry|error)[ \t]*:[ \t]?", re.IGNORECASE)
_DONE = b"[DONE]"
_DONE_MANGLED = re.compile(rb'["\']?[\[<|]*\s*(done|end|eos|stream_end)\s*[\]>|]*["\']?[.;,]?', re.IGNORECASE)
_SPACE = b" \t\x00\x0b\x0c\x1e"
_JUNK = re.compile(rb"(?:(\xef\xbb\xbf|\xc2\xa0)|[ \t\x00\x0b\x0c\x1e])+")  # marks and blanks that begin nothing
_LARGE = 256 * 1024  # such a line is not copied
_PROMPT_BYTES = 16 * 1024  # a line this short is tried before its newline is there


class EventReader:
    """Reads SSE, SSE without blank lines or prefixes, JSON over lines, glued JSON, NDJSON and JSON arrays.

    Rules 1 to 8 and 10 of wire.md section 9. A line that is a whole JSON value goes to `parse` at once;
    only what does not parse is scanned by depth.
    """

    def __init__(self, parse: Parse, notes: Notes, *, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._parse = parse
        self._notes = notes
        self._max_bytes = max_bytes
        self._line = 1  # the line being read
        self._tail = bytearray()  # its bytes, until its newline is here
        self._begun = False  # or: a first part of it has been read already
        self._skip_lf = False  # the line before ended with CR
        self._event = ""
        self._scanner = Scanner()  # a value that goes on in the next bytes
        self._value_line = 0
        self._in_array = False
        self._done_tail = b""
        self._done_line = 0
        self._separated = True  # an empty line, or the start, came before this line
        self._dead = False
        self.started = False
        """Whether anything but white space has arrived."""

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes, cut anywhere."""
        frames: list[Frame] = []
        if self._dead:
            return frames
        if not self.started:
            self.started = bool(data.strip())
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
            self._notes.add("event_unterminated", self._line)
        if self._tail or self._begun:
            self._end_line(b"", frames)
        if self._done_tail:
            self._done(frames)
        if self._scanner.buffer:
            self._drop(frames, "the stream ends within a JSON value")
        return frames

    def _read_lines(self, lines: list[bytes], frames: list[Frame]) -> None:
        """Read whole lines; the usual one is `data: {…}` and goes to `parse` as it is."""
        parse, scanner = self._parse, self._scanner
        for line in lines:
            if not line:
                self._event = ""
                self._separated = True
            elif line[:7] == b"data: {" and line[-1] == 0x7D and not scanner.buffer:
                text = line[6:]
                try:
                    value = parse(text)
                except UNREADABLE:
                    self._read_line(line, frames)
                else:
                    if not self._separated:
                        self._notes.add("blank_line_missing", self._line)
                    self._separated = False
                    frames.append(Frame("json", text, value, self._event, self._line))
            else:
                self._read_line(line, frames)
            self._line += 1

    def _end_line(self, piece: bytes, frames: list[Frame]) -> None:
        """Read a line that came in pieces, with its last one."""
        if self._begun:
            self._begun = False
            self._read_more(piece, frames)
            self._line += 1
            return
        line, self._tail = self._tail, bytearray()
        line += piece
        if len(line) < _LARGE:
            self._read_lines([bytes(line)], frames)
            return
        if not self._read_large(memoryview(line), frames):
            self._read_line(line, frames)
        self._line += 1

    def _read_large(self, line: memoryview, frames: list[Frame]) -> bool:
        """Read a large event without a copy of it."""
        if self._scanner.buffer or bytes(line[:5]) != b"data:":
            return False
        try:
            value = self._parse(line[5:])
        except UNREADABLE:
            return False
        self._separate(prefixed=True)
        frames.append(Frame("json", line[5:], value, self._event, self._line))
        return True

    def _grow(self, piece: bytes, frames: list[Frame]) -> None:
        """Keep the start of a line; give out a value in it that is whole already."""
        if self._begun:
            self._read_more(piece, frames)
            return
        self._tail += piece
        tail, scanner = self._tail, self._scanner
        if len(tail) + len(scanner.buffer) > self._max_bytes:
            self._overflow(frames)
        elif self._is_bare(tail):
            self._tail = bytearray()
            self._begun = True
            self._read_line(tail.lstrip(_SPACE), frames, whole=False)
        elif tail == b"data: [DONE]":
            self._tail = bytearray()
            self._begun = True
            self._done(frames, mangled=False)
        elif tail[-1] == 0x7D and len(tail) <= _PROMPT_BYTES and tail[:6] == b"data: " and not scanner.buffer:
            try:
                value = self._parse(tail[6:])
            except UNREADABLE:
                return
            self._tail = bytearray()
            self._begun = True
            self._separate(prefixed=True)
            frames.append(Frame("json", tail[6:], value, self._event, self._line))

    def _is_bare(self, tail: bytearray) -> bool:
        """Say whether a line is JSON without a prefix: it is scanned as it comes, its newline may never come."""
        if self._scanner.buffer:
            return False
        first = bytes(tail[:64].lstrip(_SPACE)[:2])
        return first[:1] == b"{" or first in (b"[{", b"[ ", b"[[") or (self._in_array and first[:1] in (b",", b"]"))

    def _overflow(self, frames: list[Frame]) -> None:
        self._dead = True
        self._tail = bytearray()
        self._scanner.clear()
        self._notes.add("event_too_large", self._line)
        frames.append(Frame("too_large", line=self._line))

    def _read_line(self, line: bytes | bytearray, frames: list[Frame], *, whole: bool = True) -> None:
        """Read one whole line, or the start of a bare one (which may end within a string), by the rules."""
        if self._scanner.buffer:
            self._continue(line, frames)
            return
        text = line.strip(_SPACE) if whole else line
        at = self._skip_marks(text, 0)
        if text[at : at + 1] == b":":
            frames.append(Frame("comment", line=self._line))
            return
        prefixes = 0
        while (field := _FIELD.match(text, at)) is not None:
            name = field.group(1).lower()
            at = self._skip_marks(text, field.end())
            if name == b"data":
                prefixes += 1
            elif name == b"error":
                self._event = "error"
            else:
                if name == b"event":
                    self._event = text[at:].decode("utf-8", "replace").strip().lower()
                return
        text = text[at:]
        if prefixes > 1 and text:
            self._notes.add("data_prefix_doubled", self._line)
        if text:
            if not self._done_tail:
                self._separate(prefixed=prefixes > 0)
            self._read_text(bytes(text), frames, prefixed=prefixes > 0)
        elif prefixes:
            self._no_data(frames)

    def _skip_marks(self, text: bytes | bytearray, at: int) -> int:
        """Give the position behind blanks, byte order marks, and blanks that are none in ASCII."""
        found = _JUNK.match(text, at)
        if found is None:
            return at
        if found.group(1) is not None:
            self._notes.add("bom", self._line)
        return found.end()

    def _no_data(self, frames: list[Frame]) -> None:
        """Read an empty `data:`: its event's name may say all."""
        self._notes.add("data_line_empty", self._line)
        if self._event in ERROR_EVENTS:
            frames.append(Frame("text", b"", None, self._event, self._line))
        elif self._event in END_EVENTS:
            self._done(frames)

    def _read_more(self, piece: bytes, frames: list[Frame]) -> None:
        """Read on in a line of which a first part has been read."""
        scanner = self._scanner
        position = 0
        if scanner.buffer:
            position = scanner.feed(piece)
            if position < 0:
                self._guard(frames)
                return
            self._emit(frames)
        text = piece[position:].lstrip(_SPACE)
        if text:
            self._scan(text, frames, prefixed=False)

    def _separate(self, *, prefixed: bool) -> None:
        """Note what is wrong with the place where a value begins."""
        if not self._in_array:
            if not self._separated:
                self._notes.add("blank_line_missing", self._line)
            if not prefixed:
                self._notes.add("data_prefix_missing", self._line)
        self._separated = False

    def _read_text(self, text: bytes, frames: list[Frame], *, prefixed: bool) -> None:
        """Read what a line holds at depth 0: the end mark, values, or neither."""
        cut, self._done_tail = self._done_tail, b""
        text = cut + text
        self._done_line = self._done_line if cut else self._line
        mark = text.rstrip(_SPACE) if len(text) < 64 else text
        if mark.startswith(_DONE):
            self._done(frames, mangled=mark != _DONE or cut != b"")
        elif _is_mark(mark):
            self._done_tail = mark
        elif text[0] in b"{[" or (self._in_array and text[0] in b",]"):
            self._scan(text, frames, prefixed=prefixed)
        elif mark[:2] == b'"{' and (inner := _unquoted(mark)):
            self._notes.add("data_prefix_doubled", self._line)
            self._scan(inner, frames, prefixed=prefixed)
        elif mark == b"null":
            self._notes.add("null_value", self._line)
        elif _DONE_MANGLED.fullmatch(mark):
            self._done(frames)
        else:
            self._notes.add("not_json", self._line, text[:80].decode("utf-8", "replace"))
            frames.append(Frame("text", text, None, self._event, self._line))

    def _done(self, frames: list[Frame], *, mangled: bool = True) -> None:
        line = self._done_line if self._done_tail or mangled else self._line
        self._done_tail = b""
        if mangled:
            self._notes.add("done_mangled", line)
        frames.append(Frame("done", line=line))

    def _scan(self, text: bytes, frames: list[Frame], *, prefixed: bool) -> None:
        """Cut the JSON values of a text at depth 0; the last may go on in the next bytes."""
        position = 0
        scanner = self._scanner
        while position < len(text):
            byte = text[position]
            if byte == 0x7B:
                if position and not self._in_array:
                    self._notes.add("values_glued", self._line)
                self._value_line = self._line
                position = scanner.feed(text, position)
                if position < 0:
                    self._guard(frames)
                    return
                self._emit(frames)
            elif byte == 0x5B and _is_mark(text[position : position + len(_DONE)]):
                self._read_text(text[position:], frames, prefixed=prefixed)
                return
            elif byte == 0x5B:
                if not self._in_array:
                    self._notes.add("array_of_chunks", self._line)
                self._in_array = True
                position += 1
            elif byte == 0x5D and self._in_array:
                self._in_array = False
                position += 1
            elif byte in b" \t,\x00":
                position += 1
            elif byte in b"}]":
                self._notes.add("bracket_surplus", self._line)
                position += 1
            elif _FIELD.match(text, position) is not None:
                self._notes.add("blank_line_missing", self._line)
                self._read_line(text[position:], frames)
                return
            else:
                self._read_text(text[position:], frames, prefixed=prefixed)
                return

    def _continue(self, line: bytes | bytearray, frames: list[Frame]) -> None:
        """Go on with a value that began in an earlier line (rules 4 and 5)."""
        scanner = self._scanner
        text = bytes(line)
        stripped = text.lstrip(_SPACE)
        if stripped[:1] == b":":
            frames.append(Frame("comment", line=self._line))
            return
        field = None if scanner.in_string else _FIELD.match(stripped)
        if scanner.in_string or self._begins_anew(stripped, field):
            self._drop(frames, "a new line begins within a JSON value")
            self._read_line(line, frames)
            return
        if field is not None:
            text = stripped[field.end() :]
        end = scanner.feed(text)
        if end < 0:
            self._guard(frames)
            return
        self._notes.add("json_over_lines", self._value_line)
        self._emit(frames)
        rest = text[end:].strip(_SPACE)
        if rest:
            self._scan(rest, frames, prefixed=field is not None)

    def _begins_anew(self, text: bytes, field: re.Match[bytes] | None) -> bool:
        """Say whether a line with a prefix is a new event after a cut one, not the value's next line."""
        if field is None:
            return False
        if field.group(1).lower() != b"data":
            return True
        rest = text[field.end() :].lstrip(_SPACE)
        held = bytes(self._scanner.buffer.rstrip(_SPACE)[-1:])
        return (rest[:2] == b'{"' or rest[:6] == _DONE) and held not in (b"[", b",", b":", b"{")

    def _guard(self, frames: list[Frame]) -> None:
        """Keep what is held within bounds."""
        if self._scanner.depth > MAX_DEPTH:
            self._drop(frames, f"JSON nested deeper than {MAX_DEPTH}")
        elif len(self._scanner.buffer) > self._max_bytes:
            self._overflow(frames)

    def _drop(self, frames: list[Frame], why: str) -> None:
        self._notes.add("malformed", self._value_line, why)
        frames.append(Frame("malformed", bytes(self._scanner.buffer[:200]), None, self._event, self._value_line))
        self._scanner.clear()

    def _emit(self, frames: list[Frame]) -> None:
        """Give a whole value: read, if `parse` can, else left to the decoder."""
        if self._scanner.surplus:
            self._notes.add("bracket_surplus", self._value_line)
        data = self._scanner.take()
        frames.append(Frame("json", data, self._read_value(data), self._event, self._value_line))

    def _read_value(self, data: bytes | bytearray | memoryview) -> Any:
        try:
            return self._parse(data)
        except UNREADABLE:
            return None


def _unquoted(text: bytes) -> bytes:
    """Read an event that was encoded twice; nothing where it was not."""
    try:
        return msgspec.json.decode(text, type=str).encode()
    except UNREADABLE:
        return b""


def _is_mark(text: bytes) -> bool:
    """Say whether a text is the end mark, or its start."""
    return len(text) > 1 and _DONE.startswith(text)
