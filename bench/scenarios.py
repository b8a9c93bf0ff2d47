"""What is done to each server, and what is measured while it is done."""

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from processes import BenchError, Program, Weight
from servers import STREAMLOAD, Server, direct

Metrics = dict[str, float]
IMAGE_MB = 20
IMAGES = 10


@dataclass(frozen=True)
class Lab:
    """The machine as it is divided up, and the upstream that runs all the time."""

    mock: Program
    gateway_core: int
    load_core: int
    seconds: float
    gather_ms: float

    @property
    def both(self) -> str:
        """Both cores, as taskset names them."""
        return f"{self.gateway_core},{self.load_core}"

    def start_load(
        self, server: Server, *options: object, cores: str = "", hold: bool = False
    ) -> subprocess.Popen[str]:
        """Start the load generator against a server."""
        headers = [part for header in server.headers for part in ("--header", header)]
        argv = [STREAMLOAD, "load", "--port", server.port, "--path", server.path, *headers, *options]
        return subprocess.Popen(
            ["taskset", "--cpu-list", cores or str(self.load_core), *map(str, argv)],
            stdin=subprocess.PIPE if hold else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def load(self, server: Server, *options: object, cores: str = "") -> dict[str, Any]:
        """Run the load generator to its end. Raises FaultyError when an answer was not what the upstream sent."""
        with stopping(self.start_load(server, *options, cores=cores)) as process:
            return finished(process)

    def measure(self, server: Server, *options: object, warm_s: float = 0.5, cores: str = "") -> dict[str, Any]:
        """Run the load for the usual time; longer where a server is slow."""
        times = ("--warm", warm_s * server.slowness, "--seconds", self.seconds * server.slowness)
        return self.load(server, *options, *times, cores=cores)


class FaultyError(BenchError):
    """Answers came back wrong, so their speed means nothing."""


def finished(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Wait for what the load generator has to say; its input is closed."""
    try:
        return read_report(process.communicate(timeout=300)[0])
    except subprocess.TimeoutExpired:
        raise BenchError("no end after five minutes") from None


def read_report(line: str) -> dict[str, Any]:
    """Read what the load generator said."""
    try:
        said: dict[str, Any] = json.loads(line)
    except ValueError:
        raise BenchError("the load generator ended without a report") from None
    if said["faulty"]:
        kinds = ", ".join(f"{count} × {kind}" for kind, count in said["faults"].items())
        raise FaultyError(f"{kinds} of {said['all_requests']} {said.get('complaint', '')}".strip())
    return said


def quantiles(said: dict[str, Any], what: str) -> Metrics:
    """Give p50 and p99 in ms; nothing when nothing of the kind fell into the measured time."""
    return {f"{what}_{name}_ms": value for name, value in said.get(f"{what}_ms", {}).items() if name != "max"}


@contextmanager
def stopping(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Whatever happens, this process has ended afterwards."""
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=5)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None and not pipe.closed:
                pipe.close()


class Watch:
    """CPU time of the gateway and of the harness over a piece of work."""

    def __init__(self, lab: Lab, program: Program | None) -> None:
        self.lab, self.program = lab, program
        self.begin = self.look()

    def look(self) -> tuple[float, Weight, Weight]:
        """Now."""
        gateway = self.program.weigh() if self.program else Weight(0, 0, 0)
        return time.monotonic(), gateway, self.lab.mock.weigh()

    def shares(self, said: dict[str, Any]) -> Metrics:
        """Give the shares of a core that were used, and the CPU time per request or chunk."""
        (begin, gateway, mock), (end, gateway_end, mock_end) = self.begin, self.look()
        cpu_s, harness_s = gateway_end.cpu_s - gateway.cpu_s, mock_end.cpu_s - mock.cpu_s + said["cpu_s"]
        metrics = {"harness_busy": harness_s / (end - begin)}
        if self.program:
            metrics["busy"] = cpu_s / (end - begin)
            if said["all_chunks"]:
                metrics["cpu_s_per_mchunk"] = cpu_s / said["all_chunks"] * 1e6
            else:
                metrics["cpu_us_per_request"] = cpu_s / said["all_requests"] * 1e6
        return metrics


def unstreamed(connections: int) -> Callable[[Lab, Server, Program | None], Metrics]:
    """Answers of about 1 KB, the next question when one is there."""

    def run(lab: Lab, server: Server, program: Program | None) -> Metrics:
        watch = Watch(lab, program)
        said = lab.measure(server, "--unstreamed", "--connections", connections)
        return {"requests_s": said["requests_s"]} | quantiles(said, "whole") | watch.shares(said)

    return run


def streams(connections: int) -> Callable[[Lab, Server, Program | None], Metrics]:
    """Streams of 200 chunks as fast as they come."""

    def run(lab: Lab, server: Server, program: Program | None) -> Metrics:
        watch = Watch(lab, program)
        gather = ("--gather", lab.gather_ms) if connections > 16 else ()
        said = lab.measure(server, "--model", "chunks-200", "--chunks", 200, "--connections", connections, *gather)
        return {"chunks_s": said["chunks_s"]} | watch.shares(said)

    return run


def paced(lab: Lab, server: Server, program: Program | None) -> Metrics:
    """Run 100 streams with a chunk every 10 ms, one begun each 10.1 ms, so that their chunks come 0.1 ms apart."""
    watch = Watch(lab, program)
    options = ("--model", "paced-100-10", "--chunks", 100, "--connections", 100, "--spread", 1010)
    said = lab.measure(server, *options, warm_s=1.2)
    return quantiles(said, "chunk") | quantiles(said, "first") | watch.shares(said)


def idle(count: int) -> Callable[[Lab, Server, Program | None], Metrics]:
    """Hold so many streams open after their first chunk and see what memory they take."""

    def run(lab: Lab, server: Server, program: Program | None) -> Metrics:
        if program is None or count > server.streams_max:
            return {}
        lab.load(server, "--model", "chunks-20", "--chunks", 20, "--connections", 50, "--requests", 200)
        time.sleep(0.5)
        before = program.weigh()
        options = ("--model", "held", "--connections", count, "--spread", count * 2, "--hold")
        with stopping(lab.start_load(server, *options, hold=True)) as process:
            begun = process.stdout.readline() if process.stdout else ""
            time.sleep(1)
            after = program.weigh()
            finished(process)
        if f'"held":{count},' not in begun:
            raise FaultyError(f"not all of {count} streams began: {begun.strip()}")
        return {"kib_per_stream": (after.own_bytes - before.own_bytes) / count / 1024}

    return run


def images(lab: Lab, server: Server, _program: Program | None) -> Metrics:
    """Let ten pictures of 20 MB, a line each, pass together beside one stream of text."""
    lab.load(direct(), "--model", f"image-{IMAGE_MB}", "--requests", 1)  # which draws the picture
    text_options = ("--model", "paced-400-10", "--chunks", 400, "--connections", 1, "--requests", 1)
    picture_options = ("--model", f"image-{IMAGE_MB}", "--connections", IMAGES, "--requests", IMAGES)
    with stopping(lab.start_load(server, *text_options)) as text:
        time.sleep(0.5)
        pictures = lab.load(server, *picture_options, "--bytes", IMAGE_MB * 1_000_000)
        said = finished(text)
    return {"worst_gap_ms": said["worst_gap_ms"], "pictures_s": pictures["seconds"]}


def shared_cores(lab: Lab, server: Server, _program: Program | None) -> Metrics:
    """Let the server, the upstream and the load share both cores: what another worker is worth."""
    lab.mock.pin({lab.gateway_core, lab.load_core})
    try:
        answers = lab.measure(server, "--unstreamed", "--connections", 64, cores=lab.both)
        fast = ("--model", "chunks-200", "--chunks", 200, "--connections", 64, "--gather", lab.gather_ms)
        said = lab.measure(server, *fast, cores=lab.both)
        return {"requests_s": answers["requests_s"], "chunks_s": said["chunks_s"]}
    finally:
        lab.mock.pin({lab.load_core})


def start(_lab: Lab, _server: Server, program: Program | None) -> Metrics:
    """Weigh a server that has just become healthy."""
    if program is None:
        return {}
    time.sleep(1)
    return {"idle_mb": program.weigh().resident_bytes / 1e6, "healthy_s": program.healthy_s}


class Scenario(NamedTuple):
    """One thing that is done, round after round, to each server in turn."""

    name: str
    run: Callable[[Lab, Server, Program | None], Metrics]
    fresh: bool = False
    """Each time with a newly started server."""
    workers: bool = False
    """Trunkline alone, with one worker and with two."""


SCENARIOS = (
    Scenario("start", start, fresh=True),
    *(Scenario(f"unstreamed-{count}", unstreamed(count)) for count in (1, 16, 64)),
    *(Scenario(f"streams-{count}", streams(count)) for count in (1, 16, 64)),
    Scenario("paced", paced),
    Scenario("images", images),
    *(Scenario(f"idle-{count}", idle(count), fresh=True) for count in (1000, 5000)),
    Scenario("workers", shared_cores, workers=True),
)
