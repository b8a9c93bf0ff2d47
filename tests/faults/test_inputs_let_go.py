"""What a client sent with its prompt is not held in memory while a film is made of it."""

import asyncio
import base64
import json
import tracemalloc
from pathlib import Path

import pytest
from gateway import gateway
from media_gateway import draw, to_media
from media_samples import heavy
from raw_upstream import Peer, raw_upstream

pytestmark = pytest.mark.faults
LARGE_BYTES = 2_000_000


async def never_done(peer: Peer) -> None:
    """Takes every film on, and ends none."""
    while True:
        await peer.request()
        await peer.answer(b'{"id":"v1","object":"video","status":"in_progress","progress":10}')


@pytest.mark.parametrize("stream", [True, False])
async def test_the_picture_of_a_chat_is_let_go(tmp_path: Path, *, stream: bool) -> None:
    url = "data:image/png;base64," + base64.b64encode(heavy()).decode()
    content = [{"type": "text", "text": "a cat"}, {"type": "image_url", "image_url": {"url": url}}]
    messages = [{"role": "user", "content": content}]
    body = json.dumps(draw(model="paint/reel", stream=stream, messages=messages)).encode()
    tables = to_media("http://127.0.0.1:1")
    async with raw_upstream(never_done) as up:
        tables["providers"]["paint"]["base_url"] = up.url
        async with gateway(tmp_path, tables) as gate:
            tracemalloc.start()
            answer = await gate.send("POST", "/v1/chat/completions", body)
            large = [""]
            while not up.peers or large:
                await asyncio.sleep(0.2)
                traces = tracemalloc.take_snapshot().traces
                large = [str(trace.traceback) for trace in traces if trace.size > LARGE_BYTES]
            tracemalloc.stop()
            answer.leave()
