"""A child process for the supervisor's tests; its settings say how it behaves."""

import os
import socket
import subprocess
import sys
import time

import msgspec

from trunkline.local.child import Parent


class Settings(msgspec.Struct):
    key: str
    behaviour: str
    marks: str = ""
    """A file that gets one line for every start."""


parent = Parent()
settings = parent.settings(Settings)
if settings.marks:
    with open(settings.marks, "a") as marks:  # noqa: PTH123 - plain and quick
        marks.write(f"{os.getpid()}\n")

match settings.behaviour:
    case "refuse":
        parent.refuse("there are no weights on this machine.")
    case "raise":
        print("x" * 1_000_000, file=sys.stderr)
        raise RuntimeError("the engine burst")
    case "garbage":
        os.write(parent._out, b"hello\n")
        time.sleep(60)
    case "mute":
        time.sleep(60)
    case "fail_once":
        with open(settings.marks) as marks:  # noqa: PTH123 - plain and quick
            starts = len(marks.readlines())
        if starts < 2:
            parent.refuse("not the first time.")
    case "grandchild":
        grandchild = subprocess.Popen(["sleep", "300"])
        with open(settings.marks, "a") as marks:  # noqa: PTH123 - plain and quick
            marks.write(f"{grandchild.pid}\n")

listener = socket.create_server(("127.0.0.1", 0))
print("what is printed does not disturb")
parent.ready(listener.getsockname()[1])
while True:
    client, _ = listener.accept()
    if client.recv(1024).decode() == settings.key:
        client.sendall(f"pid {os.getpid()}".encode())
    client.close()
