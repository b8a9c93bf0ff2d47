"""The built playground and admin pages, as package data."""

from pathlib import Path

DIST = Path(__file__).parent / "dist"
"""`index.html`, `admin/index.html` and `assets/`; without them when the package was installed so: see `why_not`."""


def why_not() -> str:
    """Say in one sentence why the pages were not built, as far as the build hook could tell."""
    note = DIST / "NOT_BUILT"
    return note.read_text("utf-8").strip() if note.is_file() else "The pages have not been built."
