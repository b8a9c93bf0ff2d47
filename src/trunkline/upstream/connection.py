"""One HTTP/1.1 connection to an upstream, which carries one exchange after the other (RFC 9112)."""

import asyncio
from collections.abc import Callable
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from trunkline.calls.task import Wake
from trunkline.core.ports import HttpError, HttpFailure
from trunkline.upstream.response import Response
from trunkline.wire.header_names import LOWER

LARGE_BYTES = 64 * 1024
"""A read of this size stops reading until it is taken; so does any read that nobody waits for. One takes 256 KiB."""
BARREN_BYTES = 64 * 1024
"""The most that may come without a byte of body: heads, interim answers, chunk extensions, trailers."""
NOTHING = memoryview(b"")
WRITE_BYTES = 256 * 1024
"""A longer body goes out in slices of this size, as fast as the upstream takes them."""


class Owner(Protocol):
    """Who keeps connections."""

    def made(self, connection: "Connection") -> None:
        """Take note of a new connection."""

    def free(self, connection: "Connection", *, again: bool) -> None:
        """Take a connection whose exchange has ended well; `again`: it can carry another."""

    def gone(self, connection: "Connection") -> None:
        """Forget a connection that has ended."""


class Connection(asyncio.Protocol):
    """The protocol of one connection; carries one exchange at a time."""

    def __init__(self, owner: "Owner") -> None:
        self.idle_since = 0
        """When the owner began to keep it, by its own clock; 0 while it works."""
        self.remembered = False
        """Whether its TLS session is known to the owner."""
        self.heard = False
        """Whether a byte of an answer has come."""
        self.loop = asyncio.get_running_loop()
        self._owner = owner
        self.transport: asyncio.Transport
        self._response: Response | None = None
        self._waiter: Wake | None = None
        self._take: Callable[[bytes], bool] | None = None
        self._raw: dict[bytes, bytes] = {}
        self._pieces: list[bytes] = []
        self._rest = NOTHING
        self._barren = 0
        self._reading = self._writable = True
        self._bodiless = self._interim = self._to_eof = self._complete = False
        self._keep: list[bool] = []
        """Whether it can carry another exchange: nothing has come behind the end of the one before."""
        # The parser calls these without a Python frame in between.
        self.on_message_begin = self._keep.clear
        self.on_header = self._raw.__setitem__
        self.on_body = self._pieces.append
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(  # what real servers send, harmless where nothing is forwarded
            lenient_headers=True,  # folded lines, control characters
            lenient_chunked_length=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )

    # What the client asks.

    def send(self, head: bytes, body: bytes, *, bodiless: bool) -> Response:
        """Send a request and give its answer, whose head has not come; `event` says when something has."""
        self._response = response = Response(self, self._pieces)
        self.heard = self._complete = False
        self._bodiless = bodiless
        self._barren = 0
        if len(body) <= WRITE_BYTES:
            self.transport.write(head + body)
        else:
            self._rest = memoryview(body)
            self.transport.write(head)
            self._push()
        return response

    def event(self) -> Wake:
        """Give what is done when something has happened; for one to wait for."""
        waiter = self._waiter = Wake()
        return waiter

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand over small reads as they come, until one is large or the last; False: `take` said so."""
        self._take = take
        try:
            await self.event()
            return self._take is not None
        finally:
            self._take = None

    def drained(self) -> None:
        """Read on, as all that has come is taken; others have their turn before, where libuv would read 32 times."""
        if not self._reading:
            self._reading = True
            self.loop.call_soon(self._read_on)

    def fail(self, kind: HttpFailure, message: str) -> None:
        """Close at once; who reads gets what has come, then the error."""
        self._finish(HttpError(kind, message, sent=True))
        self.transport.abort()

    # What the transport tells.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self._owner.made(self)

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        if self._response is None:  # an idle connection has nothing to say
            self.transport.abort()
            return
        self.heard = True
        pieces, take = self._pieces, self._take
        before = len(pieces)  # none where someone takes them as they come
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as wrong:
            if not self._complete:
                cause = wrong.__context__ if isinstance(wrong.__context__, HttpError) else None
                self._finish(cause or HttpError("protocol", f"the answer is not HTTP/1.1: {wrong}", sent=True))
                return
        if self._complete:
            self._finish(None)
        elif len(pieces) == before:
            self._bear(len(data))
        elif take is None or len(data) >= LARGE_BYTES:
            self._hold(len(data))
        else:
            self._barren = 0
            piece = pieces.pop()
            if pieces:
                piece = b"".join(pieces) + piece
                pieces.clear()
            try:
                if take(piece):
                    return
            except Exception as error:  # noqa: BLE001 - it is raised where `pipe` is awaited
                self._take = None
                self._wake(error)
            else:
                self._take = None
                self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange as the way the connection went says."""
        self._owner.gone(self)
        del self._parser  # it holds this connection
        if self._response is None:
            return
        if self._to_eof and self._response.status and exc is None:
            self._finish(None)
        elif exc is not None or not self.heard:
            self.fail("reset", f"the upstream closed the connection{f': {exc}' if exc else ' without an answer'}")
        else:
            self.fail("incomplete", "the upstream closed the connection in the middle of its answer")

    def pause_writing(self) -> None:
        """Stop sending the body: the upstream takes no more for now."""
        self._writable = False

    def resume_writing(self) -> None:
        """Go on sending the body."""
        self._writable = True
        self._push()

    # What the parser tells.

    def on_headers_complete(self) -> None:
        """Take the head, unless it is an interim one (RFC 9110, section 15.2)."""
        if self._complete:  # before its body mixes with that of the answer before
            raise HttpError("protocol", "an answer came that nobody asked for", sent=True)
        raw, status = self._raw, self._parser.get_status_code()
        head = dict(zip(map(LOWER.__getitem__, raw), raw.values(), strict=True))
        raw.clear()
        if status < 200:
            self._interim = True
            return
        coding = head.get(b"transfer-encoding")
        if coding:
            self._to_eof = not coding.rstrip().lower().endswith(b"chunked")
        else:
            self._to_eof = b"content-length" not in head
        cast("Response", self._response).begin(status, head)
        if self._bodiless:
            self._complete = True  # and not to be kept: the parser waits for the body that HEAD leaves out

    def on_message_complete(self) -> None:
        """Take note of the end; only here does the parser know whether the connection may be kept."""
        if self._interim:
            self._interim = False
        elif not self._complete:
            self._complete = True
            if self._parser.should_keep_alive():
                self._keep.append(True)

    # Inside.

    def _bear(self, size: int) -> None:
        """Take note of bytes without a piece of body."""
        self._barren += size
        if self._barren > BARREN_BYTES:
            self.fail("protocol", f"the upstream sent more than {BARREN_BYTES} bytes without a body")
        else:
            self._wake()

    def _hold(self, size: int) -> None:
        """Keep what has come until it is read."""
        self._barren = 0
        if (self._waiter is None or size >= LARGE_BYTES) and self._reading:
            self._reading = False
            self.transport.pause_reading()
        self._wake()  # last: who waits runs on at once

    def _read_on(self) -> None:
        if not self.transport.is_closing():
            self.transport.resume_reading()

    def _finish(self, error: HttpError | None) -> None:
        response = self._response
        if response is None:
            return
        self._response = None
        self._raw.clear()  # trailers
        pieces, transport = self._pieces, self.transport
        response.pieces = [] if self._bodiless else pieces.copy()
        response.connection = None
        pieces.clear()
        if error is None:
            kept = self._keep and self._rest is NOTHING and not transport.is_closing()
            if kept and not transport.get_write_buffer_size():
                if not self._reading:
                    self.drained()
                self._owner.free(self, again=True)
                self._wake()
                return
            self._owner.free(self, again=False)
        else:
            response.error = error
        self._rest = NOTHING
        transport.abort()
        # Who waits for an error may begin anew: whoever closes this is to be done first.
        self._wake() if error is None else self.loop.call_soon(self._wake)

    def _wake(self, error: Exception | None = None) -> None:
        """Let whoever waits run on."""
        waiter, self._waiter = self._waiter, None
        if waiter is not None:
            waiter.wake(error)

    def _push(self) -> None:
        while len(self._rest) and self._writable and not self.transport.is_closing():
            piece, rest = self._rest[:WRITE_BYTES], self._rest[WRITE_BYTES:]
            self._rest = rest or NOTHING  # even an empty view holds all of the body
            self.transport.write(piece)
