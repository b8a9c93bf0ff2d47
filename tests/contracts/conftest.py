"""Databases for the contract suites: a SQLite file always, PostgreSQL in the scale suite; both real."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from billing_process import start
from postgres import postgres_server, postgres_url
from sqlalchemy import inspection
from valkey_server import valkey_server, valkey_url

from trunkline.storage.sql.database import Database
from trunkline.storage.sql.migrate import upgrade

__all__ = ["postgres_server", "postgres_url", "start", "valkey_server", "valkey_url"]


@pytest.fixture(autouse=True)
def half_an_orm(monkeypatch: pytest.MonkeyPatch) -> None:
    """As long as a thread imports SQLAlchemy's ORM, at a process's first job, it can tell the type of no odd value."""

    def inspect(value: object) -> None:
        if not type(value).__module__.startswith("sqlalchemy."):  # its own marks, when it looks for tables at the start
            raise AssertionError(f"a query holds {value!r}")

    monkeypatch.setitem(inspection._registrars, object, inspect)


@pytest.fixture(autouse=True)
def valkey_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a machine that stalls for seconds it is not away."""
    monkeypatch.setattr("trunkline.storage.shared.valkey.WAIT_S", 60.0)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.scale)])
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> str | Path:
    """Where an empty database is."""
    if request.param == "sqlite":
        return tmp_path / "trunkline.db"
    return str(request.getfixturevalue("postgres_url"))


@pytest.fixture(scope="session")
def migrated_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file of this version's schema, to copy."""

    async def migrate(path: Path) -> None:
        database = Database.at(path)
        await upgrade(database)
        await database.close()

    path = tmp_path_factory.mktemp("migrated") / "trunkline.db"
    asyncio.run(migrate(path))
    return path


@pytest_asyncio.fixture
async def database(database_url: str | Path, migrated_file: Path) -> AsyncIterator[Database]:
    """A database of this version's schema."""
    if isinstance(database_url, Path):
        shutil.copy(migrated_file, database_url)
    database = Database.at(database_url)
    await upgrade(database)
    yield database
    await database.close()
