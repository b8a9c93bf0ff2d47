"""A way to PostgreSQL on which the answers of some commits are lost: the server has them, nobody is told."""

import asyncio

from way import Peer, Way

COMMIT = b"COMMIT;"


class LossyPostgres(Way):
    """Loses the answer of every `every`th commit, counted over all connections (0: of none), and, once, of the commit
    of a transaction in which `once` is said.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.every = 0
        self.once = b""
        self.commits = 0
        self.lost = 0

    async def carry(self, client: Peer, server: Peer) -> None:
        losing, chosen = asyncio.Event(), False
        answers = asyncio.ensure_future(self._answer(client, server, losing))
        while data := await client.some():
            if self.once and self.once in data:
                self.once, chosen = b"", True
            if COMMIT in data:
                self.commits += 1
                if chosen or (self.every and self.commits % self.every == 0):
                    losing.set()
            server.writer.write(data)
        answers.cancel()

    async def _answer(self, client: Peer, server: Peer, losing: asyncio.Event) -> None:
        await self.answer(client, server, losing)
        self.lost += losing.is_set()
