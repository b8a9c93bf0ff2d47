"""The child's side of an embedded model: takes its settings, says where it listens, and ends with its parent."""

import ctypes
import os
import signal
import sys
import threading
from typing import NoReturn, TypeVar

import msgspec

PR_SET_PDEATHSIG = 1  # <linux/prctl.h>

Settings = TypeVar("Settings")


class Parent:
    """The process that started this one and holds the other ends of standard input and output.

    Make it first: from then on what is printed goes to standard error, and this process ends when the parent does.
    """

    def __init__(self) -> None:
        if sys.platform == "linux":
            # the watching thread cannot run while native code holds the interpreter, as when weights are loaded
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        self._line = sys.stdin.buffer.readline()
        self._out = os.dup(1)
        os.dup2(2, 1)
        threading.Thread(target=_end_with_parent, daemon=True).start()

    def settings(self, shape: type[Settings]) -> Settings:
        """Read what `SupervisedChild` was given, with `key` added: the bearer key to ask of every request."""
        return msgspec.json.decode(self._line, type=shape)

    def ready(self, port: int) -> None:
        """Say that 127.0.0.1:port answers."""
        self._say({"port": port})

    def refuse(self, reason: str) -> NoReturn:
        """Say in one sentence why there will be no answer, and end."""
        self._say({"error": reason})
        raise SystemExit(1)

    def _say(self, announcement: dict[str, object]) -> None:
        os.write(self._out, msgspec.json.encode(announcement) + b"\n")
        os.close(self._out)


def _end_with_parent() -> None:
    while os.read(0, 1024):
        pass
    os._exit(0)
