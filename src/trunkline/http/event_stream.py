"""The streaming response: when its status goes out, keep-alives, back-pressure, the last event."""

import asyncio
from collections.abc import Iterator
from typing import Protocol

from trunkline.calls.chat import ChatCall
from trunkline.core.dialect import Said
from trunkline.core.errors import GatewayError
from trunkline.core.events import Ended, Event, Failed, TextDelta
from trunkline.core.money import EndReason
from trunkline.http.error_response import respond_error
from trunkline.http.exchange import Exchange, Headers
from trunkline.ingress.openai_chat import KEEPALIVE

STREAM_HEADERS = (
    ("content-type", "text/event-stream; charset=utf-8"),
    ("cache-control", "no-cache"),
    ("x-accel-buffering", "no"),
)
TURN_BYTES = 256 * 1024
"""About so much is written in one turn of the loop: a picture that its client reads fast must not hold up others."""
_NONE: Iterator[bytes] = iter(())
SHUTDOWN = Failed("server_shutdown", "The gateway is going down; ask again.", "server_error", 503)


class Encoder(Protocol):
    """Writes events as a client reads them."""

    def encode(self, events: list[Event]) -> Iterator[bytes]:
        """Write some events, in pieces."""

    def text(self, text: str) -> bytes | None:
        """Write a piece of the first choice's text at once; None: it needs `encode`."""


class EventStream:
    """Writes one call's events to its client. Nothing here waits for two things at once but by timer callbacks."""

    def __init__(self, exchange: Exchange, call: ChatCall, encoder: Encoder, times: "Times") -> None:
        self._exchange = exchange
        self._call = call
        self._encoder = encoder
        self._times = times
        self._loop = asyncio.get_running_loop()
        self._last_write = self._loop.time()
        self._start_at = exchange.asked_at + times.grace_s  # it may have waited for money
        due = min(self._start_at, self._last_write + times.keepalive_s)
        self._timer = self._loop.call_at(due, self._tick)
        self._headers: Headers = ()
        self._closed = False
        self._pieces = _NONE
        self._over = False
        """The last event has been taken, though perhaps not written."""
        self._last = b""

    async def run(self, headers: Headers) -> EndReason:
        """Stream to the end. Gives how it ended for the client; `failed` also when the last event was an error."""
        self._headers = headers
        try:
            return await self._stream()
        except asyncio.CancelledError:
            if self._exchange.stopped is not None:
                self._fail(self._exchange.stopped)
                return "cancelled"
            if not self._exchange.interrupted:
                return "cancelled"
            self._fail(SHUTDOWN)
            return "shutdown"
        finally:
            self._closed = True
            self._timer.cancel()

    async def _stream(self) -> EndReason:
        try:
            events = await self._call.begin()
        except GatewayError as error:
            if self._exchange.responded:
                self._fail(_as_event(error))
            else:
                respond_error(self._exchange, error, self._headers)
            return "failed"
        self._take(events)
        del events  # the stream may be long, and silent
        if not self._exchange.responded:
            self._start(b"")
        while await self._written():
            if self._over:
                self._exchange.finish(self._last)
                return "completed"
            self._over = await self._call.pipe(self._take) or self._over
        return "cancelled"

    def _take(self, said: Said) -> bool:
        """Write what is said; False: the client is to read first, or it was the last."""
        if isinstance(said, str):
            data = self._encoder.text(said)
            if data is not None:  # nearly all of a stream that comes slowly
                self._last_write = self._loop.time()
                return self._exchange.write(data)
            said = [TextDelta(said)]
        last = type(said[-1])
        self._over = last is Ended or last is Failed
        self._pieces = self._encoder.encode(said)
        return self._write() and not self._over

    def _write(self) -> bool:
        """Write what is left of the events, as far as the client takes it and others need not wait; True: all of it.

        The very last piece is kept, to be written with the end of the answer: each write wakes the client.
        """
        exchange, pieces, size = self._exchange, self._pieces, 0
        for data in pieces:
            if self._over:
                data, self._last = self._last, data  # noqa: PLW2901 - one behind
                if not data:
                    continue
            taken = exchange.write(data) if exchange.responded else self._start(data)
            self._last_write = self._loop.time()
            size += len(data)
            if not taken or size >= TURN_BYTES:
                return False
        self._pieces = _NONE
        return True

    async def _written(self) -> bool:
        """Wait until all is written; False: the client left, or was let go."""
        while (waiting := self._exchange.writable()) is not None or not self._write():
            if waiting is None:
                await asyncio.sleep(0)
            elif not await self._drained(waiting):
                return False
        return True

    def _start(self, first: bytes) -> bool:
        target = self._call.target
        own = target.target if target else None
        told = (("x-trunkline-provider", own.provider), ("x-trunkline-model", own.model)) if own else ()
        return self._exchange.start((*STREAM_HEADERS, *self._headers, *told, *self._tried()), first=first)

    def _tried(self) -> Iterator[tuple[str, str]]:
        if self._call.attempts:
            yield "x-trunkline-attempts", str(self._call.attempts)
        if self._call.fallback_from:
            yield "x-trunkline-fallback-from", self._call.fallback_from
        if self._call.cache:
            yield "x-trunkline-cache", self._call.cache

    async def _drained(self, waiting: asyncio.Future[None]) -> bool:
        """Wait until the client reads on; a client that reads nothing for too long is let go."""
        try:
            async with asyncio.timeout(self._times.client_stall_s):
                await waiting
        except TimeoutError:
            self._exchange.cut()
            return False
        return not self._exchange.gone

    def _tick(self) -> None:
        """Begin the answer when its grace period is over; keep a silent stream alive."""
        if self._closed or self._exchange.gone:
            return
        now = self._loop.time()
        if not self._exchange.responded and now >= self._start_at:
            self._start(KEEPALIVE)
            self._last_write = now
        elif self._exchange.streaming and now - self._last_write >= self._times.keepalive_s:
            if self._exchange.writable() is None:
                self._exchange.write(KEEPALIVE)
            self._last_write = now
        due = self._last_write + self._times.keepalive_s
        if not self._exchange.responded:
            due = min(due, self._start_at)
        self._timer = self._loop.call_later(max(0.01, due - now), self._tick)

    def _fail(self, failed: Failed) -> None:
        """End the stream with an error: as its last event, or as a status if nothing was sent."""
        exchange = self._exchange
        if exchange.gone:
            return
        if not exchange.responded:
            error = GatewayError(failed.code, failed.message, status=failed.status, type=failed.type)
            respond_error(exchange, error, self._headers)
            return
        for data in self._encoder.encode([failed]):
            exchange.write(data)
        exchange.finish()


class Times:
    """The time limits towards a client, in seconds."""

    def __init__(self, *, grace_s: float, keepalive_s: float, client_stall_s: float) -> None:
        self.grace_s = grace_s
        self.keepalive_s = keepalive_s
        self.client_stall_s = client_stall_s


def _as_event(error: GatewayError) -> Failed:
    return Failed(error.code, error.message, error.type, error.status, error.param)
