"""AWS event-stream framing (application/vnd.amazon.eventstream): binary messages, each with two checksums."""

from binascii import crc32
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.notes import Notes
from trunkline.wire.frame import UNREADABLE, Frame, Parse

PRELUDE_BYTES = 12
"""A message's head: its length, the length of its headers, and the checksum of both."""
_LEAST = 16
MAX_MESSAGE_BYTES = 24 * 1024 * 1024
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
_STRING = 7


class AwsEventReader:
    """Cuts messages into frames: `{"<event type>": payload}`, or `{"error": …}` under the event `error`.

    Those of InvokeModel become the event that is within.

    A message whose checksum is wrong ends the reading: where the next one begins, nobody knows.
    """

    def __init__(self, parse: Parse, notes: Notes) -> None:
        self._parse = parse
        self._notes = notes
        self._buffer = bytearray()
        self._number = 0
        self._dead = False

    @property
    def line(self) -> int:
        """The number of the last message: binary framing has no lines."""
        return self._number

    def feed(self, data: bytes) -> list[Frame]:
        """Take the next bytes, cut anywhere."""
        frames: list[Frame] = []
        if self._dead:
            return frames
        buffer = self._buffer
        buffer += data
        begin = 0
        while len(buffer) - begin >= PRELUDE_BYTES and not self._dead:
            size = int.from_bytes(buffer[begin : begin + 4], "big")
            if not is_prelude(buffer[begin : begin + PRELUDE_BYTES]):
                self._die(frames, "a message's head does not match its checksum")
            elif len(buffer) - begin < size:
                break
            else:
                self._message(bytes(buffer[begin : begin + size]), frames)
                begin += size
        del buffer[:begin]
        return frames

    def use(self, parse: Parse, frames: list[Frame]) -> None:
        """Read on with another dialect's `parse`; frames already cut are read anew."""
        self._parse = parse
        for frame in frames:
            frame.value = self._value(frame.data)

    def close(self) -> list[Frame]:
        """Say that no more bytes come."""
        frames: list[Frame] = []
        if self._buffer and not self._dead:
            self._die(frames, "the stream ends within a message")
        return frames

    def _message(self, message: bytes, frames: list[Frame]) -> None:
        self._number += 1
        if crc32(message[:-4]) != int.from_bytes(message[-4:], "big"):
            self._die(frames, "a message does not match its checksum")
            return
        end = PRELUDE_BYTES + int.from_bytes(message[4:8], "big")
        headers = dict(_headers(message[PRELUDE_BYTES:end]))
        payload = message[end:-4] or b"{}"
        kind = headers.get(":message-type", "event")
        event = headers.get(":event-type", "")
        if kind == "event" and event == "chunk" and (inner := _unpacked(payload)):
            data, event = inner, ""
        elif kind == "event":
            data = b'{"%b":%b}' % (event.encode(), payload)
        else:
            name = headers.get(":exception-type") or headers.get(":error-code", "")
            data = _error(name, headers.get(":error-message", ""), payload)
            event = "error"
        frames.append(Frame("json", data, self._value(data), event, self._number))

    def _value(self, data: bytes | bytearray | memoryview) -> Any:
        try:
            return self._parse(data)
        except UNREADABLE:
            return None

    def _die(self, frames: list[Frame], why: str) -> None:
        self._dead = True
        self._buffer.clear()
        self._notes.add("malformed", self._number, why)
        frames.append(Frame("malformed", line=self._number))


def is_prelude(head: bytes | bytearray) -> bool:
    """Say whether twelve bytes begin a message: lengths that fit, and their checksum."""
    size, headers = int.from_bytes(head[:4], "big"), int.from_bytes(head[4:8], "big")
    fits = _LEAST + headers <= size <= MAX_MESSAGE_BYTES
    return fits and crc32(head[:8]) == int.from_bytes(head[8:12], "big")


def _headers(data: bytes) -> Iterator[tuple[str, str]]:
    """Read the headers that are strings; what is cut short ends them."""
    at = 0
    while at + 2 < len(data):
        name_end = at + 1 + data[at]
        name, kind = data[at + 1 : name_end].decode("utf-8", "replace"), data[name_end : name_end + 1]
        at = name_end + 1
        if not kind:
            return
        if kind[0] in _SIZES:
            at += _SIZES[kind[0]]
            continue
        size = int.from_bytes(data[at : at + 2], "big")
        at += 2
        if kind[0] == _STRING:
            yield name, data[at : at + size].decode("utf-8", "replace")
        at += size


class _Chunk(Struct):
    bytes: bytes


def _unpacked(payload: bytes) -> bytes:
    """Give the event that stands in Base64 within one of InvokeModel, in its model's own language; or nothing."""
    try:
        return msgspec.json.decode(payload, type=_Chunk).bytes
    except UNREADABLE:
        return b""


def _error(name: str, message: str, payload: bytes) -> bytes:
    """Write an exception as an error object with its type."""
    try:
        said = msgspec.json.decode(payload, type=dict[str, Any])
    except UNREADABLE:
        said = {}
    return msgspec.json.encode({"error": {"message": message or name, **said, "type": name}})
