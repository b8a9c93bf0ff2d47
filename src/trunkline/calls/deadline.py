"""A time limit that moves: one timer a call, whatever the number of reads."""

import asyncio
import math
from collections.abc import Callable
from typing import Any

from msgspec import Struct


class Deadline(Struct, eq=False):
    """Cancels a task's wait when the time is over; only while it is armed. The task is the last one that armed it.

    `limit` gives the instant of the loop's clock until which to wait now. It is asked when the timer fires: moving it
    on costs nothing; who brings it nearer arms again. `asyncio.timeout` would cost a timer for each read.
    """

    loop: asyncio.AbstractEventLoop
    limit: Callable[[], float]
    expired: bool = False
    _task: asyncio.Task[Any] | None = None
    _armed: bool = False
    _handle: asyncio.TimerHandle | None = None
    _fires_at: float = 0.0

    def arm(self) -> None:
        """Limit the wait that comes now."""
        when = self.limit()
        self._armed = True
        self._task = asyncio.current_task(self.loop) or self._task  # of none in a callback
        if self._handle is None or when < self._fires_at:
            if self._handle is not None:
                self._handle.cancel()
            self._fires_at = when
            self._handle = self.loop.call_at(when, self._fire)

    def disarm(self) -> None:
        """Say that the wait is over."""
        self._armed = False

    def close(self) -> None:
        """Let the timer go, and who may hold what it did."""
        self._armed = False
        self._task = None
        self.limit = _never  # no cycle is left
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def caught(self) -> bool:
        """Say whether a CancelledError was this deadline's; then the task goes on."""
        if not self.expired:
            return False
        self.expired = False
        return self._task is not None and self._task.uncancel() == 0

    def _fire(self) -> None:
        self._handle = None
        if not self._armed:
            return
        when = self.limit()
        if self.loop.time() < when:
            self._fires_at = when
            self._handle = self.loop.call_at(when, self._fire)
        elif self._task is not None:
            self.expired = True
            self._task.cancel()


def _never() -> float:
    return math.inf
