"""The schema comes about by migrations, and is what tables.py says."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlalchemy.engine import Connection

from trunkline.core.state import StorageError
from trunkline.storage.sql.database import Database, now_ms
from trunkline.storage.sql.migrate import HEAD, alembic_config, upgrade
from trunkline.storage.sql.tables import metadata


async def test_migrations_lead_to_the_tables(database: Database) -> None:
    def differences(connection: Connection) -> list[Any]:
        context = MigrationContext.configure(connection, opts={"compare_server_default": not database.sqlite})
        return list(compare_metadata(context, metadata))

    async with database.read() as connection:
        assert await connection.run_sync(differences) == []


async def test_head_is_the_newest_migration(database: Database) -> None:
    async with database.read() as connection:
        script = ScriptDirectory.from_config(await connection.run_sync(alembic_config))
    assert script.get_current_head() == HEAD


async def test_an_upgraded_database_is_left_alone(database: Database) -> None:
    assert await upgrade(database) is False


async def test_processes_that_start_together_migrate_once(database_url: str | Path) -> None:
    databases = [Database.at(database_url) for _ in range(4)]
    done = await asyncio.gather(*(upgrade(database) for database in databases))
    assert sorted(done) == [False, False, False, True]
    for database in databases:
        await database.close()


async def test_a_newer_schema_is_refused_and_left_as_it_is(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(text("UPDATE alembic_version SET version_num = 'v9999'"))
    with pytest.raises(StorageError, match="another version"):
        await upgrade(database)
    async with database.read() as connection:
        assert (await connection.execute(text("SELECT version_num FROM alembic_version"))).scalar() == "v9999"


async def test_the_clock_of_the_database_goes(database: Database) -> None:
    async with database.read() as connection:
        first = (await connection.execute(now_ms().select())).scalar_one()
    await asyncio.sleep(0.02)
    async with database.read() as connection:
        second = (await connection.execute(now_ms().select())).scalar_one()
    assert 15 <= second - first < 10_000
    assert first > 1_700_000_000_000


async def test_a_failed_write_leaves_nothing(database: Database) -> None:
    async def broken_off() -> None:
        async with database.write() as connection:
            await connection.execute(text("INSERT INTO settings (name, updated_ms) VALUES ('a', 1)"))
            raise RuntimeError

    with pytest.raises(RuntimeError):
        await broken_off()
    async with database.write(durable=True) as connection:
        await connection.execute(text("INSERT INTO settings (name, updated_ms) VALUES ('b', 1)"))
    async with database.read() as connection:
        assert (await connection.execute(text("SELECT name FROM settings"))).scalars().all() == ["b"]
