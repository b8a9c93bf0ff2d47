"""A provider and an engine for each test."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from film_provider import FilmProvider
from job_tools import FastClock, Rig, opened


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FilmProvider]:
    async with FilmProvider() as provider:
        yield provider


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of this version's schema, to be copied: migrating takes longer than most tests."""

    async def migrate(path: Path) -> None:
        async with opened(path):
            pass

    path = tmp_path_factory.mktemp("schema") / "t.db"
    asyncio.run(migrate(path))
    return path


@pytest_asyncio.fixture
async def rig(tmp_path: Path, migrated: Path) -> AsyncIterator[Rig]:
    shutil.copy(migrated, tmp_path / "t.db")
    async with opened(tmp_path / "t.db") as database:
        rig = Rig(database, tmp_path, clock=FastClock())
        yield rig
        await rig.upstream.client.aclose()
