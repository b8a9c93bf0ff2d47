"""A task that takes its first step at once, and the next ones in the very callback that brings what it waits for.

asyncio's own waits for the loop's next turn each time; see `docs/decisions/tasks.md`.
"""

import asyncio
from asyncio.tasks import _enter_task, _leave_task  # documented for those who write tasks: "Extending asyncio"
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from typing import Any

PLAIN = Context()
"""What steps are called in: a `Task` has a context of its own."""


class Wake:
    """A future that is done once: `wake` runs who waits for it on at once, if that is a `Task` and none is running."""

    # What most never come to, so that it costs them nothing.
    _asyncio_future_blocking = False
    _done = False
    _error: BaseException | None = None
    _then: "Callable[[Wake], object] | None" = None
    _context: Context | None = None
    task: "Task | None" = None
    """Who waits, where that is a task of ours."""

    def wake(self, error: BaseException | None = None) -> None:
        """Be done; only the first time counts.

        `error` is raised where it is awaited, in the loop's next turn: whoever fails is to have failed before that.
        """
        if self._done:
            return
        self._done = True
        if self.task is None:
            self._tell(error)
        elif error is None:
            self.task.step()
        else:
            self.task.step_soon(error)

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - asyncio's
        """Raise CancelledError where it is awaited, in the loop's next turn; False: it is done."""
        if self._done:
            return False
        self.wake(asyncio.CancelledError())
        return True

    def _tell(self, error: BaseException | None) -> None:
        self._error = error
        then, self._then = self._then, None
        if then is not None:
            self.get_loop().call_soon(then, self, context=self._context)

    def done(self) -> bool:
        """Say whether it is."""
        return self._done

    def result(self) -> None:
        """Raise what it ended with, if that was an error."""
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                del error  # its traceback holds this frame

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Give the loop; for asyncio's tasks, which may wait too."""
        return asyncio.get_running_loop()

    def add_done_callback(self, then: "Callable[[Wake], object]", *, context: Context | None = None) -> None:
        """Say who waits, where that is asyncio's: one."""
        self._then, self._context = then, context

    def __await__(self) -> "Generator[Wake, None, None]":
        if self._done:
            self.result()
        else:
            self._asyncio_future_blocking = True
            yield self


class Task:
    """Runs a coroutine; what asyncio's own code asks of a task (timeouts, task groups) it can do.

    `step` once to begin; `ended` is called at the end, with what the coroutine raised.
    """

    _waits: Any = None
    _cancels = 0
    _over = False

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, None],
        ended: Callable[[BaseException | None], None],
    ) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._ended = ended
        self._context = copy_context()
        self._owed = False
        """A CancelledError is to be raised at the next step."""

    def step(self, error: BaseException | None = None) -> None:
        """Run to the next wait: now, or in the loop's next turn where another task is running."""
        loop = self._loop
        try:
            _enter_task(loop, self)  # type: ignore[arg-type]
        except RuntimeError:
            self.step_soon(error)
            return
        self._waits = None
        if self._owed:
            self._owed = False
            error = error if isinstance(error, asyncio.CancelledError) else asyncio.CancelledError()
        try:
            if error is None:
                waits = self._context.run(self._coroutine.send, None)
            else:
                waits = self._context.run(self._coroutine.throw, error)
        except BaseException as raised:  # noqa: BLE001 - `ended` is told
            self._over = True
            _leave_task(loop, self)  # type: ignore[arg-type]
            self._ended(None if isinstance(raised, StopIteration) else raised)
            return
        finally:
            error = None  # its traceback holds this frame
        _leave_task(loop, self)  # type: ignore[arg-type]
        self._waits = waits
        if type(waits) is Wake:
            waits.task = self
        elif waits is None:
            self.step_soon()
        else:
            waits._asyncio_future_blocking = False  # noqa: SLF001 - how a future knows that it was taken by a task
            waits.add_done_callback(self._woken, context=PLAIN)
        if self._owed and waits is not None and waits.cancel():
            self._owed = False

    def step_soon(self, error: BaseException | None = None) -> None:
        """Run to the next wait in the loop's next turn."""
        self._loop.call_soon(self.step, error, context=PLAIN)

    def _woken(self, waits: Any) -> None:
        try:
            waits.result()
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            self.step(error)
        else:
            self.step()

    def done(self) -> bool:
        """Say whether it is over."""
        return self._over

    def cancel(self, msg: object = None) -> bool:  # noqa: ARG002 - asyncio's
        """Raise CancelledError where it waits, in the loop's next turn; False: it is over."""
        if self._over:
            return False
        self._cancels += 1
        if self._waits is None or not self._waits.cancel():
            self._owed = True
        return True

    def cancelling(self) -> int:
        """Count who has cancelled it and has not taken that back."""
        return self._cancels

    def uncancel(self) -> int:
        """Take one cancelling back; give how many are left."""
        self._cancels = max(0, self._cancels - 1)
        return self._cancels
