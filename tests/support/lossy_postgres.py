"""A way to PostgreSQL on which the answers of some commits are lost: the server has them, nobody is told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

COMMIT = b"COMMIT;"


class LossyPostgres:
    """Loses the answer of every `every`th commit, counted over all connections (0: of none), and, once, of the commit
    of a transaction in which `once` is said.
    """

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.host, self.port = parts.hostname or "", parts.port or 0
        self.path = parts.path
        self.user = parts.username
        self.url = ""
        self.every = 0
        self.once = b""
        self.commits = 0
        self.lost = 0
        self.ends: set[asyncio.StreamWriter] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Carry one connection to its end."""
        there, back = await asyncio.open_connection(self.host, self.port)
        self.ends |= {writer, back}
        losing, chosen = asyncio.Event(), False
        try:
            async with asyncio.TaskGroup() as group:
                answers = group.create_task(self._answers(there, writer, losing))
                while data := await reader.read(1 << 16):
                    if self.once and self.once in data:
                        self.once, chosen = b"", True
                    if COMMIT in data:
                        self.commits += 1
                        if chosen or (self.every and self.commits % self.every == 0):
                            losing.set()
                    back.write(data)
                answers.cancel()
        except* OSError:
            pass  # either side reset it; it comes in the task group's own group
        for end in (back, writer):
            end.transport.abort()
        await asyncio.sleep(0)
        self.ends -= {writer, back}

    async def _answers(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter, losing: asyncio.Event) -> None:
        while data := await there.read(1 << 16):
            if losing.is_set():
                self.lost += 1
                break
            writer.write(data)
        writer.transport.abort()


@asynccontextmanager
async def lossy_postgres(url: str) -> AsyncIterator[LossyPostgres]:
    """Open the way; its `url` is for the gateway."""
    way = LossyPostgres(url)
    server = await asyncio.start_server(way.serve, "127.0.0.1", 0)
    way.url = f"postgresql://{way.user}@127.0.0.1:{server.sockets[0].getsockname()[1]}{way.path}"
    try:
        yield way
    finally:
        server.close()
        while way.ends:
            for end in way.ends:
                end.transport.abort()
            await asyncio.sleep(0.01)
