"""The life of a process in the database: a lease, renewed every second, under which it holds jobs and money."""

import asyncio
import logging
import time
from collections.abc import Callable

from trunkline.core.state import Leases, StorageError

TTL_S = 3.0
RENEW_S = 1.0
REGAIN_S = 15.0
log = logging.getLogger(__name__)
MARGIN_S = 0.5
"""This long before others may think so, the process itself takes its lease for over."""


class Life:
    """A lease under a name. While `held`, whatever is reserved or owned under `holder` is nobody else's.

    A process that was stopped, or cut off from the database, for longer than the lease begins a new life, under a new
    `holder`; those in `on_lost` are told, and what was held before is gone.
    """

    def __init__(self, leases: Leases, name: str) -> None:
        self._leases = leases
        self._name = name
        self._until = 0.0
        self.holder = ""
        self.reachable = False
        """Whether the database answered when it was last asked."""
        self.tell: Callable[[], str] = lambda: "{}"
        """Gives what the process says of itself, JSON; told with every renewal."""
        self.on_lost: list[Callable[[], None]] = []

    @property
    def held(self) -> bool:
        """Tell whether the lease runs, by this process's own clock."""
        return time.monotonic() < self._until

    async def regain(self) -> None:
        """Wait for a lease that ran out because the machine or the database stalled; not long, nor when it is away."""
        until = time.monotonic() + REGAIN_S
        while not self.held and self.reachable and time.monotonic() < until:  # noqa: ASYNC110 - it runs by the clock
            await asyncio.sleep(0.02)

    async def begin(self) -> None:
        """Begin the life. Raises StorageError."""
        asked = time.monotonic()
        self.holder = await self._leases.acquire(self._name, TTL_S)
        self._until = asked + TTL_S - MARGIN_S
        self.reachable = True

    async def run(self) -> None:
        """Renew until cancelled."""
        while True:
            await asyncio.sleep(RENEW_S)
            await self.renew()

    async def renew(self) -> None:
        """Renew once; begin anew when it is over."""
        asked = time.monotonic()
        was_reachable = self.reachable
        try:
            if await self._leases.renew(self.holder, TTL_S, self.tell()):
                self._until = asked + TTL_S - MARGIN_S
                self.reachable = True
            else:
                self._until = 0.0
                for lost in self.on_lost:
                    lost()
                await self.begin()
        except StorageError as error:
            if was_reachable:
                log.warning("the database is away; calls that cost money are refused: %s", error)
            self.reachable = False
        else:
            if not was_reachable:
                log.warning("the database is back")

    async def end(self) -> None:
        """End the life; while the database is away, it ends by itself."""
        self._until = 0.0
        try:
            await self._leases.release(self.holder)
        except StorageError as error:
            log.warning("others learn only from its lease that this process has ended: %s", error)
