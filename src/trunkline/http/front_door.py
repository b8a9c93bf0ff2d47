"""The server's protocol: hot routes are answered in its callbacks, everything else is an ASGI application."""

import asyncio
import logging
from collections import deque
from functools import partial
from typing import Any, ClassVar, NamedTuple

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from trunkline.calls.task import Task
from trunkline.core.errors import GatewayError
from trunkline.core.state import StorageError
from trunkline.http.error_response import respond_error
from trunkline.http.exchange import Exchange, Handler
from trunkline.wire.header_names import LOWER

_log = logging.getLogger(__name__)
WRITE_BUFFER_BYTES = 256 * 1024
"""What may wait for a slow client before its upstream is no longer read."""
NONE_WAITING: deque[Any] = deque()
"""The requests that wait for ASGI to answer the one before: a queue takes 0.7 KiB, and ASGI alone needs its own."""
LARGE_BYTES = 64 * 1024
"""Behind a read of this size others have their turn: libuv would read 32 times 256 KiB from one connection."""
LARGE_BODY_BYTES = 1 << 20
"""Bodies of this size are joined and handed over one in a turn of the loop: one of 20 MB takes 14 ms to join."""
INVALID = "Invalid HTTP request received."
REFUSED_S = 30.0
"""How long a client may send on what was refused."""
LINGER_S = 3.0
"""How long a connection at rest stays open when the server is going down: a proxy may be sending on it just then."""


class Asked(NamedTuple):
    """What a request line asks for; no handler: ASGI answers."""

    handler: Handler | None
    method: str
    path: str
    query: bytes


class FrontDoor(HttpToolsProtocol):
    """One client connection. `routes`, `body_max_bytes` and `grace_s` are set on a subclass by the composition root.

    A route is a method and a path; one that ends in `/` stands for all paths of three steps or more that begin so.
    """

    routes: ClassVar[dict[tuple[bytes, bytes], Handler]] = {}
    body_max_bytes: ClassVar[int] = 64 * 1024 * 1024
    grace_s: ClassVar[float] = 10.0
    _asked: ClassVar[dict[tuple[bytes, bytes], Asked]] = {}
    """Of the routes as they stand there, which is what most requests ask for."""
    _large: ClassVar[asyncio.Lock]
    """Held by the large body whose turn it is."""
    # Instances share the keys of their dictionaries only up to thirty, and the parent has most of those.
    __slots__ = (
        "_again",
        "_asgi",
        "_body",
        "_exchange",
        "_handler",
        "_leaving",
        "_pieces",
        "_raw",
        "_rest",
        "_rested_at",
        "_size",
        "_url",
        "http_1_0",
        "keep_alive",
        "on_body",
        "on_header",
        "on_message_begin",
        "on_url",
        "peer",
        "send",
        "waiting",
    )

    def __init_subclass__(cls) -> None:
        cls._large = asyncio.Lock()
        cls._asked = {
            (method, path): Asked(handler, method.decode(), path.decode(), b"")
            for (method, path), handler in cls.routes.items()
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._raw: dict[bytes, bytes] = {}
        self._url: list[bytes] = []
        self._pieces: list[bytes] = []
        """Of a body, from one read."""
        # The parser calls these without a Python frame in between; of a header that comes twice the last counts.
        self.on_message_begin = self._raw.clear  # type: ignore[method-assign]
        self.on_url = self._url.append  # type: ignore[method-assign, assignment]
        self.on_header = self._raw.__setitem__  # type: ignore[assignment]
        self.on_body = self._pieces.append  # type: ignore[method-assign, assignment]
        super().__init__(*args, **kwargs)
        self.pipeline = NONE_WAITING
        self.peer = ""
        self._exchange: Exchange | None = None
        self._handler: Handler | None = None
        """Who answers the request that is coming, if that is hot."""
        self._again = b""
        """The head of a request that offers another protocol, without the offer."""
        self._asgi = False
        """ASGI answers the request that is coming."""
        self._body: list[bytes] = []
        """What came of it with earlier reads."""
        self._size = 0
        self.waiting: asyncio.Future[None] | None = None
        self._rested_at = 0.0
        self._rest: asyncio.TimerHandle | None = None
        self._leaving = False
        self.keep_alive = True
        self.http_1_0 = False

    # What the transport says.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a new connection."""
        super().connection_made(transport)
        self.flow = None  # type: ignore[assignment]  # its event is 0.8 KiB, and ASGI alone needs it
        self.send = transport.write
        if self.client is not None:
            self.peer = self.client[0]
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel what runs for a client that has left."""
        exchange = self._exchange
        if exchange is not None:
            self._exchange = None
            exchange.gone = True
            if exchange.task is not None:
                exchange.task.cancel()
        if self._rest is not None:
            self._rest.cancel()
        self._wake()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except HttpParserError:
            self.logger.warning(INVALID)
            self.send_400_response(INVALID)
            return
        except HttpParserUpgrade as upgrade:
            self._stay(data[upgrade.args[0] :])
        if self._pieces:
            self._take()

    def pause_writing(self) -> None:
        """Note that the client reads too slowly."""
        if self.waiting is None:
            self.waiting = self.loop.create_future()
        if self.flow is not None:
            super().pause_writing()

    def resume_writing(self) -> None:
        """Note that the client reads on."""
        self._wake()
        if self.flow is not None:
            super().resume_writing()

    def shutdown(self) -> None:
        """Go within the grace period: let the running answer end, and answer what a proxy is sending just now."""
        self._leaving = True
        # well inside the server's own limit, so that the last event still goes out
        left_s = max(self.grace_s / 2, self.grace_s - 1.0)
        self.loop.call_later(left_s, self._interrupt)
        self.timeout_keep_alive = min(LINGER_S, left_s)  # type: ignore[assignment]
        exchange = self._exchange
        if exchange is not None and exchange.responded and exchange.task is None:  # refused
            self.transport.close()
        elif exchange is not None:
            # a client that was not told so yet keeps a connection that is closed behind an answer for its next call
            self.keep_alive = self.keep_alive and exchange.responded
        elif self.cycle is not None and not self.cycle.response_complete:
            super().shutdown()
        else:
            self._begin_rest()

    def _interrupt(self) -> None:
        """End the answer now, and the connection: no further call would have time."""
        self.keep_alive = False
        exchange = self._exchange
        if exchange is not None and exchange.task is not None:
            exchange.interrupted = True
            exchange.task.cancel()
        elif self.cycle is None or self.cycle.response_complete:
            self.transport.close()

    # What the parser says.

    def on_headers_complete(self) -> None:
        """Choose who answers."""
        raw, parser = self._raw, self.parser
        headers = dict(zip(map(LOWER.__getitem__, raw), raw.values(), strict=True))
        raw.clear()
        method, url = parser.get_method(), b"".join(self._url)
        self._url.clear()
        if b"upgrade" in headers and parser.should_upgrade():
            lines = [b"%b: %b\r\n" % header for header in headers.items() if header[0] != b"upgrade"]
            self._again = b"%b %b HTTP/1.1\r\n%b\r\n" % (method, url, b"".join(lines))
            return
        if self._exchange is not None or self.transport.is_closing():
            self.keep_alive = False  # pipelined behind a hot request: the client asks again on a new connection
            return
        asked = self._asked.get((method, url)) or self._find(method, url)
        handler, name, path, query = asked
        expects = b"expect" in headers and headers[b"expect"].lower() == b"100-continue"
        if handler is None or (self.cycle is not None and not self.cycle.response_complete):
            self._to_asgi(url, headers, expects=expects)
            return
        self.http_1_0 = old = parser.get_http_version() == "1.0"
        self.keep_alive = not (old or self._leaving) and parser.should_keep_alive()
        self._handler = handler
        exchange = self._exchange = Exchange(self, name, path, query, headers)
        if int(headers.get(b"content-length", b"0")) > self.body_max_bytes:
            self._refuse(exchange)
        elif expects:
            self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")

    def on_message_complete(self) -> None:
        """Start the handler."""
        handler, exchange = self._handler, self._exchange
        if handler is None or exchange is None:
            self._take()
            if self._asgi:
                self._asgi = False
                super().on_message_complete()
            elif exchange is not None and exchange.task is None:  # refused, and all of it has come
                self.transport.close()
            return
        pieces = self._pieces
        body = b"".join(pieces)
        pieces.clear()
        if self._body:
            handler, body = self._gather(handler, body)
        if len(body) > self.body_max_bytes:
            self._refuse(exchange)
            self.transport.close()
            return
        self._handler = None
        exchange.body = body
        exchange.asked_at = self.loop.time()
        task = exchange.task = Task(self.loop, handler(exchange), partial(self._ended, exchange))
        self.tasks.add(task)  # type: ignore[arg-type]
        task.step()

    def _gather(self, handler: Handler, last: bytes) -> tuple[Handler, bytes]:
        """Give who takes a body that came with several reads, and the body; a large one is joined in its turn."""
        pieces, size = [*self._body, last], self._size + len(last)
        self._body, self._size = [], 0
        if LARGE_BODY_BYTES <= size <= self.body_max_bytes:
            return partial(self._in_turn, handler, pieces), b""
        return handler, b"".join(pieces)

    async def _in_turn(self, handler: Handler, pieces: list[bytes], exchange: Exchange) -> None:
        """Join a large body and hand it over, when no other large one does so in this turn."""
        async with self._large:
            await asyncio.sleep(0)
            exchange.body = b"".join(pieces)
            pieces.clear()
        await handler(exchange)

    def _stay(self, rest: bytes) -> None:
        """Go on as if the client had not offered to speak another protocol: the parser would leave its body out."""
        again, self._again = self._again, b""
        if not again:  # CONNECT
            self._unsupported_upgrade_warning()
            return
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the parent does
        self.data_received(again + rest)

    def _find(self, method: bytes, url: bytes) -> Asked:
        """Find who answers a request line."""
        path, _, query = url.partition(b"?")
        beginning = b"/".join(path.split(b"/", 3)[:3]) + b"/"
        handler = self.routes.get((method, path)) or self.routes.get((method, beginning))
        return Asked(handler, method.decode(), path.decode("ascii", "replace"), query)

    def _take(self) -> None:
        """Take what one read brought of a body."""
        data = b"".join(self._pieces)
        self._pieces.clear()
        if self._asgi and data:
            super().on_body(data)
        elif self._handler is not None and self._exchange is not None:
            self._size += len(data)
            self._body.append(data)
            if self._size > self.body_max_bytes:
                self._refuse(self._exchange)
            elif len(data) >= LARGE_BYTES:
                self.transport.pause_reading()
                self.loop.call_soon(self.transport.resume_reading)

    def _to_asgi(self, url: bytes, headers: dict[bytes, bytes], *, expects: bool) -> None:
        """Hand the request over: the parent makes its scope from the URL and the headers."""
        self._rested_at = self.loop.time()
        self.flow = self.flow or FlowControl(self.transport)
        if self.pipeline is NONE_WAITING:
            self.pipeline = deque()
        super().on_message_begin()
        self._asgi = True
        self.url, self.expect_100_continue = url, expects
        self.headers.extend(headers.items())
        super().on_headers_complete()
        if self._leaving:
            self.cycle.keep_alive = False

    def _refuse(self, exchange: Exchange) -> None:
        """Say that the body is too large, and pass over the rest: closed now, the client would find a reset instead."""
        self._handler = self._exchange = None
        self._body, self._size = [], 0
        self.keep_alive = False
        limit = self.body_max_bytes
        respond_error(exchange, GatewayError("request_too_large", f"The body is larger than {limit} bytes."))
        self._exchange = exchange  # nothing else is answered here
        self.loop.call_later(REFUSED_S, self.transport.close)

    def _ended(self, exchange: Exchange, error: BaseException | None) -> None:
        """Take note that a handler has returned, or of what it raised: the client gets an answer whatever that is."""
        self.tasks.discard(exchange.task)
        exchange.task = None
        if error is None:
            return
        if isinstance(error, StorageError):
            _log.warning("%s %s: %s", exchange.method, exchange.path, error)
            self._fail(exchange, GatewayError("storage_unavailable", "The database is away; try again in a moment."))
        elif isinstance(error, Exception):  # the client gets an answer and the log gets the trace
            _log.error("a handler failed", exc_info=error)
            self._fail(exchange, GatewayError("internal_error", "The gateway made a mistake; its log says which."))
        elif not isinstance(error, asyncio.CancelledError):
            raise error
        elif exchange.interrupted:
            self._fail(exchange, GatewayError("shutting_down", "The gateway is going down; ask again."))

    def _fail(self, exchange: Exchange, error: GatewayError) -> None:
        if exchange.responded:
            self.cut()
        else:
            respond_error(exchange, error)

    # What an exchange asks of its connection.

    def done(self, exchange: Exchange) -> None:
        """Say that the answer is written to its end."""
        if self._exchange is not exchange:
            return
        self._exchange = None
        self.server_state.total_requests += 1
        if not self.keep_alive:
            self.transport.close()
        elif self._leaving:
            self._begin_rest()
        else:
            loop = self.loop
            self._rested_at = loop.time()
            if self._rest is None and not self.transport.is_closing():
                self._rest = loop.call_later(self.timeout_keep_alive, self._look_at_rest)

    def _begin_rest(self) -> None:
        """Count the time at rest from now on, however long it was to be."""
        self._rested_at = self.loop.time()
        if self._rest is not None:
            self._rest.cancel()
        self._rest = self.loop.call_later(self.timeout_keep_alive, self._look_at_rest)

    def _look_at_rest(self) -> None:
        """Close a connection that has been at rest for too long; a timer for each answer would cost more."""
        self._rest = None
        if self._exchange is not None or self.transport.is_closing():
            return
        left_s = self._rested_at + self.timeout_keep_alive - self.loop.time()
        if left_s > 0:
            self._rest = self.loop.call_later(left_s, self._look_at_rest)
        elif self.cycle is None or self.cycle.response_complete:
            self.timeout_keep_alive_handler()

    def cut(self) -> None:
        """Break the connection off."""
        self.transport.abort()

    def _wake(self) -> None:
        waiting, self.waiting = self.waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(None)
