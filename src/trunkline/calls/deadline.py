"""A time limit that moves: one timer a call, whatever the number of reads."""

import asyncio
from typing import Any


class Deadline:
    """Cancels a task's wait when the time is over; only while it is armed. The task is the last one that armed it.

    `asyncio.timeout` would cost a timer for each read; this one looks again when its timer fires.
    """

    __slots__ = ("_armed", "_fires_at", "_handle", "_loop", "_task", "expired", "when")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._task: asyncio.Task[Any] | None = None
        self._armed = False
        self._handle: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        self.expired = False
        self.when = 0.0

    def arm(self, when: float) -> None:
        """Limit the wait that comes now to an instant of the loop's clock."""
        self.when = when
        self._armed = True
        self._task = asyncio.current_task(self._loop) or self._task  # of none in a callback
        if self._handle is None or when < self._fires_at:
            if self._handle is not None:
                self._handle.cancel()
            self._fires_at = when
            self._handle = self._loop.call_at(when, self._fire)

    def disarm(self) -> None:
        """Say that the wait is over."""
        self._armed = False

    def close(self) -> None:
        """Let the timer go, and the task, which may hold what it did."""
        self._armed = False
        self._task = None
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
        if self._loop.time() < self.when:
            self._fires_at = self.when
            self._handle = self._loop.call_at(self.when, self._fire)
            return
        if self._task is not None:
            self.expired = True
            self._task.cancel()
