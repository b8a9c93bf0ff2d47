"""A way to a server, with an address of its own, on which something goes amiss as its kind says."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple, Self
from urllib.parse import urlsplit


class Peer(NamedTuple):
    """One end of a connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def some(self) -> bytes:
        """Read what is there; a connection that was reset has nothing more."""
        try:
            return await self.reader.read(1 << 16)
        except OSError:
            return b""


class Way(ABC):
    """Carries connections to the server of `url`; its own `url`, when it is open, is for the gateway."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self.url = ""
        self._carrying: set[asyncio.Task[None] | None] = set()

    @abstractmethod
    async def carry(self, client: Peer, server: Peer) -> None:
        """Carry one connection to its end."""

    async def answer(self, client: Peer, server: Peer, losing: asyncio.Event | None = None) -> None:
        """Pass the server's answers on, to the first that is to be lost; then the client is cut off."""
        while (data := await server.some()) and not (losing and losing.is_set()):
            client.writer.write(data)
        client.writer.transport.abort()

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Open the way; in the end all connections are broken off."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        user = f"{self._to.username}@" if self._to.username else ""
        port = server.sockets[0].getsockname()[1]
        self.url = self._to._replace(netloc=f"{user}127.0.0.1:{port}").geturl()
        try:
            yield self
        finally:
            server.close()
            while carrying := [task for task in self._carrying if task]:
                for task in carrying:
                    task.cancel()
                await asyncio.wait(carrying)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        self._carrying.add(task)
        try:
            server = Peer(*await asyncio.open_connection(self._to.hostname, self._to.port))
            try:
                await self.carry(Peer(reader, writer), server)
            finally:
                server.writer.transport.abort()
        finally:
            writer.transport.abort()
            self._carrying.discard(task)
