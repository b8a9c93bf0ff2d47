"""The built playground and admin pages, as package data."""

from importlib.resources import files
from importlib.resources.abc import Traversable


def built() -> dict[str, bytes]:
    """Give the built files by their address (`index.html`, `assets/index-….js`, and `….br`, `….gz` of them).

    Empty when the package was installed without them: see `why_not`.
    """
    return {name: data for name, data in _under(_dist(), "") if name not in {"STAMP", "NOT_BUILT"}}


def why_not() -> str:
    """Say in one sentence why the pages were not built, as far as the build hook could tell."""
    note = _dist() / "NOT_BUILT"
    return note.read_text("utf-8").strip() if note.is_file() else "The pages have not been built."


def _dist() -> Traversable:
    return files(__name__) / "dist"


def _under(folder: Traversable, prefix: str) -> list[tuple[str, bytes]]:
    found: list[tuple[str, bytes]] = []
    for entry in folder.iterdir() if folder.is_dir() else ():
        name = f"{prefix}{entry.name}"
        found += _under(entry, f"{name}/") if entry.is_dir() else [(name, entry.read_bytes())]
    return found
