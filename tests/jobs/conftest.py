"""A provider and an engine for each test."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest_asyncio
from film_provider import FilmProvider
from job_tools import FastClock, Rig, migrated, opened

__all__ = ["migrated"]


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FilmProvider]:
    async with FilmProvider() as provider:
        yield provider


@pytest_asyncio.fixture
async def rig(tmp_path: Path, migrated: Path) -> AsyncIterator[Rig]:
    shutil.copy(migrated, tmp_path / "t.db")
    async with opened(tmp_path / "t.db") as database:
        rig = Rig(database, tmp_path, clock=FastClock())
        yield rig
        await rig.client.aclose()
