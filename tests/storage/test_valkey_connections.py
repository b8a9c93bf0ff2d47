"""How Valkey's client waits: for a connection without taking that for a loss, and never past a cancellation."""

import asyncio
import random

import pytest
from valkey_server import valkey_server, valkey_url

from trunkline.storage.shared.valkey import WAIT_S, connect

__all__ = ["valkey_server", "valkey_url"]
pytestmark = pytest.mark.scale


async def test_a_turn_may_take_longer_than_an_answer(valkey_url: str) -> None:
    client, _ = connect(valkey_url, 1)
    turns = round(2 * WAIT_S / 0.5)
    waiting = [client.xread({"nothing": "$"}, block=500) for _ in range(turns)]
    assert await asyncio.gather(*waiting) == [[]] * turns
    await client.aclose()


async def test_no_command_swallows_a_cancellation(valkey_url: str) -> None:
    client, _ = connect(valkey_url)

    async def ask() -> None:
        while True:
            await client.hset("hash", "field", "value")

    chance = random.Random(7)
    for _ in range(100):
        asking = asyncio.ensure_future(ask())
        await asyncio.sleep(chance.random() / 500)
        asking.cancel()
        _, going_on = await asyncio.wait([asking], timeout=60)
        assert not going_on
    await client.aclose()
