"""How many bytecodes and Python calls one call takes, by function: `uv run bench/micro/steps.py`.

No clock is read, so it says the same on any machine, busy or not. What is done by the time (booking, looking for
changes) is left out: functions that not every call meets. What C does for a bytecode is not in it.
"""

import argparse
import os
import sys
from collections import Counter
from functools import partial
from types import CodeType, FrameType
from typing import Any

import call
import uvloop

CALLS = 60
OURS = "/trunkline/"


class Steps:
    """Counts what is executed."""

    def __init__(self) -> None:
        self.bytecodes: Counter[CodeType] = Counter()
        self.entered: Counter[CodeType] = Counter()

    def enter(self, frame: FrameType, _event: str, _arg: Any) -> Any:
        """Count a call, or a coroutine that goes on, and have its bytecodes told."""
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        self.entered[frame.f_code] += 1
        return self.step

    def step(self, frame: FrameType, event: str, _arg: Any) -> Any:
        """Count a bytecode."""
        if event == "opcode":
            self.bytecodes[frame.f_code] += 1
        return self.step


async def count(calls: int, lab: call.Lab) -> Steps:
    """Make so many calls and count."""
    steps = Steps()
    sys.settrace(steps.enter)
    await lab.run(calls)
    sys.settrace(None)
    return steps


def place(code: CodeType) -> str:
    """Name a function by its file and name."""
    return f"{code.co_filename.rpartition(OURS)[2]} {code.co_qualname}"


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--stream", action="store_true", help=f"streams of {call.CHUNKS} chunks that come in one read")
    parser.add_argument("--slow", action="store_true", help="streams whose chunks are read one by one")
    parser.add_argument(
        "--chunks", type=int, default=call.CHUNKS, help="chunks of a stream; 1 shows what it begins with"
    )
    parser.add_argument("--top", type=int, default=40, help="how many functions to list")
    asked = parser.parse_args()
    stream = asked.stream or asked.slow
    call.CHUNKS = asked.chunks
    call.CONNECTIONS = 4
    calls = max(CALLS // asked.chunks, 4) if stream else CALLS
    os.environ.setdefault("TRUNKLINE_ADMIN_KEY", "bench")
    steps = uvloop.run(call.measure(partial(count, calls), stream=stream, slow=asked.slow))
    usual = [code for code in steps.bytecodes if OURS in code.co_filename and steps.entered[code] >= calls]
    units = calls * asked.chunks if stream else calls
    for code in sorted(usual, key=lambda code: -steps.bytecodes[code])[: asked.top]:
        print(f"{steps.bytecodes[code] / units:8.1f} in {steps.entered[code] / units:6.2f}  {place(code)}")
    bytecodes, entered = (sum(counted[code] for code in usual) / units for counted in (steps.bytecodes, steps.entered))
    print(f"{bytecodes:.0f} bytecodes in {entered:.1f} Python calls for {'a chunk' if stream else 'an answer'}")


if __name__ == "__main__":
    main()
