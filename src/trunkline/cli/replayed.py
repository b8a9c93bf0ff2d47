"""An HTTP server that answers every request with one capture."""

import asyncio
import socket

from trunkline.inspection.paste import Capture

MOST_HEAD_BYTES = 64 * 1024
MOST_BODY_BYTES = 256 * 1024 * 1024
_OWN = ("content-length", "transfer-encoding", "connection", "keep-alive", "content-encoding", "date", "server")
"""Headers that are written anew: they told how the bytes travelled then."""


class Replay:
    """Answers with a capture's status, headers and bytes, in the reads that it was recorded in, with their timing."""

    def __init__(self, capture: Capture, speed: float) -> None:
        self._capture = capture
        self._speed = speed
        self._head = _head(capture)

    async def serve(self, opened: socket.socket) -> None:
        """Serve until cancelled."""
        server = await asyncio.start_server(self._connection, sock=opened, limit=MOST_HEAD_BYTES)
        async with server:
            await server.serve_forever()

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError, ValueError):
            pass  # the client went away, or spoke something else
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; False: nothing more is to be said on this connection."""
        head = await reader.readuntil(b"\r\n\r\n")
        await _skip_body(head, reader)
        writer.write(self._head)
        begun = asyncio.get_running_loop().time()
        position = 0
        for at_s, end in self._reads():
            await self._wait(begun, at_s)
            piece = self._capture.data[position:end]
            position = end
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
        if self._capture.broken:
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return b"connection: close" not in head.lower()

    def _reads(self) -> list[tuple[float, int]]:
        """Give the pieces that are written at once, none of them empty; without recorded reads, the events."""
        data = self._capture.data
        reads = [(at_s or 0.0, end) for at_s, end in self._capture.reads] or [(0.0, end) for end in _events(data)]
        ends = [0, *(end for _, end in reads)]
        kept = [read for read, before in zip(reads, ends, strict=False) if read[1] > before]
        if data and (not kept or kept[-1][1] < len(data)):
            kept.append((kept[-1][0] if kept else 0.0, len(data)))
        return kept

    async def _wait(self, begun: float, at_s: float) -> None:
        if self._speed > 0:
            left_s = begun + at_s / self._speed - asyncio.get_running_loop().time()
            if left_s > 0:
                await asyncio.sleep(left_s)


def _events(data: bytes) -> list[int]:
    """Give the place behind each empty line, or each line where there are none."""
    mark = next((mark for mark in (b"\r\n\r\n", b"\n\n", b"\r\r", b"\n", b"\r") if mark in data), b"")
    ends: list[int] = []
    position = data.find(mark) if mark else -1
    while position >= 0:
        ends.append(position + len(mark))
        position = data.find(mark, position + len(mark))
    return ends


def _head(capture: Capture) -> bytes:
    """Write the response's head: what the capture tells, else what its body looks like."""
    status = capture.head.status if capture.head else 200
    headers = [(name, value) for name, value in (capture.head.headers if capture.head else []) if name not in _OWN]
    if not any(name == "content-type" for name, _ in headers):
        headers.append(("content-type", _content_type(capture.data)))
    lines = [f"HTTP/1.1 {status} Replayed", *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join([*lines, "transfer-encoding: chunked", "", ""]).encode("latin-1", "replace")


def _content_type(data: bytes) -> str:
    """Tell a body's type by its first bytes: a lone JSON object or array is JSON, anything else a stream of events."""
    text = data.strip()
    lone = text[:1] in (b"{", b"[") and text[-1:] in (b"}", b"]") and b"\n{" not in text and b"}{" not in text
    return "application/json" if lone else "text/event-stream; charset=utf-8"


async def _skip_body(head: bytes, reader: asyncio.StreamReader) -> None:
    """Read over a request's body."""
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if b":" in line)
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            await reader.readexactly(size + 2)
        await reader.readuntil(b"\r\n")
        return
    length = fields.get(b"content-length", b"0").strip()
    left = min(int(length), MOST_BODY_BYTES) if length.isdigit() else 0
    while left > 0:
        left -= len(await reader.readexactly(min(left, MOST_HEAD_BYTES)))
