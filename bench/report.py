"""Medians, ratios and the Markdown that shows them."""

import os
import platform
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from scenarios import Metrics
from servers import Server

Results = dict[str, dict[str, list[Metrics | str]]]
"""Scenario → server → what each round gave; a sentence where it gave no figures."""


class Row(NamedTuple):
    """One line of the table. `form` is how a figure is written; the goal is a ratio to `base`, or a value."""

    scenario: str
    metric: str
    title: str
    form: str = ",.0f"
    at_least: float | None = None
    at_most: float | None = None
    absolute: bool = False
    base: str = "nginx"


ROWS = (
    Row("streams-64", "chunks_s", "streams of 200 chunks × 64, chunks/s", at_least=0.8),
    Row("streams-16", "chunks_s", "… × 16, chunks/s"),
    Row("streams-1", "chunks_s", "… × 1, chunks/s"),
    Row("streams-64", "cpu_s_per_mchunk", "… × 64, CPU s per million chunks", ".1f"),
    Row("unstreamed-64", "requests_s", "unstreamed × 64, requests/s", at_least=0.25),
    Row("unstreamed-16", "requests_s", "… × 16, requests/s"),
    Row("unstreamed-1", "requests_s", "… × 1, requests/s"),
    Row("unstreamed-64", "cpu_us_per_request", "… × 64, CPU µs per request"),
    Row("paced", "cpu_s_per_mchunk", "100 streams paced at 10 ms, CPU s per million chunks", ".1f", at_most=2.5),
    Row("paced", "chunk_p50_ms", "… from upstream to client per chunk, p50 ms", ".3f", at_most=0.25, absolute=True),
    Row("paced", "chunk_p99_ms", "… p99 ms", ".3f", at_most=2, absolute=True),
    Row("paced", "first_p50_ms", "… time to first chunk, p50 ms", ".3f", at_most=4),
    Row("paced", "first_p99_ms", "… p99 ms", ".3f"),
    Row("idle-1000", "kib_per_stream", "1,000 idle streams, KiB each", ".1f", at_most=24, absolute=True),
    Row("idle-5000", "kib_per_stream", "5,000 idle streams, KiB each", ".1f", at_most=24, absolute=True),
    Row(
        "images",
        "worst_gap_ms",
        "worst gap in a text stream while ten 20 MB images pass, ms",
        ".1f",
        at_most=100,
        absolute=True,
    ),
    Row("images", "pictures_s", "… the images have passed after, s", ".2f"),
    Row("start", "healthy_s", "start to healthy, s", ".2f", at_most=1, absolute=True),
    Row("start", "idle_mb", "resident when idle, MB", ".1f", at_most=60, absolute=True),
)
WORKER_ROWS = (
    Row("workers", "chunks_s", "streams × 64, chunks/s", at_least=1.25, base="trunkline"),
    Row("workers", "requests_s", "unstreamed × 64, requests/s", at_least=1.25, base="trunkline"),
)


def middle(rounds: Sequence[Metrics | str], metric: str) -> float | None:
    """Median over the rounds that gave the figure."""
    found = [one[metric] for one in rounds if isinstance(one, dict) and metric in one]
    return median(found) if found else None


def ratio(rounds: Sequence[Metrics | str], base: Sequence[Metrics | str], metric: str) -> float | None:
    """Median of the ratios within each round, whose halves were measured one after the other."""
    pairs = [
        one[metric] / other[metric]
        for one, other in zip(rounds, base, strict=False)
        if isinstance(one, dict) and isinstance(other, dict) and metric in one and other.get(metric)
    ]
    return median(pairs) if pairs else None


def judged(row: Row, value: float | None, times: float | None) -> str:
    """Say what is asked, and whether the figure reaches it."""
    limit = row.at_least if row.at_least is not None else row.at_most
    if limit is None:
        return ""
    asked = f"{'≥' if row.at_least is not None else '≤'} {limit:g}" + ("" if row.absolute else f" × {row.base}")
    figure = value if row.absolute else times
    if figure is None:
        return asked
    reached = figure >= limit if row.at_least is not None else figure <= limit
    return f"{asked} {'✓' if reached else '✗'}"


def table(results: Results, rows: Sequence[Row], servers: Sequence[str], subject: str) -> list[str]:
    """Build a Markdown table; ratios stand in brackets behind the figures."""
    lines = [f"| | {' | '.join(servers)} | asked |", "|---" * (len(servers) + 2) + "|"]
    for row in rows:
        measured = results.get(row.scenario)
        if measured is None:
            continue
        base = measured.get(row.base, [])
        cells = []
        for server in servers:
            rounds = measured.get(server, [])
            value, times = middle(rounds, row.metric), ratio(rounds, base, row.metric)
            written = "–" if value is None else f"{value:{row.form}}"
            if times is not None and server not in {row.base, "direct"}:
                written += f" ({times:.2f})"
            if any(isinstance(one, str) for one in rounds):
                written += " ⚠"
            cells.append(written)
        rounds = measured.get(subject, [])
        goal = judged(row, middle(rounds, row.metric), ratio(rounds, base, row.metric))
        lines.append(f"| {row.title} | {' | '.join(cells)} | {goal} |")
    return lines


def machine() -> str:
    """Name the machine as far as it matters here."""
    cpu = next(
        (line.partition(": ")[2] for line in read("/proc/cpuinfo") if line.startswith("model name")), "unknown CPU"
    )
    memory = next((int(line.split()[1]) for line in read("/proc/meminfo") if line.startswith("MemTotal")), 0)
    system = f"{platform.system()} {platform.release()}"
    python = f"Python {platform.python_version()} ({platform.python_compiler()})"
    return f"{cpu}, {os.cpu_count()} cores, {memory / 1e6:.0f} GB; {system}; {python}"


def read(path: str) -> list[str]:
    """Read the lines of a file of the kernel's."""
    return Path(path).read_text().split("\n")


def commit() -> str:
    """Name the commit that was measured."""
    argv = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--dirty"]
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout.strip() or "unknown"


def busy_lines(results: Results, servers: Sequence[str]) -> list[str]:
    """Say who was the bottleneck: the share of a core that gateway and harness used at full load."""
    lines = []
    for name in ("streams-64", "unstreamed-64", "paced"):
        shares = []
        for server in servers:
            rounds = results.get(name, {}).get(server, [])
            gateway, harness = middle(rounds, "busy"), middle(rounds, "harness_busy")
            if gateway is not None and harness is not None:
                shares.append(f"{server} {gateway:.0%} / {harness:.0%}")
        if shares:
            lines.append(f"- {name}: {', '.join(shares)}")
    return ["", "Share of its core used by the gateway / by mock and load on theirs:", "", *lines] if lines else []


def trouble_lines(results: Results) -> list[str]:
    """List the rounds without figures."""
    said = {
        f"- {scenario}, {server}: {one}"
        for scenario, measured in results.items()
        for server, rounds in measured.items()
        for one in rounds
        if isinstance(one, str)
    }
    return ["", "⚠ Rounds without figures:", "", *sorted(said)] if said else []


def markdown(results: Results, servers: Sequence[Server], facts: str) -> str:
    """Write the whole report."""
    names = ["direct", *(server.name for server in servers)]
    versions = ", ".join(f"{server.name}: {server.version}" for server in servers if server.version)
    lines = [
        "# Results",
        "",
        "Written by `make bench`; what each line means is in [README.md](README.md). Medians, with the median of the",
        "ratios to nginx within each round in brackets; *direct* is the load on the mock with nothing between, both on",
        "one core.",
        "",
        f"- machine: {machine()}",
        f"- {time.strftime('%Y-%m-%d')}, commit {commit()}; {facts}",
        f"- {versions}",
        "",
        *table(results, ROWS, names, "trunkline"),
    ]
    if "workers" in results:
        lines += ["", "Both cores shared by gateway, mock and load:", ""]
        lines += table(results, WORKER_ROWS, ["trunkline", "trunkline-2"], "trunkline-2")
    lines += [*busy_lines(results, names), *trouble_lines(results), ""]
    return "\n".join(lines)
