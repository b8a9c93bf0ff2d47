"""Look-alikes of the founding captures, served by a real socket in random pieces, leave the gateway byte for byte."""

import asyncio
import json
import random
from itertools import pairwise
from pathlib import Path

import pytest
from corpus import Case, cases
from gateway import chat, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

pytestmark = pytest.mark.faults

CAPTURES = [case for case in cases() if case.name.startswith("capture_")]
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
SEEDS = range(8)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    places = sorted({0, len(data), *(chance.randrange(len(data)) for _ in range(chance.choice((3, 40, 400))))})
    return [data[start:end] for start, end in pairwise(places)]


@pytest.mark.parametrize("case", CAPTURES, ids=[case.name for case in CAPTURES])
async def test_random_pieces(case: Case, tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        _, body = await peer.request()
        await peer.send(HEAD)
        for piece in pieces(case.upstream, random.Random(json.loads(body)["seed"])):
            await peer.send(piece)
            await asyncio.sleep(0)

    *wanted, last, done = (case.folder / "client.sse").read_bytes().removesuffix(b"\n\n").split(b"\n\n")
    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        for seed in SEEDS:
            asked = chat("asked-for", stream=True, stream_options={"include_usage": True}, seed=seed)
            *told, usage, end = (await (await gate.ask(asked)).body()).removesuffix(b"\n\n").split(b"\n\n")
            assert [*told, end] == [*wanted, done]
            if "usage_missing" not in case.rules:
                assert usage == last
                continue
            counted = json.loads(usage.removeprefix(b"data: "))["usage"]
            assert counted["total_tokens"] == counted["prompt_tokens"] + counted["completion_tokens"]
            assert min(counted["prompt_tokens"], counted["completion_tokens"]) > 0
            assert usage.partition(b'"usage":')[0] == last.partition(b'"usage":')[0]


def test_all_five_are_here() -> None:
    assert len(CAPTURES) == 5
