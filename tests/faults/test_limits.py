"""Streams of absurd sizes: bounded memory, and time that grows with the bytes and no faster."""

import subprocess
import sys
from pathlib import Path

import pytest
from memory_of_event import AROUND

from trunkline.core.events import Ended, Event, Failed, TextDelta, ToolCallStarted
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine

pytestmark = pytest.mark.faults
MIB = 1024 * 1024
EVENT_BYTES = 64 * MIB
GOOD = b'data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'


@pytest.mark.parametrize("shape", AROUND)
def test_an_event_of_64_mib_takes_twice_its_size(shape: str) -> None:
    script = Path(__file__).parent.parent / "support" / "memory_of_event.py"
    done = subprocess.run([sys.executable, script, shape, str(EVENT_BYTES)], check=True, capture_output=True, text=True)
    assert int(done.stdout) <= 2.5 * EVENT_BYTES  # the half is the interpreter's own, and slack


def chunk(delta: bytes, more: bytes = b"") -> bytes:
    return b'data: {"choices":[{"index":0,"delta":{%b}}]%b}\n\n' % (delta, more)


STREAMS = {
    "empty data lines": b"data:\n\n" * 1_000_000,
    "comments": b": x\n\n" * 1_000_000,
    "prefixes": b"data:" * 1_000_000 + b"\n\n",
    "open arrays": b"data: " + b"[" * 2_000_000 + b"\n\n",
    "open objects": b"data: " + b'{"a":' * 400_000 + b"\n\n",
    "closing brackets": b"data: {}" + b"]" * 2_000_000 + b"\n\n",
    "a long number": chunk(b'"content":""', b',"x":' + b"1" * MIB),
    "a long id": chunk(b'"content":""', b',"id":' + b"1" * (8 * MIB)),
    "NULs": b"\0" * (8 * MIB) + b"\n",
    "lines of NULs": b"data: \0\0\0\n" * 500_000,
    "invalid UTF-8": b"\xff" * (4 * MIB) + b"\n",
    "invalid UTF-8 in text": chunk(b'"content":"' + b"\xff" * (4 * MIB) + b'"'),
    "half surrogates": chunk(b'"content":"' + b"\\ud800" * 500_000 + b'"'),
    "cut strings": b'data: {"a":"\n' * 200_000,
    "glued values": b"{}" * 200_000 + b"\n",
    "commas": b"data: " + b"," * 4_000_000 + b"\n\n",
    "halves of an end mark": b"data: [DO\n" * 200_000,
    "a page": b"<p>" * 2_000_000 + b"\n",
    "many calls": b"".join(
        chunk(b'"tool_calls":[{"id":"a%d","function":{"name":"f","arguments":"{}"}}]' % number)
        for number in range(30_000)
    ),
    "many pictures": b"".join(chunk(b'"images":["https://x.example/%d.png"]' % number) for number in range(10_000)),
    "text that grows": b"".join(chunk(b'"content":"%b"' % (b"Hello " * number)) for number in range(1, 3_000)),
}


def read(data: bytes) -> list[Event]:
    line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes(), salt="s")
    events: list[Event] = []
    for at in range(0, len(data), 64 * 1024):
        events += line.feed(data[at : at + 64 * 1024])
    return events + line.close()


@pytest.mark.parametrize("name", STREAMS)
def test_what_comes_behind_is_read_all_the_same(name: str) -> None:
    events = read(STREAMS[name] + GOOD)
    assert isinstance(events[-1], Ended)
    assert "hi" in "".join(event.text for event in events if isinstance(event, TextDelta))
    if name == "many calls":
        assert sum(isinstance(event, ToolCallStarted) for event in events) == 30_000


def test_a_line_without_end_is_given_up() -> None:
    events = read(b"data: " + b"x" * (70 * MIB) + b"\n\n" + GOOD)
    assert events[-1] == Failed("upstream_malformed", "the upstream sent an event that is too large")
