"""Commands that work on the database of this configuration, beside a running gateway or without one."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from trunkline.cli.loading import load_or_exit

if TYPE_CHECKING:
    from trunkline.config.schema import Config
    from trunkline.storage.sql.database import Database

T = TypeVar("T")
DataDir = Annotated[str | None, typer.Option("--data-dir", metavar="DIR", help="Where state is kept [./data].")]


def with_database(config: str | None, data_dir: str | None, work: "Callable[[Config, Database], Awaitable[T]]") -> T:
    """Open the database, do the work, close it; what goes wrong is one line and exit status 1."""
    from pathlib import Path

    from trunkline.config.read import ConfigError
    from trunkline.core.errors import GatewayError
    from trunkline.core.state import StorageError
    from trunkline.storage.sql.database import Database
    from trunkline.storage.sql.migrate import upgrade

    loaded = load_or_exit(config, {"server.data_dir": data_dir} if data_dir else None).config

    folder = Path(loaded.server.data_dir)

    async def run() -> T:
        database = Database.at(loaded.storage.database.reveal() if loaded.storage.database else folder / "trunkline.db")
        try:
            await upgrade(database)
            return await work(loaded, database)
        finally:
            await database.close()

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return asyncio.run(run())
    except (GatewayError, StorageError, ConfigError, OSError) as error:
        typer.echo(f"trunkline: {error}", err=True)
        raise typer.Exit(1) from None
