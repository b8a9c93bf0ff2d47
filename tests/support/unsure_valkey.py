"""A way to Valkey on which it is unsure what became of a script: its answer is lost, or it runs late."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal
from urllib.parse import urlsplit

Fate = Literal["lost", "late"]


class UnsureValkey:
    """The next calls of `script` (its hash) meet the `fates`, in turn; each costs the client its connection.

    `lost`: it has run, and nobody is told. `late`: it runs when `let_go` is called.
    """

    def __init__(self, url: str) -> None:
        self._valkey = urlsplit(url)
        self.url = ""
        self.script = b""
        self.fates: deque[Fate] = deque()
        self._late: list[tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]] = []
        self._ends: set[asyncio.StreamWriter] = set()

    def awaits(self, script: str, *fates: Fate) -> None:
        """Say what becomes of the next calls of a script."""
        self.script, self.fates = script.encode(), deque(fates)

    async def let_go(self) -> None:
        """Let what is late run."""
        while self._late:
            there, back, data = self._late.pop(0)
            back.write(data)
            assert await there.read(1 << 16)
            back.transport.abort()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        there, back = await asyncio.open_connection(self._valkey.hostname, self._valkey.port)
        self._ends |= {writer, back}
        answers = asyncio.ensure_future(self._answers(there, writer))
        late = False
        while data := await _some(reader):
            fate = self.fates.popleft() if self.fates and self.script in data else None
            if fate is not None:  # all that was asked before has been answered
                answers.cancel()
                await asyncio.wait([answers])
            if fate == "late":
                self._late.append((there, back, data))
                late = True
                break
            back.write(data)
            if fate == "lost":
                assert await there.read(1 << 16)
                break
        answers.cancel()
        writer.transport.abort()
        if not late:
            back.transport.abort()

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await _some(there):
            writer.write(data)
        writer.transport.abort()

    def close(self) -> None:
        """Break off all connections."""
        for end in self._ends:
            end.transport.abort()


async def _some(reader: asyncio.StreamReader) -> bytes:
    """Read what is there; a connection that was reset has nothing more."""
    try:
        return await reader.read(1 << 16)
    except OSError:
        return b""


@asynccontextmanager
async def unsure_valkey(url: str) -> AsyncIterator[UnsureValkey]:
    """Open the way; its `url` is for the gateway."""
    way = UnsureValkey(url)
    server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    way.url = f"valkey://127.0.0.1:{server.sockets[0].getsockname()[1]}/0"
    try:
        yield way
    finally:
        server.close()
        way.close()
        await server.wait_closed()
