"""Programs under measurement: pinned, started, asked for their health, weighed, and stopped by their id."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Self

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class BenchError(Exception):
    """What a person has to put right, in one sentence."""


class Weight(NamedTuple):
    """What a process and all its descendants used: CPU seconds since their start, bytes now."""

    cpu_s: float
    resident_bytes: int
    own_bytes: int
    """Shared pages divided among those that share them (Pss)."""


class Program:
    """One program with its children, pinned to cores."""

    def __init__(self, name: str, argv: Sequence[str], *, cores: str, folder: Path, env: Mapping[str, str]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.name = name
        self.healthy_s = 0.0
        self.begun = time.monotonic()
        self.log = folder / f"{name}.log"
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                ["taskset", "--cpu-list", cores, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "", **env},  # as installed: compiled once, not each time
                start_new_session=True,  # Ctrl-C reaches the bench, and the bench stops it
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def wait_healthy(self, port: int, path: str, timeout_s: float) -> None:
        """Return at the first 200, its time kept in `healthy_s`. Raises BenchError with the log's last line."""
        while (waited := time.monotonic() - self.begun) < timeout_s and self.process.poll() is None:
            if http_status(port, path) == 200:
                self.healthy_s = waited
                return
            time.sleep(0.005)
        ended = self.process.poll()
        why = f"did not answer {path} in {timeout_s:.0f} s" if ended is None else f"ended with status {ended}"
        last = self.log.read_text(errors="replace").strip().rpartition("\n")[2]
        raise BenchError(f"{self.name} {why}; the last line of {self.log.name} in bench/build/run: {last}")

    def pin(self, cores: set[int]) -> None:
        """Move the program itself (not its children) to other cores."""
        os.sched_setaffinity(self.process.pid, cores)

    def weigh(self) -> Weight:
        """Add up the process tree."""
        found = [weigh(pid) for pid in tree(self.process.pid)]
        return Weight(*(sum(part) for part in zip(*found, strict=True)))

    def stop(self) -> None:
        """Ask, wait, then kill what is left of the tree; by id, nothing else."""
        family = tree(self.process.pid)
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=10)
        for pid in family:
            if pid != self.process.pid and parent(pid) is not None:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        self.process.kill()
        self.process.wait()


def http_status(port: int, path: str) -> int | None:
    """Status of a GET on loopback, None when nobody answers."""
    request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n"
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=2) as connection:
            connection.sendall(request.encode())
            head = connection.recv(64)
    except OSError:
        return None
    return int(head[9:12]) if head.startswith(b"HTTP/1.") and head[9:12].isdigit() else None


def stat_fields(pid: int) -> list[str]:
    """Read what follows the name in /proc/PID/stat: state, parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()


def parent(pid: int) -> int | None:
    """Id of the parent, None when the process is gone."""
    try:
        return int(stat_fields(pid)[1])
    except (OSError, IndexError):
        return None


def stolen_s() -> float:
    """Give the seconds that the hypervisor has kept this machine's cores from running (proc(5), `steal`)."""
    return int(Path("/proc/stat").read_text().split("\n", 1)[0].split()[8]) / TICKS_PER_S


def tree(root: int) -> list[int]:
    """List the process and its descendants."""
    parents = {int(entry.name): parent(int(entry.name)) for entry in Path("/proc").iterdir() if entry.name.isdigit()}
    family = [root]
    for member in family:  # grows while it is walked
        family += [pid for pid, above in parents.items() if above == member]
    return family


def weigh(pid: int) -> Weight:
    """One process; children that it has waited for count as its own CPU time."""
    try:
        fields = stat_fields(pid)
        shares = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return Weight(0, 0, 0)
    cpu_s = sum(map(int, fields[11:15])) / TICKS_PER_S
    own_kb = next(int(line.split()[1]) for line in shares.split("\n") if line.startswith("Pss:"))
    return Weight(cpu_s, int(fields[21]) * PAGE_BYTES, own_kb * 1024)
