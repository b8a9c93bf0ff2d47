"""A forwarder that reads and writes anew each JSON value, and does nothing else: the least a gateway in Python takes.

uvloop and httptools on both sides, kept connections, one write for each read; no key, limits, prices, normalising, time
limits, back-pressure or errors. `run.py` measures it beside the others; alone: `bare.py PORT UPSTREAM_PORT`.
"""

import asyncio
import sys
from typing import Any, cast

import msgspec
import uvloop
from httptools import HttpRequestParser, HttpResponseParser

DECODE, ENCODE = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
HEALTHY = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Front(asyncio.Protocol):
    """A client's connection."""

    def __init__(self, upstream_port: int, idle: list["Back"]) -> None:
        self.upstream_port, self.idle = upstream_port, idle
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append
        self.parser = HttpRequestParser(self)
        self.back: Back | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        self.parser.feed_data(data)

    def on_message_complete(self) -> None:
        """Ask the upstream."""
        if not self.pieces:
            self.transport.write(HEALTHY)
            return
        body = ENCODE(DECODE(b"".join(self.pieces)))
        self.pieces.clear()
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: mock\r\ncontent-length: %d\r\n\r\n" % len(body)
        if self.idle:
            self.back = self.idle.pop()
            self.back.ask(self, head + body)
        else:
            self.dialling = asyncio.get_running_loop().create_task(self.dial(head + body))

    async def dial(self, request: bytes) -> None:
        """Ask over a new connection."""
        loop = asyncio.get_running_loop()
        self.back = (await loop.create_connection(lambda: Back(self.idle), "127.0.0.1", self.upstream_port))[1]
        self.back.ask(self, request)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's
        """Leave the upstream, too."""
        if self.back is not None:
            self.back.transport.close()


class Back(asyncio.Protocol):
    """A connection to the upstream."""

    def __init__(self, idle: list["Back"]) -> None:
        self.idle = idle
        self.pieces: list[bytes] = []
        self.on_body = self.pieces.append

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.parser = HttpResponseParser(self)

    def ask(self, front: Front, request: bytes) -> None:
        """Send a client's request."""
        self.front, self.streaming, self.complete, self.out = front, False, False, b""
        self.transport.write(request)

    def on_header(self, name: bytes, _value: bytes) -> None:
        """Learn whether a stream comes."""
        self.streaming = self.streaming or name.lower() == b"transfer-encoding"

    def on_headers_complete(self) -> None:
        """Begin a stream."""
        if self.streaming:
            self.out = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"

    def on_message_complete(self) -> None:
        """Take note of the end."""
        self.complete = True

    def data_received(self, data: bytes) -> None:
        """Hand on what is whole, in one write."""
        self.parser.feed_data(data)
        if not self.complete and not (self.streaming and b"\n\n" in data):
            return
        body, front, out = b"".join(self.pieces), self.front, self.out
        self.pieces.clear()
        self.out = b""
        if not self.streaming:
            answer = ENCODE(DECODE(body))
            out = ANSWER % (len(answer), answer)
        else:
            *events, rest = body.split(b"\n\n")
            if rest:
                self.pieces.append(rest)
            if events:
                written = b"".join(map(rewritten, events))
                out += b"%x\r\n%b\r\n" % (len(written), written)
            if self.complete:
                out += b"0\r\n\r\n"
        if self.complete:
            front.back = None
            self.idle.append(self)
        front.transport.write(out)


def rewritten(event: bytes) -> bytes:
    """Read and write an event, which the mock begins with `data: `."""
    data = event[6:]
    return b"data: %b\n\n" % (data if data == b"[DONE]" else ENCODE(DECODE(data)))


async def main(port: int, upstream_port: int) -> None:
    """Serve until killed."""
    idle: list[Any] = []
    server = await asyncio.get_running_loop().create_server(
        lambda: Front(upstream_port, idle), "127.0.0.1", port, backlog=4096
    )
    await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2])))
