"""Of a call that has ended nothing stays, however it ended; the garbage collector is not needed for it."""

import asyncio
import gc
import json
import tracemalloc
from collections import Counter
from collections.abc import Callable, Coroutine
from pathlib import Path

import pytest
from gateway import Client, chat, chunk, gateway
from raw_upstream import Peer, raw_upstream
from text_upstream import HEAD, completion

from trunkline.calls.attempt import Attempt
from trunkline.calls.chat import ChatCall
from trunkline.calls.meter import Meter
from trunkline.http.event_stream import EventStream
from trunkline.http.exchange import Exchange
from trunkline.http.front_door import FrontDoor
from trunkline.pipeline import ChatLine
from trunkline.upstream.connection import Connection
from trunkline.upstream.response import Response

pytestmark = pytest.mark.faults

KINDS = (Attempt, ChatCall, ChatLine, EventStream, Exchange, Meter, Response, FrontDoor, Connection)
CALLS = 4
Ask = Callable[..., Coroutine[None, None, None]]


async def upstream(peer: Peer) -> None:
    """Does what the model's name says."""
    _, body = await peer.request()
    asked = json.loads(body)
    model, streamed = asked["model"], asked.get("stream")
    del body, asked
    if model == "silent":
        await peer.gone()
    elif model == "refuses":
        await peer.answer(b'{"error":{"message":"no"}}', status="500 Internal Server Error")
    elif not streamed:
        await peer.answer(json.dumps(completion(3)).encode(), "content-type: application/json")
    else:
        await peer.send(HEAD + chunk({"role": "assistant"}) + chunk({"content": "a"}))
        if model in ("waits", "stalls"):
            await peer.gone()
        elif model == "breaks":
            peer.reset()
        else:
            await peer.send(chunk({"content": "b"}) + chunk({}, "stop") + b"data: [DONE]\n\n")


async def whole(gate: Client, model: str, **headers: str) -> None:
    await (await gate.ask(chat(model), **headers)).body()


async def streamed(gate: Client, model: str, **headers: str) -> None:
    await (await gate.ask(chat(model, stream=True), **headers)).events()


async def left(gate: Client, model: str, **headers: str) -> None:
    answer = await gate.ask(chat(model, stream=True), **headers)
    assert await answer.chunk()
    answer.leave()


async def test_a_long_prompt_is_let_go_when_its_answer_begins(tmp_path: Path) -> None:
    long = [{"role": "user", "content": "x" * 4_000_000}]
    async with raw_upstream(upstream) as up:
        provider = {"base_url": up.url, "api_key": "k", "chat": {"dialect": "openai_chat"}}
        tables = {"providers": {"up": provider}, "models": {"*": {"targets": ["up:*"]}}}
        async with gateway(tmp_path, tables) as gate:
            tracemalloc.start()
            for _ in range(3):
                assert await (await gate.ask(chat("waits", stream=True, messages=long))).chunk()
            del long
            large = [str(trace) for trace in tracemalloc.take_snapshot().traces if trace.size > 1_000_000]
            tracemalloc.stop()
            assert not large
            for answer in gate.answers:
                answer.leave()


def alive() -> Counter[str]:
    return Counter(
        type(each).__name__ for each in gc.get_objects() if type(each) in KINDS or isinstance(each, FrontDoor)
    )


@pytest.mark.parametrize(
    ("ask", "model", "headers"),
    [
        (whole, "says", {}),
        (whole, "refuses", {}),
        (streamed, "says", {}),
        (streamed, "says", {"x_trunkline_resume": "true"}),
        (streamed, "says", {"x_trunkline_cache": "true"}),
        (streamed, "says", {"x_trunkline_trace": "true"}),
        (streamed, "refuses", {}),
        (streamed, "falls", {}),
        (streamed, "hedges", {}),
        (streamed, "hedges in vain", {}),
        (streamed, "breaks", {}),
        (streamed, "stalls", {}),
        (left, "waits", {}),
    ],
)
async def test_nothing_stays(tmp_path: Path, uncollected: None, ask: Ask, model: str, headers: dict[str, str]) -> None:
    async with raw_upstream(upstream) as up:
        provider = {"base_url": up.url, "api_key": "k", "chat": {"dialect": "openai_chat"}}
        tables = {
            "providers": {"up": provider},
            "models": {
                "*": {"targets": ["up:*"], "timeouts": {"idle_s": 0.2}},
                "falls": {"targets": ["up:refuses", "up:says"]},
                "hedges": {"targets": ["up:silent", "up:says"], "hedge_s": 0.01},
                "hedges in vain": {"targets": ["up:silent", "up:stalls"], "hedge_s": 0.01, "timeouts": {"idle_s": 0.2}},
            },
        }
        async with gateway(tmp_path, tables) as gate:
            for _ in range(CALLS):
                await ask(gate, model, **headers)
            for answer in gate.answers:
                answer.leave()
            gate.answers.clear()
            for _ in range(1200):
                await asyncio.sleep(0.05)
                if not alive():
                    break
            assert not alive()
