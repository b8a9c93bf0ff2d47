"""Who else has a turn while something large passes."""

import asyncio
from collections import Counter


class Turns:
    """Counts the turns of the running loop, and the bytes that were taken in each."""

    def __init__(self) -> None:
        self.now = 0
        self.taken: Counter[int] = Counter()
        self._count()

    def _count(self) -> None:
        self.now += 1
        asyncio.get_running_loop().call_soon(self._count)

    def take(self, size: int) -> None:
        self.taken[self.now] += size
