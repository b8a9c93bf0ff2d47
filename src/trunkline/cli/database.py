"""Commands that work on the database of this configuration, beside a running gateway or without one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, TypeVar

import click

from trunkline.cli.loading import load_or_exit

if TYPE_CHECKING:
    from trunkline.config.schema import Config
    from trunkline.storage.sql.database import Database

T = TypeVar("T")
data_dir = click.option("--data-dir", metavar="DIR", help="Where state is kept [./data].")


def with_database(config: str | None, folder: str | None, work: "Callable[[Config, Database], Awaitable[T]]") -> T:
    """Open the database, do the work, close it; what goes wrong is one line and exit status 1."""
    from pathlib import Path

    from trunkline.config.read import ConfigError
    from trunkline.core.errors import GatewayError
    from trunkline.core.state import StorageError
    from trunkline.storage.sql.database import Database
    from trunkline.storage.sql.migrate import upgrade

    loaded = load_or_exit(config, {"server.data_dir": folder} if folder else None).config

    state = Path(loaded.server.data_dir)

    async def run() -> T:
        database = Database.at(loaded.storage.database.reveal() if loaded.storage.database else state / "trunkline.db")
        try:
            await upgrade(database)
            return await work(loaded, database)
        finally:
            await database.close()

    try:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        return asyncio.run(run())
    except (GatewayError, StorageError, ConfigError, OSError) as error:
        click.echo(f"trunkline: {error}", err=True)
        raise SystemExit(1) from None
