"""Copying SQLite databases while they are in use."""

import sqlite3
from contextlib import closing
from pathlib import Path

PAGES = 1024
"""Pages that are copied at a time; in between, others may write."""


def copy(source: Path, target: Path) -> None:
    """Copy a database as it is at one moment, and check the copy. Raises OSError; sqlite3.Error when it is damaged."""
    partial = target.with_name(f".{target.name}.partial")
    partial.unlink(missing_ok=True)
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as old,
            closing(sqlite3.connect(partial)) as new,
        ):
            old.backup(new, pages=PAGES)
            new.execute("PRAGMA journal_mode = DELETE")  # one file, nothing beside it
            verdict = new.execute("PRAGMA integrity_check").fetchone()[0]
        if verdict != "ok":
            raise sqlite3.DatabaseError(f"the copy of {source.name} is damaged: {verdict}")
        partial.chmod(0o600)
        partial.replace(target)
    finally:
        partial.unlink(missing_ok=True)
