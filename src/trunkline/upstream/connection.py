"""One HTTP/1.1 connection to an upstream, and the answers it carries one after the other (RFC 9112)."""

import asyncio
from collections.abc import Callable, Coroutine
from operator import methodcaller
from typing import Protocol, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from trunkline.calls.task import Wake
from trunkline.core.ports import HttpError, HttpFailure
from trunkline.upstream.coding import GZIP_MAGIC, Inflate

LARGE_BYTES = 64 * 1024
"""A read of this size stops reading until it is taken; so does any read that nobody waits for. One takes 256 KiB."""
BARREN_BYTES = 64 * 1024
"""The most that may come without a byte of body: heads, interim answers, chunk extensions, trailers."""
NOTHING = memoryview(b"")
_text = methodcaller("decode", "latin-1")
WRITE_BYTES = 256 * 1024
"""A longer body goes out in slices of this size, as fast as the upstream takes them."""


class Response:
    """An answer; `core.ports.HttpResponse`."""

    __slots__ = ("_coding", "_connection", "_ended", "_pieces", "_sniff", "error", "headers", "status")

    def __init__(self, connection: "Connection", pieces: list[bytes]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.error: HttpError | None = None
        """How the exchange broke; raised by `read` once all that has come is read."""
        self._connection: Connection | None = connection
        self._pieces = pieces
        self._ended = False
        self._coding: Inflate | None = None
        self._sniff = False

    def read(self) -> Coroutine[None, None, bytes]:
        """Give everything that has arrived since the last call; wait only when that is nothing; `b""` at the end."""
        if self._sniff and self._pieces and not self._pieces[0].startswith(GZIP_MAGIC[:1]):
            self._sniff = False
        if self._sniff or self._coding is not None:
            return self._read_coded()
        return self._read_plain()

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand over each piece in the callback that brings it; see the port."""
        while True:
            plain = not self._sniff and self._coding is None
            if plain and not self._pieces and self._connection is not None and not await self._connection.pipe(take):
                return False
            data = await self.read()
            if not data:
                return True
            if not take(data):
                return False

    async def body(self, max_bytes: int) -> bytes:
        """Give the rest of the body at once; raises HttpError `too_large` beyond `max_bytes`."""
        first = await self.read()
        if self._ended and not self._pieces and self._coding is None and len(first) <= max_bytes:
            return first
        pieces, size = [first], len(first)
        while size <= max_bytes and (piece := await self.read()):
            pieces.append(piece)
            size += len(piece)
        if size > max_bytes:
            await self.aclose()
            raise HttpError("too_large", f"the answer is longer than {max_bytes} bytes", sent=True)
        return b"".join(pieces)

    async def aclose(self) -> None:
        """Let the exchange go: an answer that has not come whole takes its connection with it."""
        self.drop()

    def drop(self) -> None:
        """Close at once, without waiting for anything."""
        if self._connection is not None:
            self._connection.fail("reset", "the answer was closed before its end")

    def check(self) -> None:
        """Raise how the exchange broke: each time anew, for what is kept and raised holds whoever it passed through."""
        if self.error is not None:
            raise HttpError(self.error.kind, str(self.error), sent=self.error.sent)

    async def _read_plain(self) -> bytes:
        while not self._pieces:
            self.check()
            if self._ended or self._connection is None:
                return b""
            await self._connection.event()
        data = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        if self._connection is not None:
            self._connection.drained()
        return data

    async def _read_coded(self) -> bytes:
        held = b""
        while self._sniff:
            try:
                data = await self._read_plain()
            except asyncio.CancelledError:
                if held:
                    self._pieces.insert(0, held)
                raise
            held += data
            if held.startswith(GZIP_MAGIC):
                self._coding = Inflate(deflate=False)
            elif data and GZIP_MAGIC.startswith(held):
                continue
            self._sniff = False
            if self._coding is None:
                return held
        coding = cast("Inflate", self._coding)
        while True:
            if not held and coding.hungry:
                held = await self._read_plain()
                if not held:
                    if not coding.finished:
                        raise HttpError("incomplete", "the packed body ends too early", sent=True)
                    return b""
            unpacked = coding.feed(held)
            if unpacked:
                return unpacked
            held = b""

    # What the connection tells.

    def begin(self, status: int, headers: dict[str, str]) -> None:
        """Take the head; raises HttpError on a content coding that is not known."""
        declared = headers.get("content-encoding")
        declared = declared.strip().lower() if declared else ""
        if declared == "deflate":
            self._coding = Inflate(deflate=True)
        elif declared in ("", "identity"):
            kind = headers.get("content-type", "").lower()
            self._sniff = not kind or "json" in kind or kind.startswith("text/")
        elif declared in ("gzip", "x-gzip"):
            self._sniff = True  # some say so of a body that is not packed
        else:
            raise HttpError("protocol", f"the content coding {declared!r} was not asked for", sent=True)
        self.headers = headers
        self.status = status

    def end(self, error: HttpError | None) -> None:
        """Keep what has come and is not yet read, and let the connection go."""
        self._pieces = self._pieces.copy()
        self._ended = error is None
        self.error = error
        self._connection = None


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
        self.idle_since = 0.0
        """When the owner began to keep it; 0 while it works."""
        self.exchanges = 0
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
        self._bodiless = self._interim = self._to_eof = self._complete = self._keep = False
        # The parser calls these two without a Python frame in between.
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

    async def exchange(self, head: bytes, body: bytes, *, bodiless: bool) -> Response:
        """Send a request and wait for the head of its answer; raises HttpError; cancelling closes the connection."""
        if self.transport.is_closing():
            raise HttpError("reset", "the upstream closed the connection before the request")
        self._response = response = Response(self, self._pieces)
        self.exchanges += 1
        self.heard = self._complete = False
        self._bodiless = bodiless
        self._barren = 0
        if len(body) <= WRITE_BYTES:
            self.transport.write(head + body)
        else:
            self._rest = memoryview(body)
            self.transport.write(head)
            self._push()
        try:
            while not response.status:
                response.check()
                await self.event()
        except (asyncio.CancelledError, GeneratorExit):
            response.drop()
            raise
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
        """Read on: all that has come is taken."""
        if not self._reading:
            self._reading = True
            if not self.transport.is_closing():
                self.transport.resume_reading()

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
        before = len(pieces)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as wrong:
            self._keep = False
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
            piece = pieces[0] if len(pieces) == 1 else b"".join(pieces)
            pieces.clear()
            try:
                more, error = take(piece), None
            except Exception as raised:  # noqa: BLE001 - it is raised where `pipe` is awaited
                more, error = False, raised
            if not more:
                self._take = None
                self._wake(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the exchange as the way the connection went says."""
        self._owner.gone(self)
        del self._parser  # it holds this connection
        if self._response is None:
            return
        if self._to_eof and exc is None:
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
        raw = self._raw
        headers = dict(zip(map(str.lower, map(_text, raw)), map(_text, raw.values()), strict=True))
        raw.clear()
        status = self._parser.get_status_code()
        self._interim = status < 200
        if self._interim:
            return
        coding = headers.get("transfer-encoding")
        if coding:
            self._to_eof = not coding.rstrip().lower().endswith("chunked")
        else:
            self._to_eof = "content-length" not in headers
        cast("Response", self._response).begin(status, headers)
        if self._bodiless:
            self._complete = True
            self._keep = False  # the parser waits for the body that HEAD leaves out

    def on_message_complete(self) -> None:
        """Take note of the end; only here does the parser know whether the connection may be kept."""
        if self._interim:
            self._interim = False
        elif not self._complete:
            self._complete = True
            self._keep = self._parser.should_keep_alive()

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

    def _finish(self, error: HttpError | None) -> None:
        response = self._response
        if response is None:
            return
        self._response = None
        self._raw.clear()
        pieces = self._pieces
        if self._bodiless:
            pieces.clear()
        response.end(error)
        pieces.clear()
        self._to_eof = False
        transport = self.transport
        kept = self._keep and error is None and self._rest is NOTHING and not transport.is_closing()
        self._rest = NOTHING
        if kept and not transport.get_write_buffer_size():
            self.drained()
            self._owner.free(self, again=True)
        else:
            if error is None:
                self._owner.free(self, again=False)
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
