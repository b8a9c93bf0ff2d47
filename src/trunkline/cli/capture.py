"""Reading a capture's file, and what a capture leaves to be filled in."""

import sys
from pathlib import Path

import click

from trunkline.core.events import Ended, Event, Usage, UsageReported

MOST_BYTES = 256 * 1024 * 1024


def read_capture(name: str) -> bytes:
    """Read a file, or standard input for `-`."""
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise click.BadParameter(f"{name} cannot be read: {error.strerror}") from None
    if len(data) > MOST_BYTES:
        raise click.BadParameter(f"{name} is larger than {MOST_BYTES} bytes")
    return data


def with_usage(events: list[Event]) -> list[Event]:
    """Put zeros where a capture has no usage: only a gateway counts."""
    if events and isinstance(events[-1], Ended) and not any(isinstance(event, UsageReported) for event in events):
        return [*events[:-1], UsageReported(Usage()), events[-1]]
    return events
