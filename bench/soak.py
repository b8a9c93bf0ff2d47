"""Does memory stay flat? Many paced streams for many minutes, weighed every ten seconds: `make soak`."""

import argparse
import json
import os
import subprocess
import sys
import time
from statistics import median
from typing import Any

import servers
from processes import BenchError, Program, Weight
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from scenarios import Lab, read_report, stopping
from servers import HERE, Server

EVERY_S = 10.0
CHUNKS, PAUSE_MS = 100, 50
"""Each stream: five seconds long, then the next one on the same connection."""
SETTLED = 0.2
"""So much of the run is for pools, caches and the allocator to find their size."""
GROWTH = 0.03
"""So much the last fifth may lie above what it was when settled."""
MIB = 1024 * 1024


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="bench/soak.py", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--streams", type=int, default=200, help="at the same time (default 200)")
    parser.add_argument("--minutes", type=float, default=10, help="how long (default 10)")
    parser.add_argument("--workers", type=int, default=1, help="processes of the gateway (default 1)")
    return parser.parse_args()


def soak(lab: Lab, server: Server, program: Program, args: argparse.Namespace) -> tuple[list[Weight], dict[str, Any]]:
    """Run the load to its end; gives the weights, and what the load generator says."""
    seconds = args.minutes * 60
    options = ("--model", f"paced-{CHUNKS}-{PAUSE_MS}", "--chunks", CHUNKS, "--connections", args.streams)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    weights = [program.weigh()]
    with (
        stopping(lab.start_load(server, *options, "--seconds", seconds, cores=lab.both)) as load,
        Progress(*columns, console=Console(stderr=True)) as progress,
    ):
        bar = progress.add_task("starting", total=seconds)
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds and load.poll() is None:
            time.sleep(min(EVERY_S, seconds - passed))
            weights.append(program.weigh())
            tell(progress, bar, weights, time.monotonic() - begun)
        return weights, read_report(load.communicate(timeout=60)[0])


def tell(progress: Progress, bar: TaskID, weights: list[Weight], passed_s: float) -> None:
    """Say how it goes."""
    now = weights[-1].own_bytes / MIB
    progress.update(bar, completed=passed_s, description=f"{now:6.1f} MiB")


def verdict(weights: list[Weight], said: dict[str, Any], args: argparse.Namespace) -> tuple[str, bool]:
    """Write the figures as Markdown, and judge."""
    own = [weight.own_bytes / MIB for weight in weights]
    fifth = max(1, int(len(own) * SETTLED))
    settled, last = median(own[fifth : 2 * fifth]), median(own[-fifth:])
    flat = last <= settled * (1 + GROWTH)
    cpu_s = weights[-1].cpu_s - weights[0].cpu_s
    minutes = "".join(
        f"| {int(number * EVERY_S // 60)} | {own[number]:.1f} | {weights[number].resident_bytes / MIB:.1f} |\n"
        for number in range(0, len(own), round(60 / EVERY_S))
    )
    text = (
        f"# {args.streams} streams for {args.minutes:g} minutes\n\n"
        f"`make soak`, {time.strftime('%d %b %Y', time.gmtime())}: {said['all_requests']:,} streams of {CHUNKS} "
        f"chunks, one every {PAUSE_MS} ms, each whole and in order; workers: {args.workers}; a key with a budget, "
        "prices, ledger and metrics on.\n"
        f"Memory when settled {settled:.1f} MiB, in the last fifth {last:.1f} MiB ({last / settled - 1:+.1%}): "
        f"{'flat' if flat else 'NOT FLAT'}. CPU {cpu_s:.0f} s. Highest {max(own):.1f} MiB.\n\n"
        f"| minute | MiB of its own (Pss) | resident |\n|---|---|---|\n{minutes}"
    )
    return text, flat


def main() -> int:
    """Run the soak; exit 1 when memory grew or an answer was wrong."""
    args = arguments()
    try:
        with servers.mock("0,1") as mock:
            server = servers.trunkline(9222, workers=args.workers)
            with server.running("0,1") as program:
                assert program is not None
                weights, said = soak(Lab(mock, 0, 1, args.minutes * 60, 1), server, program, args)
    except (BenchError, subprocess.TimeoutExpired) as error:
        print(f"soak: {error}", file=sys.stderr)
        return 1
    text, flat = verdict(weights, said, args)
    whole = args.minutes >= 10 and args.streams >= 200
    target = (HERE if whole else servers.BUILD) / "SOAK.md"
    target.write_text(text)
    (servers.BUILD / "soak.json").write_text(json.dumps([weight._asdict() for weight in weights]))
    print(text)
    print(f"written to {target}; load average {os.getloadavg()[0]:.1f}", file=sys.stderr)
    return 0 if flat else 1


if __name__ == "__main__":
    sys.exit(main())
