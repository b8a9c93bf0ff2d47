"""What one line of an event stream means, as providers really write it (wire.md section 9, rules 3 to 8)."""

import re
from typing import Any

import msgspec

from trunkline.core.notes import Notes
from trunkline.wire.frame import END_EVENTS, ERROR_EVENTS, MAX_EVENT_BYTES, UNREADABLE, Frame, Parse
from trunkline.wire.scanner import MAX_DEPTH, Scanner

DONE = b"[DONE]"
SPACE = b" \t\x00\x0b\x0c\x1e"
_FIELD = re.compile(rb"(data|event|id|retry|error)(?:[ \t]*:[ \t]?|(?<=data)[ \t]+(?=[{\[]))", re.IGNORECASE)
_GUARD = re.compile(rb"(?:for\s*\(;;\);|while\s*\((?:1|true)\);|\)\]\}'?,?)\s*")  # that no script can read the JSON
_DONE_MANGLED = re.compile(rb'["\']?[\[<|]*\s*(done|end|eos|stream_end)\s*[\]>|]*["\']?[.;,]?', re.IGNORECASE)
_JUNK = re.compile(rb"(?:(\xef\xbb\xbf|\xc2\xa0)|[ \t\x00\x0b\x0c\x1e])+")  # marks and blanks that begin nothing
_BETWEEN = re.compile(rb"(?:[ \t\x00\x0b\x0c\x1e,]|\\[nr])+")  # values; some write their newlines as two characters
_TAG = re.compile(rb"\[[A-Za-z]")  # `[ERROR] …` is no array
_LEAD = re.compile(rb"[ \t\x00\x0b\x0c\x1e]*")
LARGE_BYTES = 256 * 1024  # a line that is longer is not copied
_MARK_BYTES = 64  # a text this long is no end mark


class LineReader:
    """Reads lines one by one; what goes over lines is remembered: a JSON value, an array, half an end mark.

    A line that came in part may be read in part: the values that are whole, and nothing whose meaning its end decides.
    """

    def __init__(self, parse: Parse, notes: Notes, *, max_bytes: int = MAX_EVENT_BYTES) -> None:
        self._parse = parse
        self._notes = notes
        self._max_bytes = max_bytes
        self.line = 1
        """The line being read."""
        self._event = ""
        self._scanner = Scanner()  # a value that goes on in the next bytes
        self._value_line = 0
        self._glued_line = 0  # where a value has ended: another one on that line is glued to it
        self._in_array = False
        self._done_tail = b""
        self._done_line = 0
        self._separated = True  # an empty line, or the start, came before this line
        self._dead = False

    def _overflow(self, frames: list[Frame]) -> None:
        self._dead = True
        self._scanner.clear()
        self._notes.add("event_too_large", self.line)
        frames.append(Frame("too_large", line=self.line))

    def _read_line(self, line: bytes | bytearray, frames: list[Frame], *, whole: bool = True) -> bytes:
        """Read one line, or the start of one that is JSON without a prefix; give the rest that waits for its end."""
        if self._scanner.buffer:
            self._continue(line, frames)
            return b""
        large = len(line) > LARGE_BYTES
        text = line.strip(SPACE) if whole and not large else line
        at = self._skip_marks(text, 0)
        if text[at : at + 1] == b":":
            frames.append(Frame("comment", line=self.line))
            return b""
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
                return b""
        first = text[at : at + 1]
        if first and prefixes > 1:
            self._notes.add("data_prefix_doubled", self.line)
        if first and not self._done_tail:
            self._separate(prefixed=prefixes > 0)
            if large and first == b"{":
                return self._scan(text, frames, at, whole=whole)
        if first:
            return self._read_text(bytes(text[at:]), frames, whole=whole)
        if prefixes:
            self._no_data(frames)
        return b""

    def _skip_marks(self, text: bytes | bytearray, at: int) -> int:
        """Give the position behind blanks, byte order marks, and blanks that are none in ASCII."""
        found = _JUNK.match(text, at)
        if found is None:
            return at
        if found.group(1) is not None:
            self._notes.add("bom", self.line)
        return found.end()

    def _no_data(self, frames: list[Frame]) -> None:
        """Read an empty `data:`: its event's name may say all."""
        self._notes.add("data_line_empty", self.line)
        if self._event in ERROR_EVENTS:
            frames.append(Frame("text", b"", None, self._event, self.line))
        elif self._event in END_EVENTS:
            self._done(frames)

    def _separate(self, *, prefixed: bool) -> None:
        """Note what is wrong with the place where a value begins."""
        if not self._in_array:
            if not self._separated:
                self._notes.add("blank_line_missing", self.line)
            if not prefixed:
                self._notes.add("data_prefix_missing", self.line)
        self._separated = False

    def _read_text(self, text: bytes, frames: list[Frame], *, whole: bool = True) -> bytes:
        """Read what a line holds at depth 0: the end mark, values, or neither."""
        cut, self._done_tail = self._done_tail, b""
        if cut and (cut + text).startswith(DONE[: len(cut + text)]):
            text = cut + text
        elif cut:
            self._notes.add("not_json", self._done_line, cut.decode())
            cut = b""
        self._done_line = self._done_line if cut else self.line
        mark = text.rstrip(SPACE) if len(text) < _MARK_BYTES else text
        if mark.startswith(DONE):
            self._done(frames, mangled=mark != DONE or cut != b"")
            return self._scan(text[len(DONE) :], frames, whole=whole)
        if is_mark(mark):
            self._done_tail = mark
        elif (text[0] in b"{[" and not _TAG.match(text)) or (self._in_array and text[0] in b",]"):
            return self._scan(text, frames, whole=whole)
        elif mark[:2] == b'"{' and (inner := _unquoted(mark)):
            self._notes.add("data_prefix_doubled", self.line)
            self._scan(inner, frames)
        elif mark == b"null":
            self._notes.add("null_value", self.line)
        elif (guard := _GUARD.match(text)) is not None:
            self._notes.add("not_json", self.line, guard.group().decode())
            return self._scan(text[guard.end() :], frames, whole=whole)
        elif _DONE_MANGLED.fullmatch(mark):
            self._done(frames)
        else:
            self._notes.add("not_json", self.line, text[:80].decode("utf-8", "replace"))
            frames.append(Frame("text", text, None, self._event, self.line))
        return b""

    def _done(self, frames: list[Frame], *, mangled: bool = True) -> None:
        line = self._done_line if self._done_tail or mangled else self.line
        self._done_tail = b""
        if mangled:
            self._notes.add("done_mangled", line)
        frames.append(Frame("done", line=line))

    def _scan(self, text: bytes | bytearray, frames: list[Frame], start: int = 0, *, whole: bool = True) -> bytes:
        """Cut the JSON values of a text at depth 0; the last may go on in the next bytes.

        Where the line may go on (not `whole`), what is neither a value nor between values is given back.
        """
        position = start
        scanner = self._scanner
        while position < len(text):
            byte = text[position]
            if byte == 0x7B:
                if self._glued_line == self.line and not self._in_array:
                    self._notes.add("values_glued", self.line)
                self._value_line = self.line
                position = scanner.feed(text, position)
                if position < 0:
                    self._guard(frames, whole=whole)
                    return b""
                self._emit(frames)
            elif (between := _BETWEEN.match(text, position)) is not None:
                position = between.end()
            elif byte == 0x5D and self._in_array:
                self._in_array = False
                frames.append(Frame("array_end", line=self.line))
                position += 1
            elif byte in b"}]":
                self._notes.add("bracket_surplus", self.line)
                position += 1
            elif (
                byte == 0x5B
                and (whole or position + 1 < len(text))
                and not is_mark(bytes(text[position : position + len(DONE)]).rstrip(b"" if whole else SPACE))
                and not _TAG.match(text, position)
            ):
                if not self._in_array:
                    self._notes.add("array_of_chunks", self.line)
                self._in_array = True
                position += 1
            elif not whole:
                return bytes(text[position:])
            elif _FIELD.match(text, position) is not None:
                self._notes.add("blank_line_missing", self.line)
                return self._read_line(text[position:], frames)
            else:
                return self._read_text(bytes(text[position:]), frames)
        return b""

    def _continue(self, line: bytes | bytearray, frames: list[Frame]) -> None:
        """Go on with a value that began in an earlier line (rules 4 and 5)."""
        scanner = self._scanner
        lead = _LEAD.match(line)
        start = lead.end() if lead else 0
        if line[start : start + 1] == b":":
            frames.append(Frame("comment", line=self.line))
            return
        field = None if scanner.in_string else _FIELD.match(line, start)
        if scanner.in_string or self._begins_anew(line, field):
            self._drop(frames, "a new line begins within a JSON value")
            self._read_line(line, frames)
            return
        end = scanner.feed(line, field.end() if field is not None else 0)
        if end < 0:
            self._guard(frames, whole=True)
            return
        rest = bytes(line[end:]).strip(SPACE)
        if type(line) is bytearray:
            line.clear()  # it may be large, and is held in the value
        self._emit(frames)
        if rest:
            self._scan(rest, frames)

    def _begins_anew(self, text: bytes | bytearray, field: re.Match[bytes] | None) -> bool:
        """Say whether a line with a prefix is a new event after a cut one, not the value's next line."""
        if field is None:
            return False
        if field.group(1).lower() != b"data":
            return True
        rest = text[field.end() : field.end() + _MARK_BYTES].lstrip(SPACE)
        held = bytes(self._scanner.buffer[-1:])
        return (rest[:2] == b'{"' or rest[:6] == DONE) and held not in (b"[", b",", b":", b"{")

    def _guard(self, frames: list[Frame], *, whole: bool) -> None:
        """Keep what is held within bounds; the blanks that end a line (`whole`) are no part of it."""
        if whole:
            self._scanner.rstrip(SPACE)
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
        if self._value_line != self.line:
            self._notes.add("json_over_lines", self._value_line)
        self._glued_line = self.line
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


def is_mark(text: bytes) -> bool:
    """Say whether a text is the end mark, or its start."""
    return len(text) > 1 and DONE.startswith(text)
