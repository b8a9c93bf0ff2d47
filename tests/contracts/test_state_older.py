"""A database of an older version, with data in it, is brought to this version's schema; everything is still there."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from alembic import command
from sqlalchemy import text
from sqlalchemy.engine import Connection

from trunkline.calls.keys import Keys
from trunkline.core.errors import GatewayError
from trunkline.core.keys import KeyChanges
from trunkline.core.money import Budget, LedgerRow
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.keys import SqlKeys
from trunkline.storage.sql.migrate import HEAD, alembic_config, revision, upgrade
from trunkline.storage.sql.money import SqlMoney

OLDER = sorted((Path(__file__).parent / "older").glob("*.json"))
DIGEST = "digest"


def fill(connection: Connection, older: Path) -> None:
    """Make the schema of an older version, and put its rows into it."""
    command.upgrade(alembic_config(connection), older.stem)
    tables: dict[str, list[dict[str, Any]]] = json.loads(older.read_text())
    for table, rows in tables.items():
        for row in rows:
            values = {name: bytes.fromhex(value) if name == DIGEST else value for name, value in row.items()}
            names = ", ".join(values)
            marks = ", ".join(f":{name}" for name in values)
            connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({marks})"), values)


@pytest_asyncio.fixture(params=OLDER, ids=lambda path: path.stem)
async def grown(request: pytest.FixtureRequest, database_url: str | Path) -> AsyncIterator[Database]:
    """A database of an older version after the upgrade."""
    database = Database.at(database_url)
    async with database.write() as connection:
        await connection.run_sync(fill, request.param)
    assert await revision(database) == request.param.stem
    assert await upgrade(database)
    assert await revision(database) == HEAD
    yield database
    await database.close()


async def test_keys_are_recognised_and_may_what_they_might(grown: Database) -> None:
    keys = Keys(SqlKeys(grown), b"the server's secret")
    anna = await keys.authenticate("sk-tl-anna-of-v0001")
    assert (anna.name, anna.models, anna.budget) == ("anna", ("gpt-*",), Budget(day=5_000_000))
    assert (anna.rates.requests, anna.media_style, anna.cache, anna.metadata) == (60, "bare", True, {"team": "red"})
    assert anna.group is not None
    assert (anna.group.name, anna.group.budget) == ("team", Budget(month=50_000_000))
    with pytest.raises(GatewayError, match="revoked"):
        await keys.authenticate("sk-tl-ben-of-v0001")
    assert await SqlKeys(grown).keys_version() == 7
    await keys.change(anna.id, KeyChanges(name="anna b"))
    assert await SqlKeys(grown).keys_version() == 8


async def test_what_was_spent_stays_and_goes_on(grown: Database) -> None:
    money = SqlMoney(grown)
    rows = await money.rows()
    assert [(row.request_id, row.cost_microusd, row.cache_hit) for row in rows] == [
        ("req_3", None, False),
        ("req_2", 60_000, False),
        ("req_1", 60_000, False),
    ]
    new = LedgerRow(
        id="call_new",
        key_id=rows[0].key_id,
        group_id="grp_1",
        started_ms=1_760_000_002_000,
        ended_ms=1_760_000_003_000,
        cost_microusd=5,
        cache_hit=True,
    )
    await money.book([new], {})
    for owner in (rows[0].key_id, "grp_1"):
        spends = await money.spend(owner, ["total", "2025-10-09", "2025-10"])
        assert [(spend.spent, spend.calls) for spend in spends] == [(120_005, 3)] * 3
    assert (await money.rows(limit=1))[0].cache_hit is True


async def test_jobs_are_there(grown: Database) -> None:
    job = await SqlJobs(grown).get("image_1")
    assert job is not None
    assert (job.state, job.billed, job.cost_microusd) == ("completed", True, 40_000)
