"""A burst of calls waits for connections to Valkey; it is not taken for the loss of Valkey."""

import asyncio

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
