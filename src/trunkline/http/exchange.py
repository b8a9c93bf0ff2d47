"""One HTTP exchange of a hot route, answered in the server's protocol callbacks, without ASGI in between."""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol

from trunkline.calls.task import Task
from trunkline.core.events import Failed

Headers = Iterable[tuple[str, str]]
LARGE_BYTES = 64 * 1024
"""A longer body is not copied behind its head."""
MOST_SIZED = 1024
_SIZES = tuple(b"%x\r\n" % size for size in range(MOST_SIZED))
"""How chunks of the transfer coding begin: nearly all are short, and formatting takes long."""

_LINES = {status.value: f"HTTP/1.1 {status.value} {status.phrase}" for status in HTTPStatus}


class Wire(Protocol):
    """What an exchange needs of its connection."""

    keep_alive: bool
    http_1_0: bool
    peer: str

    waiting: asyncio.Future[None] | None
    """Done when the client has read; None: it takes at once what is written."""

    @property
    def send(self) -> Callable[[bytes], None]:
        """Write bytes to the client."""

    def done(self, exchange: "Exchange") -> None:
        """Say that the answer is written to its end."""

    def cut(self) -> None:
        """Break the connection off."""


class Exchange:
    """A request whose body is whole, and the answer to it. The handler's task is cancelled when the client leaves."""

    __slots__ = ("_chunked", "_wire", "asked_at", "body", "gone", "headers", "interrupted", "method", "path", "query",
                 "responded", "stopped", "streaming", "task")  # fmt: skip

    def __init__(self, wire: Wire, method: str, path: str, query: bytes, headers: Mapping[bytes, bytes]) -> None:
        self._wire = wire
        self.method = method
        self.path = path
        self.query = query
        self.headers = headers
        self.body = b""
        self.asked_at = 0.0
        """When the request was whole, by the loop's clock."""
        self.task: Task | None = None
        self.responded = self.streaming = self._chunked = False
        self.gone = False
        """The client has left."""
        self.interrupted = False
        """The server is going down: end the answer now."""
        self.stopped: Failed | None = None
        """Why the answer is to end now, where an operator wants it to."""

    @property
    def peer(self) -> str:
        """The address that the request came from."""
        return self._wire.peer

    def header(self, name: bytes) -> str:
        """Give a request header (name in lower case), `""` if it is absent."""
        return self.headers.get(name, b"").decode("latin-1")

    def stop(self, why: Failed) -> None:
        """End the answer now, with an error."""
        self.stopped = why
        if self.task is not None:
            self.task.cancel()

    def respond(self, status: int, headers: Headers, body: bytes) -> None:
        """Write a whole answer."""
        self.responded = True
        head = self._head(status, headers, f"\r\ncontent-length: {len(body)}")
        if len(body) > LARGE_BYTES and self.method != "HEAD":
            self._wire.send(head)
            self._wire.send(body)
        else:
            self._wire.send(head + body if self.method != "HEAD" else head)
        self._wire.done(self)

    def start(self, headers: Headers, status: int = 200, length: int | None = None, first: bytes = b"") -> bool:
        """Begin an answer that comes in pieces, with the first one; gives what `write` gives.

        `length` is its size in bytes, where that is known.
        """
        self.responded = self.streaming = True
        self._chunked = length is None and not self._wire.http_1_0
        if self._chunked:
            framing = "\r\ntransfer-encoding: chunked"
        elif length is not None:
            framing = f"\r\ncontent-length: {length}"
        else:
            self._wire.keep_alive = False
            framing = ""
        self._wire.send(self._head(status, headers, framing) + self._framed(first))
        return self._wire.waiting is None

    def write(self, data: bytes) -> bool:
        """Write a piece of a streamed answer, as one write; False: wait for `writable` before the next."""
        wire = self._wire
        if data and not self.gone:
            send = wire.send  # a method that is an attribute is found sooner so
            if self._chunked:
                size = len(data)
                data = (_SIZES[size] if size < MOST_SIZED else b"%x\r\n" % size) + data + b"\r\n"
            send(data)
        return wire.waiting is None

    def writable(self) -> asyncio.Future[None] | None:
        """Give what to wait for before more is written; None: the client takes it at once."""
        return self._wire.waiting

    def finish(self, last: bytes = b"") -> None:
        """End a streamed answer, with its last piece."""
        if not self.gone:
            end = self._framed(last) + b"0\r\n\r\n" if self._chunked else last
            if end:
                self._wire.send(end)
            self._wire.done(self)

    def cut(self) -> None:
        """Break the connection off: the client does not read, or the answer cannot be ended in order."""
        self._wire.cut()

    def _framed(self, data: bytes) -> bytes:
        return b"%x\r\n%b\r\n" % (len(data), data) if data and self._chunked else data

    def _head(self, status: int, headers: Headers, framing: str) -> bytes:
        lines = "\r\n".join([_LINES[status], *map(": ".join, headers)])
        end = "\r\n\r\n" if self._wire.keep_alive else "\r\nconnection: close\r\n\r\n"
        return f"{lines}{framing}{end}".encode("latin-1", "replace")


Handler = Callable[[Exchange], Coroutine[Any, Any, None]]
"""Answers an exchange; whatever it raises is a bug and answered with a 500."""
