"""Measure Trunkline, nginx and others side by side in one run: `make bench`, or `python bench/run.py --help`."""

import argparse
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from operator import itemgetter
from types import FrameType

import servers
from processes import BenchError, Program, stolen_s
from report import Results, markdown
from scenarios import SCENARIOS, Lab, Metrics, Scenario
from servers import Server

QUICK_LEAVES_OUT = {"idle-5000", "workers"}
MOST_STOLEN = 0.01
"""A measurement is made again if the hypervisor took more than this of a core: others' work is not what is measured."""
TRIES = 2
SERVERS = "nginx,bare,trunkline"


def arguments() -> argparse.Namespace:
    """Read the command line."""
    names = ", ".join(scenario.name for scenario in SCENARIOS)
    parser = argparse.ArgumentParser(prog="bench/run.py", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--rounds", type=int, help="how often each thing is measured (default 5)")
    parser.add_argument("--seconds", type=float, help="length of one measurement (default 3)")
    parser.add_argument(
        "--quick", action="store_true", help="one round of one second, without 5,000 streams and workers"
    )
    parser.add_argument("--only", metavar="NAME,…", help=f"scenarios: {names}; streams means all streams-…")
    parser.add_argument("--servers", metavar="NAME,…", default=SERVERS, help=f"default {SERVERS}")
    parser.add_argument("--litellm", metavar="PATH", help="the program `litellm` of a venv that has litellm[proxy]")
    parser.add_argument("--peer", metavar="NAME=URL", action="append", default=[], help="a gateway that runs already")
    parser.add_argument(
        "--gather",
        metavar="MS",
        type=float,
        default=1,
        help="with 64 fast streams, let the load read this much together (default 1; 0: load is the bottleneck)",
    )
    parser.add_argument("--gateway-core", type=int, default=0)
    parser.add_argument("--load-core", type=int, default=1)
    return parser.parse_args()


def chosen(args: argparse.Namespace) -> list[Scenario]:
    """Pick the scenarios of this run."""
    if not args.only:
        return [one for one in SCENARIOS if not (args.quick and one.name in QUICK_LEAVES_OUT)]
    wanted = set(args.only.split(","))
    picked = [one for one in SCENARIOS if one.name in wanted or one.name.partition("-")[0] in wanted]
    unknown = wanted - {one.name for one in picked} - {one.name.partition("-")[0] for one in picked}
    if unknown:
        raise BenchError(f"--only {','.join(sorted(unknown))}: there are {', '.join(one.name for one in SCENARIOS)}")
    return picked


def contestants(args: argparse.Namespace) -> list[Server]:
    """Configure the gateways of this run."""
    makers = {"nginx": servers.nginx, "bare": servers.bare, "trunkline": servers.trunkline}
    wanted = [name for name in args.servers.split(",") if name]
    if unknown := [name for name in wanted if name not in makers]:
        raise BenchError(
            f"--servers {','.join(unknown)}: there are {', '.join(makers)}; others by --litellm and --peer"
        )
    found = [makers[name]() for name in wanted]
    if args.litellm:
        found.append(servers.litellm(args.litellm))
    return found + [servers.peer(declared) for declared in args.peer]


class Run:
    """One run over all scenarios, servers and rounds."""

    def __init__(self, lab: Lab, contestants: Sequence[Server], rounds: int) -> None:
        self.lab = lab
        self.contestants = contestants
        self.rounds = rounds
        self.results: Results = {}
        self.done = 0
        self.all = 0
        self.again = 0
        """How often a measurement was repeated because it was disturbed."""

    def everything(self, scenarios: Sequence[Scenario]) -> None:
        """Measure; what has been measured stays in `results` when it is broken off."""
        plan = [(scenario, list(self.entrants(scenario))) for scenario in scenarios]
        self.all = sum(len(entrants) for _, entrants in plan) * self.rounds
        for scenario, entrants in plan:
            self.one(scenario, entrants)

    def entrants(self, scenario: Scenario) -> Iterator[Server]:
        """Give who takes part."""
        if scenario.workers:
            for server in self.contestants:
                if server.name == "trunkline":
                    yield from (server, servers.trunkline(9212, workers=2))
            return
        if not scenario.fresh:
            yield servers.direct()
        yield from self.contestants

    def one(self, scenario: Scenario, entrants: Sequence[Server]) -> None:
        """Take the servers in turn, round after round."""
        measured = self.results.setdefault(scenario.name, {server.name: [] for server in entrants})
        cores = self.lab.both if scenario.workers else str(self.lab.gateway_core)
        with ExitStack() as stack:
            kept: dict[str, Program | None] = {}
            for turn in range(self.rounds):
                for server in entrants:
                    gave: Metrics | str
                    try:
                        if not scenario.fresh and server.name not in kept:
                            kept[server.name] = stack.enter_context(server.running(cores))
                        gave = self.undisturbed(partial(self.measure, scenario, server, cores, kept))
                    except BenchError as error:
                        gave = str(error)
                    measured[server.name].append(gave)
                    self.tell(scenario, server, turn, gave)

    def measure(self, scenario: Scenario, server: Server, cores: str, kept: Mapping[str, Program | None]) -> Metrics:
        """Measure once."""
        if not scenario.fresh:
            return scenario.run(self.lab, server, kept[server.name])
        with server.running(cores) as program:
            return scenario.run(self.lab, server, program)

    def undisturbed(self, measure: Callable[[], Metrics]) -> Metrics:
        """Measure, and again where a hypervisor took the cores away; the least disturbed counts."""
        tries: list[tuple[float, Metrics]] = []
        while len(tries) < TRIES and (not tries or tries[-1][0] > MOST_STOLEN):
            begun, stolen = time.monotonic(), stolen_s()
            gave = measure()
            tries.append(((stolen_s() - stolen) / (time.monotonic() - begun), gave))
        self.again += len(tries) - 1
        return min(tries, key=itemgetter(0))[1]

    def tell(self, scenario: Scenario, server: Server, turn: int, gave: Metrics | str) -> None:
        """Say how far it is, on stderr."""
        self.done += 1
        figures = gave if isinstance(gave, str) else "  ".join(f"{key} {value:,.4g}" for key, value in gave.items())
        place = f"[{self.done:3}/{self.all}] {scenario.name:13} round {turn + 1}/{self.rounds}  {server.name:12}"
        print(place, figures, file=sys.stderr, flush=True)


def prepare(args: argparse.Namespace) -> None:
    """Raise limits, refuse what cannot be measured, let signals end the run in order."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if not {args.gateway_core, args.load_core} <= os.sched_getaffinity(0) or args.gateway_core == args.load_core:
        raise BenchError(
            "two cores are needed: one for the gateway, one for mock and load (--gateway-core, --load-core)"
        )
    if hard < 12_000 and "idle-5000" in {one.name for one in chosen(args)}:
        raise BenchError(
            f"5,000 streams need 12,000 descriptors in a gateway, the limit is {hard}: `ulimit -Hn`, or --only"
        )

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, leave)


def write(run: Run, args: argparse.Namespace, load_before: float) -> None:
    """Print the table and keep it; a part of a run does not replace the whole one's results."""
    facts = f"{run.rounds} rounds of {run.lab.seconds:g} s, load average before {load_before:.2f}"
    if run.again:
        facts += f", {run.again} measurements repeated because the hypervisor took over {MOST_STOLEN:.1%} of a core"
    text = markdown(run.results, run.contestants, facts)
    whole = not (args.quick or args.only or args.servers != SERVERS) and run.done == run.all
    target = (servers.HERE if whole else servers.BUILD) / "RESULTS.md"
    target.write_text(text)
    (servers.BUILD / "results.json").write_text(json.dumps(run.results, indent=1))
    print(text)
    print(f"written to {target}", file=sys.stderr)


def main() -> int:
    """Run the bench; exit 1 when something stood in its way, 130 when it was broken off."""
    args = arguments()
    args.rounds = args.rounds or (1 if args.quick else 5)
    args.seconds = args.seconds or (1 if args.quick else 3)
    load_before = os.getloadavg()[0]
    try:
        prepare(args)
        scenarios, entered = chosen(args), contestants(args)
        with servers.mock(str(args.load_core)) as mock:
            run = Run(Lab(mock, args.gateway_core, args.load_core, args.seconds, args.gather), entered, args.rounds)
            try:
                run.everything(scenarios)
            finally:
                write(run, args, load_before)
    except BenchError as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bench: broken off", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
