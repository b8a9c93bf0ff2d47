"""A way to Valkey on which it is unsure what became of a script: its answer is lost, or it runs late."""

import asyncio
from collections import deque
from typing import Literal

from way import Peer, Way

Fate = Literal["lost", "late"]


class UnsureValkey(Way):
    """The next calls of `script` (its hash) meet the `fates`, in turn; each costs the client its connection.

    `lost`: it has run, and nobody is told. `late`: it runs when `let_go` is called.
    """

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.script = b""
        self.fates: deque[Fate] = deque()
        self._late: list[tuple[asyncio.Event, asyncio.Event]] = []

    def awaits(self, script: str, *fates: Fate) -> None:
        """Say what becomes of the next calls of a script."""
        self.script, self.fates = script.encode(), deque(fates)

    async def let_go(self) -> None:
        """Let what is late run."""
        while self._late:
            go, gone = self._late.pop(0)
            go.set()
            await gone.wait()

    async def carry(self, client: Peer, server: Peer) -> None:
        answers = asyncio.ensure_future(self.answer(client, server))
        while data := await client.some():
            fate = self.fates.popleft() if self.fates and self.script in data else None
            if fate is None:
                server.writer.write(data)
                continue
            answers.cancel()  # all that was asked before has been answered
            await asyncio.wait([answers])
            go, gone = asyncio.Event(), asyncio.Event()
            if fate == "late":
                self._late.append((go, gone))
                client.writer.transport.abort()
                await go.wait()
            server.writer.write(data)
            assert await server.some()
            gone.set()
            break
        answers.cancel()
