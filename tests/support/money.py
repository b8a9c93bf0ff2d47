"""A gateway whose upstream has a price, its keys, and its ledger."""

import asyncio
from pathlib import Path
from typing import Any

from gateway import Gateway, to_upstream

from trunkline.core.keys import KeyChanges
from trunkline.core.money import LedgerRow
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

PRICE = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}


def priced(url: str, **price: float) -> dict[str, Any]:
    """A configuration with one upstream whose price is known."""
    tables = to_upstream(url)
    tables["models"]["*"]["price"] = price or PRICE
    return tables


async def ledger(data_dir: Path, wanted: int) -> list[LedgerRow]:
    """Wait until the ledger has so many rows."""
    database = Database.at(data_dir / "trunkline.db")
    try:
        rows: list[LedgerRow] = []
        async with asyncio.timeout(60):
            while len(rows) < wanted:
                rows = await SqlMoney(database).rows(limit=200)
                await asyncio.sleep(0.05)
        return rows
    finally:
        await database.close()


async def key(gate: Gateway, **settings: Any) -> str:
    return f"Bearer {(await gate.application.keys.create(KeyChanges(name='anna', **settings))).token}"
