"""The parent's side of an embedded model: starts its process, knows its address, starts it again after a crash."""

import asyncio
import contextlib
import json
import logging
import os
import secrets
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Mapping

import msgspec

START_S = 300.0
"""A child that has not said where it listens after so long is killed; big weights on a slow disk take minutes."""
STABLE_S = 10.0
"""A child that lived so long did not die of its start: the back-off begins anew."""
BACK_OFF_S = (0.0, 0.5, 1.0, 2.0, 5.0, 15.0, 30.0)
STDERR_KEPT_BYTES = 4096

_log = logging.getLogger(__name__)


class Address(msgspec.Struct, frozen=True):
    """Where a child answers, and the bearer key that it wants; both are new in each of its lives."""

    base_url: str
    """`http://127.0.0.1:PORT/v1`"""
    key: str

    def __repr__(self) -> str:
        return f"Address({self.base_url!r})"


class Announcement(msgspec.Struct, forbid_unknown_fields=True):
    """The one line that a child writes (`local.child`): the port where it listens, or why it cannot."""

    port: int = 0
    error: str = ""


class ChildUnavailableError(Exception):
    """The child cannot answer; the message is for people and names the child and the reason."""


class SupervisedChild:
    """A process that serves the OpenAI API on a loopback port, run as `python -m MODULE`.

    One task, made by the caller, owns it: `group.create_task(child.run())`. The process starts with `start()` or the
    first `address()`, and again after a crash. A start that fails is tried again by the first `address()` after a
    back-off. The child reads its settings and its key from standard input and ends when that closes: it never
    outlives this process.
    """

    def __init__(self, name: str, module: str, settings: Mapping[str, object]) -> None:
        """`name` is for people, such as `local/text`; `settings` becomes JSON and is for the module."""
        self.name = name
        self.pid: int | None = None
        """Of the running process; None while there is none."""
        self._module = module
        self._settings = settings
        self._task: asyncio.Task[object] | None = None
        self._wanted = asyncio.Event()
        self._ready: asyncio.Future[Address] | None = None
        self._short_lives = 0
        self._retry_at = 0.0
        self._over = False

    def start(self) -> None:
        """Ask for the process; nothing happens when it runs, is starting, or may not be tried again yet."""
        ready = self._future()
        if ready.done() and ready.exception():
            if self._over or _now() < self._retry_at:
                return
            self._ready = None
        self._wanted.set()

    async def address(self) -> Address:
        """Wait until the child answers. Raises ChildUnavailableError when it cannot start or was stopped."""
        self.start()
        return await asyncio.shield(self._future())

    def stop(self) -> None:
        """End the process for good; the task of `run` is over when it is gone."""
        self._over = True
        if self._task is not None:
            self._task.cancel()

    async def run(self) -> None:
        """Own the process until `stop()` or cancellation."""
        self._task = asyncio.current_task()
        try:
            while not self._over:
                await self._wanted.wait()
                await self._live()
        finally:
            self._over = True
            self._fail(f"{self.name} is not running: the server is going down.")

    async def _live(self) -> None:
        """One life of the process, and what follows from how it ended."""
        born = _now()
        said = await self._process_life()
        was_ready = self._future().done()
        if was_ready and _now() - born > STABLE_S:
            self._short_lives = 0
        pause_s = BACK_OFF_S[min(self._short_lives, len(BACK_OFF_S) - 1)]
        self._short_lives += 1
        if was_ready:
            self._ready = None
            _log.warning("%s ended: %s; it is started again in %g s", self.name, said, pause_s)
            await asyncio.sleep(pause_s)
        else:
            self._wanted.clear()
            self._retry_at = _now() + pause_s
            self._fail(f"{self.name} cannot start: {said}")
            _log.warning("%s cannot start: %s", self.name, said)

    async def _process_life(self) -> str:
        """Start the process and wait for its end; gives the reason: its own error, else its last words and status."""
        # -P: a file in the working directory must not stand in for one of our modules
        command = (sys.executable, "-P", "-m", self._module)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=PIPE, start_new_session=True
            )
        except OSError as error:
            return f"no process could be made: {error}."
        self.pid = process.pid
        try:
            async with asyncio.TaskGroup() as group:
                own_error = group.create_task(self._announced(process))
                last_words = group.create_task(_last_words(process))
                await process.wait()
        finally:
            self.pid = None
            _kill(process)
            await process.wait()
        said = last_words.result()
        if own_error.result() and said:
            _log.warning("%s said last: %s", self.name, said)
        return own_error.result() or f"{said} (exit status {process.returncode})".strip()

    async def _announced(self, process: Process) -> str:
        """Hand over settings and key and take the child's line; gives the error that it names, else an empty text."""
        stdin, stdout = process.stdin, process.stdout
        assert stdin is not None  # noqa: S101 - opened as a pipe
        assert stdout is not None  # noqa: S101 - opened as a pipe
        key = secrets.token_hex(32)
        try:
            async with asyncio.timeout(START_S):
                stdin.write(json.dumps({**self._settings, "key": key}).encode() + b"\n")
                announcement = msgspec.json.decode(await stdout.readline(), type=Announcement)
        except TimeoutError:
            _kill(process)
            return f"it was not ready within {START_S:g} s."
        except msgspec.DecodeError:
            _kill(process)  # dead or dying already: its last words tell why
            return ""
        if announcement.error:
            return announcement.error
        self._future().set_result(Address(f"http://127.0.0.1:{announcement.port}/v1", key))
        return ""

    def _future(self) -> asyncio.Future[Address]:
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
        return self._ready

    def _fail(self, message: str) -> None:
        if self._future().done():
            self._ready = None
        ready = self._future()
        ready.set_exception(ChildUnavailableError(message))
        ready.exception()  # looked at: perhaps nobody waits for it


async def _last_words(process: Process) -> str:
    """Read standard error to its end, so that it never blocks the child, and give the last of it."""
    assert process.stderr is not None  # noqa: S101 - opened as a pipe
    kept = b""
    while piece := await process.stderr.read(STDERR_KEPT_BYTES):
        kept = (kept + piece)[-STDERR_KEPT_BYTES:]
    return kept.decode(errors="replace").strip()


def _kill(process: Process) -> None:
    """Kill the process and whatever it has started (it leads a session of its own)."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _now() -> float:
    return asyncio.get_running_loop().time()
