"""An upstream that does exactly what a test's script says, byte by byte, on a real socket."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager


class Peer:
    """The upstream's end of one connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int) -> None:
        self.reader = reader
        self.writer = writer
        self.number = number
        self.closed = asyncio.Event()

    async def head(self) -> str:
        """The next request's head; raises IncompleteReadError when the client has gone."""
        return (await self.reader.readuntil(b"\r\n\r\n")).decode()

    async def request(self) -> tuple[str, bytes]:
        head = await self.head()
        length = next((line[15:] for line in head.lower().split("\r\n") if line.startswith("content-length:")), "0")
        return head, await self.reader.readexactly(int(length))

    async def send(self, data: bytes) -> None:
        if self.writer.transport.is_closing():
            raise ConnectionResetError
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self, body: bytes, *headers: str, status: str = "200 OK") -> None:
        lines = [f"HTTP/1.1 {status}", *headers, f"content-length: {len(body)}"]
        await self.send("\r\n".join(lines).encode() + b"\r\n\r\n" + body)

    async def gone(self) -> None:
        """Wait until the client has closed, or broken, the connection."""
        try:
            while await self.reader.read(65536):
                pass
        except ConnectionError:
            pass

    def reset(self) -> None:
        """Close with a TCP reset."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Peer], Awaitable[None]]


class RawUpstream:
    def __init__(self, script: Script) -> None:
        self.script = script
        self.peers: list[Peer] = []
        self.failures: list[BaseException] = []
        self.url = ""
        self.port = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer = Peer(reader, writer, len(self.peers))
        self.peers.append(peer)
        try:
            await self.script(peer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client went away between requests
        except BaseException as error:
            self.failures.append(error)
            raise
        finally:
            peer.closed.set()
            writer.close()


@asynccontextmanager
async def raw_upstream(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[RawUpstream]:
    """Serve the script on loopback; a failure inside it fails the test."""
    upstream = RawUpstream(script)
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", 0, ssl=tls, limit=1 << 20, backlog=4096)
    upstream.port = server.sockets[0].getsockname()[1]
    upstream.url = f"https://localhost:{upstream.port}/v1" if tls else f"http://127.0.0.1:{upstream.port}/v1"
    try:
        yield upstream
    finally:
        server.close()
        for peer in upstream.peers:
            peer.writer.transport.abort()
            await peer.closed.wait()
    assert upstream.failures == []


@contextmanager
def closed_port() -> Iterator[int]:
    """A port where nobody listens; it is held, so that nobody else does either."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


def forever(status: str = "200 OK", body: bytes = b"hello") -> Script:
    """Answer every request of a connection alike."""

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            await peer.answer(body, status=status)

    return script
