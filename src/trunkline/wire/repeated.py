"""Reading chunks that differ from one another only in their text: what is the same is compared, not read again."""

import re
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.wire.frame import UNREADABLE
from trunkline.wire.openai_chunk import Choice, Chunk, Delta, parse_chunk

_STRING = rb'\s*("(?:[^"\\]|\\.)*")'
_CONTENT = re.compile(rb'"content":' + _STRING)
_REASONING = re.compile(rb'"reasoning_content":' + _STRING)
_PADDING = re.compile(rb',"obfuscation":' + _STRING)
_PROBE_TEXT = 'a "probe"'
_PROBE = msgspec.json.encode(_PROBE_TEXT)
_TRIES = 8
"""How often it is worth learning in vain: where ids change with every chunk, nothing is ever the same."""
_MOST_BYTES = 16 * 1024
_string = msgspec.json.Decoder(str).decode


class ReasoningText(str):
    """The reasoning of a chunk that says nothing else; a bare `str` is the text of such a chunk."""

    __slots__ = ()


class _Shape(Struct):
    """The bytes around the text of a plain chunk."""

    text: type[str]
    head: bytes = b""
    pad: bytes = b""
    """What stands between the text and a padding of random length, where there is one."""
    tail: bytes = b""
    begin: int = 0
    """Where the text begins."""
    end: int = 0
    """Where it ends, counted from the chunk's end."""
    event_head: bytes = b""
    """`head`, `tail` and so on with what makes an event of the chunk."""
    event_tail: bytes = b""
    event_begin: int = 0
    event_end: int = 0
    plain: bool = False
    """Nothing but text is between head and tail."""

    def learn(self, data: bytes, chunk: Chunk) -> bool:
        """Remember what stands around the text, if there is a string that can be another and nothing else changes."""
        for begin, end in _strings(_CONTENT if self.text is str else _REASONING, data):
            head, tail = data[:begin], data[end:]
            if self.is_text(head + _PROBE + tail, chunk):
                self.head, self.pad, self.tail = head, b"", tail
                for pad_begin, pad_end in _strings(_PADDING, tail):
                    self.pad, self.tail = tail[:pad_begin], tail[pad_end:]
                self.begin, self.end = len(self.head), -len(self.tail)
                self.event_head, self.event_tail = b"data: " + self.head, self.tail + b"\n\n"
                self.event_begin, self.event_end = len(self.event_head), -len(self.event_tail)
                self.plain = self.text is str and not self.pad
                return True
        return False

    def read(self, said: bytes) -> str:
        """Read the text, and what pads it; raises one of `UNREADABLE`."""
        if self.pad:
            said, _, padding = said.rpartition(self.pad)
            _string(padding)
        text = _string(said)
        return text if self.text is str else ReasoningText(text)

    def is_text(self, data: bytes, chunk: Chunk) -> bool:
        """Say whether the probe in place of a string is read as the text, and nothing else changes."""
        try:
            other = parse_chunk(data)
        except UNREADABLE:
            return False
        if self.text_of(other) != _PROBE_TEXT:
            return False
        other.choices = chunk.choices
        return bool(other == chunk)

    def text_of(self, chunk: Chunk) -> str:
        """Give the text of choice 0 where it is all that a chunk says, else nothing."""
        choice = chunk.choices[0] if chunk.choices else None
        delta = choice.delta if choice is not None else None
        if choice is None or delta is None or type(choice.index) is not int:
            return ""
        said = delta.content if self.text is str else delta.reasoning_content
        if type(said) is not str:
            return ""
        alone = Delta(content=said) if self.text is str else Delta(reasoning_content=said)
        alone.role = delta.role
        plain = Chunk(
            choices=[Choice(index=0, delta=alone)],
            id=chunk.id,
            created=chunk.created,
            model=chunk.model,
            object=chunk.object,
            service_tier=chunk.service_tier,
            system_fingerprint=chunk.system_fingerprint,
            citations=chunk.citations,
        )
        return said if plain == chunk else ""


class Repeated:
    """Reads chunks of one stream. Gives a `str` for a chunk that is one that came before but for its text.

    The same bytes around another JSON string make the same chunk with another text: nothing else needs to be read.
    """

    __slots__ = ("_begun", "_known", "_matched", "_tries")

    def __init__(self) -> None:
        self._known: list[_Shape] = []
        self._tries = _TRIES
        self._matched = False  # since it was last learned
        self._begun = False

    def parse(self, data: bytes | bytearray | memoryview) -> Any:
        """Give a chunk, or the text of one; raises one of `UNREADABLE`."""
        if type(data) is not bytes:
            return parse_chunk(data)
        for shape in self._known:
            if data.startswith(shape.head) and data.endswith(shape.tail):
                said = data[shape.begin : shape.end]
                try:
                    text = _string(said) if shape.plain else shape.read(said)
                except UNREADABLE:
                    continue
                self._matched = True
                return text
        chunk = parse_chunk(data)
        if self._tries and len(data) < _MOST_BYTES:
            self._learn(data, chunk)
        return chunk

    def lone(self, data: bytes) -> str | None:
        """Give the text of a read that is one event, as `parse` gives that of its chunk; None: it is another read."""
        for shape in self._known:
            if data.startswith(shape.event_head) and data.endswith(shape.event_tail):
                said = data[shape.event_begin : shape.event_end]
                try:
                    return _string(said) if shape.plain else shape.read(said)
                except UNREADABLE:
                    continue
        return None

    def _learn(self, data: bytes, chunk: Chunk) -> None:
        delta = chunk.choices[0].delta if chunk.choices else None
        if delta is None or not (delta.content or delta.reasoning_content):
            return
        if not self._begun:  # its client waits, and the others are seldom like it
            self._begun = True
            return
        kind = str if delta.content else ReasoningText
        shape = _Shape(kind)
        if shape.text_of(chunk):
            self._tries -= not self._matched
            self._matched = False
            if shape.learn(data, chunk):
                self._known = [shape, *(known for known in self._known if known.text is not kind)]


def _strings(member: re.Pattern[bytes], data: bytes) -> list[tuple[int, int]]:
    """Give where the strings of a member stand: begin and end."""
    return [found.span(1) for found in member.finditer(data)]
