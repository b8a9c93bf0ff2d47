"""A time limit that moves: one timer a call, whatever the number of reads."""

import asyncio


class Deadline:
    """Cancels the current task's wait when the time is over; only while it is armed.

    `asyncio.timeout` would cost a timer for each read; this one looks again when its timer fires.
    """

    __slots__ = ("_armed", "_fires_at", "_handle", "_loop", "_task", "expired", "when")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a running coroutine has one
        self._task = task
        self._armed = False
        self._handle: asyncio.TimerHandle | None = None
        self._fires_at = 0.0
        self.expired = False
        self.when = 0.0

    def arm(self, when: float) -> None:
        """Limit the wait that comes now to an instant of the loop's clock."""
        self.when = when
        self._armed = True
        if self._handle is None or when < self._fires_at:
            if self._handle is not None:
                self._handle.cancel()
            self._fires_at = when
            self._handle = self._loop.call_at(when, self._fire)

    def disarm(self) -> None:
        """Say that the wait is over."""
        self._armed = False

    def close(self) -> None:
        """Let the timer go."""
        self._armed = False
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def caught(self) -> bool:
        """Say whether a CancelledError was this deadline's; then the task goes on."""
        if not self.expired:
            return False
        self.expired = False
        return self._task.uncancel() == 0

    def _fire(self) -> None:
        self._handle = None
        if not self._armed:
            return
        if self._loop.time() < self.when:
            self._fires_at = self.when
            self._handle = self._loop.call_at(self.when, self._fire)
            return
        self.expired = True
        self._task.cancel()
