"""`trunkline serve --workers N`: the parent of N processes on one address; starts them, and starts dead ones again."""

import asyncio
import logging
import signal
import socket
import sys
import tempfile
from asyncio.subprocess import Process
from typing import TYPE_CHECKING

import msgspec

from trunkline.cli.server import address, bind, bind_or_say, say_where, set_up_log
from trunkline.cli.worker import READY, Orders

if TYPE_CHECKING:
    from trunkline.config.load import Loaded

STABLE_S = 10.0
"""A worker that lived so long did not die of its start: the back-off begins anew."""
BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
LATE_S = 5.0
"""This long after the grace period whoever has not ended is killed."""
_log = logging.getLogger(__name__)


def run_workers(config: str | None, flags: dict[str, str], loaded: "Loaded", count: int) -> int:
    """Serve with `count` workers until a signal; gives the exit status."""
    set_up_log()
    server = loaded.config.server
    probe = bind_or_say(server.listen)  # not shared: nobody else may be there
    if probe is None:
        return 1
    where = address(probe)
    probe.close()
    with bind(where, shared=True, listening=False) as held, tempfile.TemporaryDirectory(prefix="trunkline-") as own:
        orders = Orders(config, flags, 0, count, own, where, -1)
        return asyncio.run(Parent(orders, held, server.grace_s).run())


class Parent:
    """Keeps the workers going until it is told to end. The first one is started before the others."""

    def __init__(self, orders: Orders, held: socket.socket, grace_s: float) -> None:
        """`held` keeps the address for the workers, and takes no connections itself."""
        self._orders = orders
        self._held = held
        self._grace_s = grace_s
        self._processes: dict[int, Process] = {}
        self._ending = asyncio.Event()
        self._first_up = asyncio.Event()
        self._up: set[int] = set()
        self._said = False
        self._status = 0

    async def run(self) -> int:
        """Run until all workers have ended."""
        loop = asyncio.get_running_loop()
        for asked in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(asked, self._ending.set)
        loop.add_signal_handler(signal.SIGHUP, self._tell, signal.SIGHUP)
        async with asyncio.TaskGroup() as group:
            ending = group.create_task(self._end())
            async with asyncio.TaskGroup() as keeping:
                for number in range(self._orders.count):
                    keeping.create_task(self._keep(number))
            ending.cancel()
        return self._status

    async def _keep(self, number: int) -> None:
        """Start one worker, again and again."""
        loop = asyncio.get_running_loop()
        short_lives = 0
        if number:
            await self._first_up.wait()
        while not self._ending.is_set():
            born = loop.time()
            status = await self._live(number)
            if self._ending.is_set():
                return
            if number not in self._up:  # it has said why; the others would say the same
                self._status = 1
                self._ending.set()
                self._first_up.set()
                return
            short_lives = 0 if loop.time() - born > STABLE_S else short_lives + 1
            pause_s = BACK_OFF_S[min(max(short_lives - 1, 0), len(BACK_OFF_S) - 1)]
            _log.warning("worker %d ended (status %d); it is started again in %g s", number, status, pause_s)
            try:
                async with asyncio.timeout(pause_s):
                    await self._ending.wait()
            except TimeoutError:
                continue

    async def _live(self, number: int) -> int:
        """One life of a worker; gives its exit status."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            orders = msgspec.structs.replace(self._orders, number=number, line=theirs.fileno())
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-P", "-m", "trunkline.cli.worker", msgspec.json.encode(orders).decode()),
                pass_fds=[theirs.fileno()],
                start_new_session=True,  # a terminal's Ctrl-C is for the parent alone
            )
            theirs.close()
            self._processes[number] = process
            if self._ending.is_set():
                process.terminate()
            ours.setblocking(False)
            try:
                if await asyncio.get_running_loop().sock_recv(ours, 1) == READY:
                    self._ready(number)
            except ConnectionError:
                _log.debug("worker %d ended before it was ready", number)
            status = await process.wait()
        del self._processes[number]
        return status

    def _ready(self, number: int) -> None:
        self._up.add(number)
        self._first_up.set()
        if len(self._up) == self._orders.count and not self._said:
            self._said = True
            say_where(self._held)

    async def _end(self) -> None:
        """End all workers when it is time: asked first, killed when they are late."""
        await self._ending.wait()
        self._first_up.set()
        self._tell(signal.SIGTERM)
        await asyncio.sleep(self._grace_s + LATE_S)
        self._tell(signal.SIGKILL)

    def _tell(self, number: signal.Signals) -> None:
        for process in self._processes.values():
            process.send_signal(number)
