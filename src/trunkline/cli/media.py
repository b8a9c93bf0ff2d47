"""Pictures and films in the terminal: a progress bar while they are made, then files."""

import re
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from rich.console import Console
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from trunkline.core.media_type import EXTENSIONS
from trunkline.core.ports import HttpError, HttpRequest
from trunkline.upstream.client import Client

_PERCENT = re.compile(r"(\d+) %(?: · (.*))?\s*\Z")


class Bar:
    """Shows how far a medium is, from the lines that the gateway tells."""

    def __init__(self, console: Console, name: str) -> None:
        self._bar = Progress(
            SpinnerColumn(),
            TextColumn(name),
            BarColumn(),
            TextColumn("{task.fields[told]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("", total=100, told="")
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def take(self, line: str) -> bool:
        """Show a line if it says how far the work is; else leave it to others."""
        found = _PERCENT.match(line)
        if found is None:
            return False
        if not self._started:
            self._started = True
            self._bar.start()
        told = f"{found[1]} %" + (f", {found[2]}" if found[2] else "")
        self._bar.update(self._task, completed=float(found[1]), told=told)
        return True


async def save(client: Client, url: str, directory: Path) -> Path:
    """Save a medium under its name in the gateway. Raises HttpError, OSError."""
    response = await client.open(HttpRequest("GET", url))
    try:
        if response.status != 200:
            raise HttpError("protocol", f"HTTP {response.status}")
        kind = response.headers.get("content-type", "")
        name = re.sub(r"[^\w.-]", "", url.partition("?")[0].rpartition("/")[2]) or "medium"
        path = directory / f"{name}.{EXTENSIONS.get(kind, 'bin')}"
        with _opened(path) as file:
            while piece := await response.read():
                file.write(piece)
    finally:
        await response.aclose()
    return path


def _opened(path: Path) -> BinaryIO:
    path.parent.mkdir(parents=True, exist_ok=True)
    return path.open("wb")
