"""Recordings of upstream answers: one text file a call, with the bytes as they were read and when.

The file begins with lines for people, `name: value`, up to an empty line. Then each read: `@SECONDS BYTES` on a line,
the bytes, a newline. The length counts; where it does not fit any more (an editor changed line ends), the next such
line is looked for.
"""

import re
from collections.abc import Iterable, Mapping

from msgspec import Struct

MAGIC = b"trunkline recording 1\n"
_READ = re.compile(rb"@(\d+(?:\.\d+)?) (\d+)\r?\n")
_NEXT_READ = re.compile(rb"(?:\r?\n|\A)(?=@\d+(?:\.\d+)? \d+\r?\n)")


class Read(Struct, frozen=True):
    """One read from the upstream: when, in seconds from the request, and where its bytes are in the file."""

    at_s: float
    start: int
    end: int


class Recording(Struct, frozen=True):
    """A recording that was read back."""

    facts: Mapping[str, str]
    """`target`, `model`, `request`, `status`, `ended`, …; response headers are named `header-NAME`."""
    reads: list[Read]

    @property
    def status(self) -> int:
        """The HTTP status."""
        status = self.facts.get("status", "")
        return int(status) if status.isdecimal() else 200

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The response's headers that were kept."""
        return [(name[7:], value) for name, value in self.facts.items() if name.startswith("header-")]

    @property
    def broken(self) -> bool:
        """Whether the connection broke, or the recorder stopped, before the answer's end."""
        return self.facts.get("ended") == "broken"


def encode(facts: Mapping[str, str], reads: Iterable[tuple[float, bytes]]) -> Iterable[bytes]:
    """Write a recording, piece by piece."""
    yield MAGIC
    for name, value in facts.items():
        yield f"{name}: {' '.join(value.split())}\n".encode()
    yield b"\n"
    for at_s, data in reads:
        yield b"@%.4f %d\n" % (at_s, len(data))
        yield data
        yield b"\n"


def parse(data: bytes) -> Recording | None:
    """Read a recording; None where the bytes are none."""
    if not data.replace(b"\r\n", b"\n", 1).startswith(MAGIC):
        return None
    facts: dict[str, str] = {}
    position = data.index(b"\n") + 1
    while position < len(data):
        end = data.find(b"\n", position)
        end = len(data) if end < 0 else end
        line = data[position:end].strip().decode("utf-8", "replace")
        position = end + 1
        if not line:
            break
        name, _, value = line.partition(":")
        facts[name.strip().lower()] = value.strip()
    return Recording(facts, list(_reads(data, position)))


def _reads(data: bytes, position: int) -> Iterable[Read]:
    while (head := _READ.match(data, position)) is not None:
        start = head.end()
        end = start + int(head.group(2))
        after = end + 2 if data[end : end + 2] == b"\r\n" else end + 1
        if after < len(data) and _READ.match(data, after) is None:
            found = _NEXT_READ.search(data, start)
            end = found.start() if found else len(data)
            after = found.end() if found else len(data)
        yield Read(float(head.group(1)), start, min(end, len(data)))
        position = after
