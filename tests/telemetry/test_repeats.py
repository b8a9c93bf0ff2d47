"""The log of the process while the database is away."""

import io
import logging

from trunkline.core.state import StorageError
from trunkline.telemetry.repeats import EVERY_S, Repeats


def test_trouble_with_the_storage_is_said_once_a_minute() -> None:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.addFilter(Repeats())
    began = 1_800_000_000.0

    def say(after_s: float, told: str, *args: object) -> None:
        record = logging.LogRecord("trunkline.x", logging.WARNING, "x.py", 1, told, args, None)
        record.created = began + after_s
        handler.handle(record)

    for quarter in range(20):
        say(quarter / 4, "not written: %s", StorageError("refused"))
        say(quarter / 4, "worker %d ended", 1)
    say(5, "not written: %s", StorageError("starting"))
    say(EVERY_S, "not written: %s", StorageError("refused"))
    lines = out.getvalue().splitlines()
    assert [line for line in lines if "worker" not in line] == [
        "not written: refused",
        "not written: starting",
        "not written: refused (and 19 times before)",
    ]
    assert lines.count("worker 1 ended") == 20
