"""`trunkline db`: bringing the database to this version's schema, and copying it while the gateway runs."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.database import data_dir
from trunkline.cli.loading import config_file, load_or_exit

if TYPE_CHECKING:
    from pathlib import Path

DATABASES = ("trunkline.db", "jobs.db")
PG_DUMP = (
    "trunkline: the database is PostgreSQL, which has tools of its own: `pg_dump --format=custom --file=trunkline.dump "
    "--dbname='{}'`; keep `server.secret` with it, for without it no key is recognised"
)


@click.group()
def db() -> None:
    """Upgrade and back up the database."""


@db.command()
@config_file
@data_dir
def upgrade(*, config: str | None, data_dir: str | None) -> None:
    """Bring the database to this version's schema.

    `serve` does so by itself when it starts.
    """
    import asyncio
    from pathlib import Path

    from trunkline.core.state import StorageError
    from trunkline.storage.sql import migrate
    from trunkline.storage.sql.database import Database

    loaded = load_or_exit(config, {"server.data_dir": data_dir} if data_dir else None).config
    folder = Path(loaded.server.data_dir)

    async def run() -> tuple[str | None, bool]:
        database = Database.at(loaded.storage.database.reveal() if loaded.storage.database else folder / DATABASES[0])
        try:
            return await migrate.revision(database), await migrate.upgrade(database)
        finally:
            await database.close()

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        former, done = asyncio.run(run())
    except (StorageError, OSError) as error:
        click.echo(f"trunkline: {error}", err=True)
        raise SystemExit(1) from None
    if done:
        click.echo(f"the database is at {migrate.HEAD} now; it was {f'at {former}' if former else 'empty'}")
    else:
        click.echo(f"the database is at {migrate.HEAD} already")


@db.command()
@click.argument("folder", metavar="DIR", help="A directory that is not there yet, or empty.")
@config_file
@data_dir
def backup(folder: str, *, config: str | None, data_dir: str | None) -> None:
    """Copy SQLite's databases and the server's secret.

    The gateway may run meanwhile.
    """
    import sqlite3
    from pathlib import Path

    loaded = load_or_exit(config, {"server.data_dir": data_dir} if data_dir else None).config
    if loaded.storage.database:
        from sqlalchemy import make_url

        shown = make_url(loaded.storage.database.reveal())._replace(drivername="postgresql", password=None)
        click.echo(PG_DUMP.format(shown.render_as_string()), err=True)
        raise SystemExit(1)
    try:
        copied = _copy(Path(loaded.server.data_dir), Path(folder))
    except (OSError, sqlite3.Error) as error:
        reason = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.strerror else error
        click.echo(f"trunkline: the backup failed: {reason}", err=True)
        raise SystemExit(1) from None
    click.echo(f"{', '.join(copied)} → {folder}; pictures and films are in {Path(loaded.server.data_dir) / 'media'}")


def _copy(source: "Path", target: "Path") -> list[str]:
    """Copy what there is; give the names. Raises OSError, sqlite3.Error."""
    import shutil

    from trunkline.config.secret_file import NAME
    from trunkline.storage.sql.backup import copy

    if not (source / DATABASES[0]).is_file():
        raise FileNotFoundError(2, "there is no database", str(source / DATABASES[0]))
    target.mkdir(parents=True, exist_ok=True, mode=0o700)
    if any(target.iterdir()):
        raise FileExistsError(17, "the directory is not empty", str(target))
    copied = [name for name in DATABASES if (source / name).is_file()]
    for name in copied:
        copy(source / name, target / name)
    if (source / NAME).is_file():
        shutil.copy2(source / NAME, target / NAME)  # with its mode
        copied.append(NAME)
    return copied
