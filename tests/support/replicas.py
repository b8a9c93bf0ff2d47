"""Several replicas of the gateway on one PostgreSQL, one Valkey and one S3 server."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gateway import Client, chat
from gateway_process import Home
from text_upstream import TOKENS

BUCKET = "s3://media/replicas"


def several(folder: Path, tables: Mapping[str, Any], database: str = "", shared: str = "", s3: str = "") -> Home:
    """Give a home for replicas that share what is named."""
    if database:
        database += "?sslmode=prefer"  # as managed databases have it in their addresses
    places = {"database": database, "shared": shared, "media": BUCKET if s3 else ""}
    aws = {
        "AWS_ENDPOINT_URL_S3": s3,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }
    storage = {name: value for name, value in places.items() if value}
    return Home(folder, {**tables, "storage": storage}, aws if s3 else {})


async def make_key(home: Home, *limits: str) -> dict[str, Any]:
    """Make a key by the command; gives its `id` and, under `key`, its secret."""
    made: dict[str, Any] = await home.cli("keys", "create", "--name", "k", *limits, "--json")
    return made


def bearer(key: Mapping[str, Any]) -> dict[str, str]:
    return {"authorization": f"Bearer {key['key']}"}


def ask_text(**members: Any) -> dict[str, Any]:
    """Ask the model of `text_upstream` for an answer of its price."""
    return chat("up/m", max_tokens=TOKENS, **members)


async def until(client: Client, key: Mapping[str, Any], status: int, within_s: float = 120) -> list[int]:
    """Ask until this status comes; gives those before."""
    before: list[int] = []
    async with asyncio.timeout(within_s):
        while (now := await status_of(client, key)) != status:
            before.append(now)
            await asyncio.sleep(0.05)
    return before


async def status_of(client: Client, key: Mapping[str, Any]) -> int:
    """Ask once, unstreamed, and read the whole answer."""
    answer = await client.ask(ask_text(), connection="close", **bearer(key))
    await answer.body()
    answer.leave()
    return answer.status
