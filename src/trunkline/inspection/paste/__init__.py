"""Captures as people paste them: what is around the upstream's bytes is taken off, and every place can be led back.

A plain capture passes untouched. Nothing is repaired here: that is the reader's work, and `inspect` wants to see it.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from trunkline.inspection import recording
from trunkline.inspection.paste import http, quoted, text
from trunkline.inspection.paste.http import Head
from trunkline.inspection.paste.spans import Unwrapped
from trunkline.wire.opening import lead, opening

_MOST_LAYERS = 8

_OUTER: dict[str, Callable[[bytes], Unwrapped | None]] = {
    "gzip": text.packed,
    "UTF-16": text.utf16,
    "terminal colours": text.colours,
    "Markdown fence": text.fences,
    "quoted lines": text.quoted_lines,
    "log prefixes": text.log_prefixes,
    "JSON log records": quoted.json_lines,
    "string literals": quoted.literals,
    "written-out line ends": quoted.bare_escapes,
    "a command": http.command,
}
"""What may be around what, tried in this order, again and again."""

_INNER: dict[str, Callable[[bytes, Head], Unwrapped | None]] = {
    "HAR": quoted.har,
    "curl -v": http.curl,
    "HTTP heads": http.dump,
}
"""What stands next to the body; tried before the others, for their bodies are not looked into."""


class Capture(Struct):
    """A capture: the upstream's own bytes, and what was around them."""

    data: bytes
    """The bytes as the upstream sent them, as far as the paste has kept them."""
    wrappings: list[str] = []
    """The names of what was taken off, outermost first."""
    head: Head | None = None
    reads: Sequence[tuple[float | None, int]] = ()
    """Where the reads, or the chunks, of the transfer ended in `data`, and when (seconds), where that is known."""
    broken: bool = False
    """The connection is known to have broken at the end."""
    layers: list[Unwrapped] = []

    def origin(self, offset: int) -> int:
        """Lead a place in `data` back to the file that was given."""
        for layer in reversed(self.layers):
            offset = layer.origin(offset)
        return offset


def unwrap(data: bytes) -> Capture:
    """Take off whatever is around a capture."""
    capture = Capture(data)
    for _ in range(_MOST_LAYERS):
        if _recorded(capture) or _next_to_body(capture) or not _around(capture):
            break
    return capture


def _around(capture: Capture) -> bool:
    if opening(capture.data[lead(capture.data) :]) in ("texts", "codes"):
        return False  # nothing is around it, and its own lines may look like anything
    for name, take_off in _OUTER.items():
        inside = take_off(capture.data)
        if inside is not None:
            _add(capture, name, inside)
            return True
    return False


def _next_to_body(capture: Capture) -> bool:
    """Take off the heads; then, or without any, the sizes of chunks. True: this is the body."""
    head = Head()
    found = False
    for name, take_off in _INNER.items():
        inside = take_off(capture.data, head)
        if inside is not None:
            _add(capture, name, inside)
            capture.head = head
            found = True
            break
    ends: list[int] = []
    told = any(name == "transfer-encoding" and "chunked" in value.lower() for name, value in head.headers)
    inside = http.chunked(capture.data, told=told, reads=ends)
    if inside is not None:
        _add(capture, "chunk sizes", inside)
        capture.reads = [(None, end) for end in ends]
    return found or inside is not None


def _recorded(capture: Capture) -> bool:
    recorded = recording.parse(capture.data)
    if recorded is None:
        return False
    inside = Unwrapped(capture.data)
    ends: list[tuple[float | None, int]] = []
    for read in recorded.reads:
        inside.keep(read.start, read.end)
        ends.append((read.at_s, inside.size))
    _add(capture, "recording", inside)
    capture.head = Head(recorded.status, recorded.headers)
    capture.reads = ends
    capture.broken = recorded.broken
    return True


def _add(capture: Capture, name: str, inside: Unwrapped) -> None:
    capture.wrappings.append(name)
    capture.layers.append(inside)
    capture.data = inside.data
