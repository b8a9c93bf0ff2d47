"""One line of JSON a call and a job, on stderr: what was asked of whom, how it ended, what it cost; never a secret."""

import asyncio
import os
import queue
import threading
import time
from collections.abc import Iterator
from functools import lru_cache
from select import PIPE_BUF

import msgspec
from msgspec import Raw, Struct

from trunkline.calls.admission import Refusal
from trunkline.calls.meter import Settlement
from trunkline.core.money import LedgerRow, usd

EVERY_S = 0.1
ROOM_BYTES = 8 * 1024 * 1024
"""What may wait for a reader of the log that does not read; what comes beyond it is counted, and dropped."""
LONGEST_NAME = 200
LONGEST_PROMPT_BYTES = 64 * 1024
END_S = 2.0


class Line(Struct, omit_defaults=True):
    """The members of a line; those that are empty are left out."""

    at: str
    call: str
    end: str
    """How it ended: `completed`, `failed`, `cancelled`, `timeout`, `refused`, `shutdown`, `crashed`, `not_admitted`."""
    ms: int
    status: int = 0
    error: str = ""
    job: str = ""
    key: str = ""
    group: str = ""
    route: str = ""
    model: str = ""
    target: str = ""
    credential: str = ""
    streamed: bool = False
    attempts: int = 0
    first_event_ms: int | None = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    images: int = 0
    video_ms: int = 0
    cost_usd: float | None = None
    unpriced: bool = False
    """Nobody knows what it cost."""
    estimated: bool = False
    cache_hit: bool = False
    trace: str = ""
    """Of the client's `traceparent`."""
    repairs: Raw | None = None
    prompt: Raw | None = None
    """The messages, of keys that are marked with `record` alone."""


class CallLog:
    """Collects lines and hands them to a thread of its own: a reader that stands still holds up no call."""

    def __init__(self, fd: int, room_bytes: int = ROOM_BYTES) -> None:
        self._fd = fd
        self._room_bytes = room_bytes
        self._lines: list[bytes] = []
        self._blocks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._dropped = 0

    def settled(self, settlement: Settlement, row: LedgerRow) -> None:
        """Write the line of a call that has ended."""
        prompt = None
        if settlement.caller.key.record:
            messages = settlement.request.fields.get("messages")
            if messages is not None and len(bytes(messages)) <= LONGEST_PROMPT_BYTES:
                prompt = Raw(msgspec.json.encode(msgspec.json.decode(messages)))  # on one line
        self._add(row, prompt, trace_of(settlement.caller.traceparent))

    def refused(self, refusal: Refusal) -> None:
        """Write the line of a call that was not let in."""
        line = Line(
            at=_instant(time.time_ns() // 1_000_000),
            call=refusal.call,
            end="not_admitted",
            ms=0,
            status=refusal.status,
            error=refusal.error,
            key=refusal.key,
            route=refusal.route,
        )
        self._lines.append(msgspec.json.encode(line) + b"\n")

    def job_ended(self, row: LedgerRow, traceparent: str) -> None:
        """Write the line of a job that has ended."""
        self._add(row, None, trace_of(traceparent))

    def lost(self) -> int:
        """Give how many lines nobody read."""
        return self._dropped

    async def run(self) -> None:
        """Hand over what is collected, a few times a second, until cancelled; then what is left, for a moment."""
        thread = threading.Thread(target=self._write, name="call log", daemon=True)
        thread.start()
        try:
            while True:
                await asyncio.sleep(EVERY_S)
                self._flush()
        finally:
            self._flush()
            self._blocks.put(None)
            thread.join(END_S)

    def _flush(self) -> None:
        if not self._lines:
            return
        block, lines = b"".join(self._lines), len(self._lines)
        self._lines = []
        if self._waiting_bytes + len(block) > self._room_bytes:
            self._dropped += lines
            return
        self._waiting_bytes += len(block)
        self._blocks.put(block)

    def _add(self, row: LedgerRow, prompt: Raw | None, trace: str) -> None:
        self._lines.append(
            msgspec.json.encode(
                Line(
                    at=_instant(row.ended_ms),
                    call=row.request_id,
                    end=row.end_reason,
                    ms=row.ended_ms - row.started_ms,
                    status=row.status,
                    error=row.error_code[:LONGEST_NAME],
                    job=row.job_id,
                    key=row.key_id,
                    group=row.group_id,
                    route=row.route,
                    model=row.model[:LONGEST_NAME],
                    target=f"{row.provider}:{row.upstream_model[:LONGEST_NAME]}" if row.provider else "",
                    credential=row.credential_id,
                    streamed=row.streamed,
                    attempts=row.attempts,
                    first_event_ms=row.first_event_ms,
                    prompt_tokens=row.prompt_tokens,
                    completion_tokens=row.completion_tokens,
                    cached_tokens=row.cached_tokens,
                    reasoning_tokens=row.reasoning_tokens,
                    images=row.images,
                    video_ms=row.video_ms,
                    cost_usd=None if row.cost_microusd is None else usd(row.cost_microusd),
                    unpriced=row.cost_microusd is None,
                    estimated=row.estimated,
                    cache_hit=row.cache_hit,
                    trace=trace,
                    repairs=Raw(row.repairs.encode()) if row.repairs != "{}" else None,
                    prompt=prompt,
                )
            )
            + b"\n"
        )

    def _write(self) -> None:
        """Write blocks until told to end; the thread's work."""
        while (block := self._blocks.get()) is not None:
            for piece in pieces(block):
                self._put(piece)
            self._waiting_bytes -= len(block)

    def _put(self, rest: bytes) -> None:
        while rest:
            try:
                rest = rest[os.write(self._fd, rest) :]
            except BlockingIOError:
                time.sleep(EVERY_S)
            except OSError:  # closed: nobody will read any more
                return


def pieces(block: bytes) -> Iterator[bytes]:
    """Cut a block into whole lines that together are written at once: workers that share a pipe mix no lines."""
    start = 0
    while start < len(block):
        end = block.rfind(b"\n", start, start + PIPE_BUF) + 1
        if end <= start:  # a line that is longer
            end = block.index(b"\n", start) + 1
        yield block[start:end]
        start = end


def trace_of(traceparent: str) -> str:
    """Give the trace's id of a `traceparent` header (W3C Trace Context, 3.2), or nothing."""
    parts = traceparent.split("-")
    return parts[1] if len(parts) >= 4 and len(parts[1]) == 32 and parts[1].isalnum() else ""


def _instant(ms: int) -> str:
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}.{rest:03d}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
