"""How many bytecodes and Python calls one call takes, or a second without calls: `uv run bench/micro/steps.py`.

No clock is read, so it says the same on any machine, busy or not. What is done by the time (booking, looking for
changes) is left out: functions that not every call meets. What C does for a bytecode is not in it.
"""

import argparse
import asyncio
import os
import re
import sys
from collections import Counter
from functools import partial
from types import CodeType, FrameType
from typing import Any

import call
import uvloop

CALLS = 60
REST_S = 10
OURS = "/trunkline/"
PACKAGE = re.compile(r"/(?:src|site-packages)/(\w+)")


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


async def rest(lab: call.Lab) -> Steps:
    """Count what is done in REST_S seconds without calls, and without what was left of the last ones."""
    await lab.run(CALLS)
    await asyncio.sleep(REST_S / 2)
    steps = Steps()
    sys.settrace(steps.enter)
    await asyncio.sleep(REST_S)
    sys.settrace(None)
    return steps


def print_rest(steps: Steps) -> None:
    """Print what a second takes, by package."""
    packages: Counter[str] = Counter()
    for code, bytecodes in steps.bytecodes.items():
        found = PACKAGE.search(code.co_filename)
        packages[found[1] if found else "Python"] += bytecodes
    for package, bytecodes in packages.most_common(6):
        print(f"{bytecodes / REST_S:8.0f}  {package}")
    entered, bytecodes = sum(steps.entered.values()), sum(steps.bytecodes.values())
    print(f"{bytecodes / REST_S:.0f} bytecodes in {entered / REST_S:.0f} Python calls for a second without calls")


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
    parser.add_argument("--rest", action="store_true", help="a second without calls")
    asked = parser.parse_args()
    stream = asked.stream or asked.slow
    call.CHUNKS = asked.chunks
    call.CONNECTIONS = 4
    calls = max(CALLS // asked.chunks, 4) if stream else CALLS
    os.environ.setdefault("TRUNKLINE_ADMIN_KEY", "bench")
    if asked.rest:
        print_rest(uvloop.run(call.measure(rest, stream=False)))
        return
    steps = uvloop.run(call.measure(partial(count, calls), stream=stream, slow=asked.slow))
    usual = [code for code in steps.bytecodes if OURS in code.co_filename and steps.entered[code] >= calls]
    units = calls * asked.chunks if stream else calls
    for code in sorted(usual, key=lambda code: -steps.bytecodes[code])[: asked.top]:
        print(f"{steps.bytecodes[code] / units:8.1f} in {steps.entered[code] / units:6.2f}  {place(code)}")
    bytecodes, entered = (sum(counted[code] for code in usual) / units for counted in (steps.bytecodes, steps.entered))
    print(f"{bytecodes:.0f} bytecodes in {entered:.1f} Python calls for {'a chunk' if stream else 'an answer'}")


if __name__ == "__main__":
    main()
