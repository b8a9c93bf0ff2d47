"""Reading a capture, as people paste it, through the pure line."""

import sys
from pathlib import Path

import typer

from trunkline.core.events import Ended, Event, Usage, UsageReported
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.pipeline import ChatLine

MOST_BYTES = 256 * 1024 * 1024


def read_capture(name: str) -> bytes:
    """Read a file, or standard input for `-`."""
    try:
        data = sys.stdin.buffer.read(MOST_BYTES + 1) if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise typer.BadParameter(f"{name} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise typer.BadParameter(f"{name} is larger than {MOST_BYTES} bytes")
    return data


def run_line(data: bytes, notes: Notes) -> tuple[list[Event], ChatLine]:
    """Run a capture's bytes through the line."""
    line = ChatLine(CHAT_DIALECTS["openai_chat"], notes, n=None, salt="capture")
    events = line.feed(data)
    events += line.close(whole=data.lstrip()[:1] == b"{" and data.count(b'"chat.completion"') == 1)
    return InlineMedia().feed(events), line


def with_usage(events: list[Event]) -> list[Event]:
    """Put zeros where a capture has no usage: only a gateway counts."""
    if events and isinstance(events[-1], Ended) and not any(isinstance(event, UsageReported) for event in events):
        return [*events[:-1], UsageReported(Usage()), events[-1]]
    return events
