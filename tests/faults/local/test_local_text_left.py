"""Clients of the gateway that leave the embedded text model while others stay."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, gateway

from trunkline.local.text.engine import SLOTS
from trunkline.upstream.connection import Connection
from trunkline.upstream.response import Response

pytestmark = pytest.mark.faults
TOOL = {"type": "function", "function": {"name": "tide", "parameters": {"type": "object"}}}
LONG = chat("local/text", max_tokens=3000, ignore_eos=True)
"""It takes half a minute or more to write."""
WORDS = 50
"""When a stream has said so many more, those that have a slot are being answered, too."""


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> asyncio.Queue[bytes]:
    """What has been sent to llama.cpp."""
    queue, real = asyncio.Queue[bytes](), Connection.send

    def noted(connection: Connection, head: bytes, body: bytes, *, bodiless: bool) -> Response:
        response = real(connection, head, body, bodiless=bodiless)
        queue.put_nowait(body)
        return response

    monkeypatch.setattr(Connection, "send", noted)
    return queue


@pytest.mark.parametrize("members", [{}, {"tools": [TOOL], "tool_choice": "required"}])
async def test_unstreamed_calls_that_were_left_make_room(
    tmp_path: Path, sent: asyncio.Queue[bytes], members: dict[str, Any]
) -> None:
    """They take all slots but one, and more of them wait; a stream stays, which began first and is as long."""
    embedded = {"providers": {"local": {"enabled": True}}}
    async with gateway(tmp_path, embedded) as gate, asyncio.timeout(240), asyncio.TaskGroup() as group:
        staying = await gate.ask({**LONG, "stream": True})
        await staying.chunk()
        body = json.dumps({**LONG, **members}).encode()
        leaving = [await gate.send("POST", "/v1/chat/completions", body) for _ in range(SLOTS * 2)]
        for _ in (staying, *leaving):
            await sent.get()
        for _ in range(WORDS):
            await staying.chunk()
        reading = group.create_task(staying.body())
        for answer in leaving:
            answer.leave()
        after = await gate.ask(chat("local/text", max_tokens=2))
        assert after.status == 200
        assert not reading.done()
        reading.cancel()
