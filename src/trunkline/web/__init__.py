"""The built playground and admin pages, as package data."""

from pathlib import Path

DIST = Path(__file__).parent / "dist"


def built() -> dict[str, Path]:
    """Give the built files by their address (`index.html`, `assets/index-….js`, and `….br`, `….gz` of them).

    Empty when the package was installed without them: see `why_not`.
    """
    found = {path.relative_to(DIST).as_posix(): path for path in DIST.rglob("*") if path.is_file()}
    return {name: path for name, path in found.items() if name not in {"STAMP", "NOT_BUILT"}}


def why_not() -> str:
    """Say in one sentence why the pages were not built, as far as the build hook could tell."""
    note = DIST / "NOT_BUILT"
    return note.read_text("utf-8").strip() if note.is_file() else "The pages have not been built."
