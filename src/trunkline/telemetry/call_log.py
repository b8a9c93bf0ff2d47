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


_ENCODER = msgspec.json.Encoder()


class CallLog:
    """Collects lines and hands them to a thread of its own: a reader that stands still holds up no call."""

    def __init__(self, fd: int, room_bytes: int = ROOM_BYTES) -> None:
        self._fd = fd
        self._room_bytes = room_bytes
        self._lines: list[Line] = []
        self._blocks: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._waiting_bytes = 0
        self._dropped = 0

    def settled(self, settlement: Settlement, row: LedgerRow) -> None:
        """Write the line of a call that has ended."""
        prompt = None
        if settlement.caller.key.record:
            messages = settlement.request.fields.get("messages")
            if messages is not None and memoryview(messages).nbytes <= LONGEST_PROMPT_BYTES:
                prompt = Raw(msgspec.json.encode(msgspec.json.decode(messages)))  # on one line
        traceparent = settlement.caller.traceparent
        self._lines.append(_line(row, trace_of(traceparent) if traceparent else "", prompt))

    def refused(self, refusal: Refusal) -> None:
        """Write the line of a call that was not let in."""
        self._lines.append(
            Line(
                at=_instant(time.time_ns() // 1_000_000),
                call=refusal.call,
                end="not_admitted",
                ms=0,
                status=refusal.status,
                error=refusal.error,
                key=refusal.key,
                route=refusal.route,
            )
        )

    def job_ended(self, row: LedgerRow, traceparent: str) -> None:
        """Write the line of a job that has ended."""
        self._lines.append(_line(row, trace_of(traceparent)))

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
        block, lines = _ENCODER.encode_lines(self._lines), len(self._lines)
        self._lines = []
        if self._waiting_bytes + len(block) > self._room_bytes:
            self._dropped += lines
            return
        self._waiting_bytes += len(block)
        self._blocks.put(block)

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


def _line(row: LedgerRow, trace: str, prompt: Raw | None = None) -> Line:
    """Say of a call or a job what its row says."""
    cost, repairs = row.cost_microusd, row.repairs
    return Line(  # in the order of its members: 29 names cost several times the line
        _instant(row.ended_ms),
        row.request_id,
        row.end_reason,
        row.ended_ms - row.started_ms,
        row.status,
        row.error_code[:LONGEST_NAME],
        row.job_id,
        row.key_id,
        row.group_id,
        row.route,
        row.model[:LONGEST_NAME],
        f"{row.provider}:{row.upstream_model[:LONGEST_NAME]}" if row.provider else "",
        row.credential_id,
        row.streamed,
        row.attempts,
        row.first_event_ms,
        row.prompt_tokens,
        row.completion_tokens,
        row.cached_tokens,
        row.reasoning_tokens,
        row.images,
        row.video_ms,
        None if cost is None else usd(cost),
        cost is None,
        row.estimated,
        row.cache_hit,
        trace,
        None if repairs == "{}" else Raw(repairs.encode()),
        prompt,
    )


def _instant(ms: int) -> str:
    return f"{_second(ms // 1000)}.{ms % 1000:03d}Z"


@lru_cache(maxsize=16)
def _second(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
