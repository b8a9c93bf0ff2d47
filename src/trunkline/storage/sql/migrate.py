"""Brings a database to this version's schema, in process, in one transaction, under a lock."""

from pathlib import Path
from typing import Any

from sqlalchemy import text
from sqlalchemy.engine import Connection

from trunkline.core.state import StorageError
from trunkline.storage.sql.database import Database

HEAD = "v0002"
"""The newest revision in `migrations/versions`; a test keeps the two together."""

ADVISORY_LOCK = 0x7472756E6B  # "trunk"


async def upgrade(database: Database) -> bool:
    """Migrate to `HEAD`; True: something was done. Processes that start together wait for each other.

    Raises StorageError: the database is of a newer version, or cannot be used.
    """
    if await revision(database) == HEAD:
        return False
    async with database.write() as connection:
        return await connection.run_sync(_upgrade)


async def revision(database: Database) -> str | None:
    """Give the revision of a database's schema; None: it has none. Raises StorageError."""
    async with database.read() as connection:
        return await connection.run_sync(_revision)


def _revision(connection: Connection) -> str | None:
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    return connection.execute(text("SELECT version_num FROM alembic_version")).scalar()


def _upgrade(connection: Connection) -> bool:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": ADVISORY_LOCK})
    if _revision(connection) == HEAD:
        return False
    # Alembic costs a fifth of a second to import, and an up-to-date database does not need it.
    from alembic import command  # noqa: PLC0415
    from alembic.util import CommandError  # noqa: PLC0415

    try:
        command.upgrade(alembic_config(connection), "head")
    except CommandError as error:
        raise StorageError(f"the database's schema is of another version of Trunkline: {error}") from error
    return True


def alembic_config(connection: Connection) -> Any:
    """Give Alembic's configuration for this connection, as `migrations/env.py` reads it."""
    from alembic.config import Config  # noqa: PLC0415

    config = Config()
    config.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    return config
