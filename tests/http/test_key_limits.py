"""What a key may do, on a running gateway: models, expiry, rates of requests, tokens and streams, budgets by period."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges, Rates
from trunkline.core.money import Budget

USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}


async def upstream(peer: Peer) -> None:
    """Answer whole requests at once; streams go on until they are left."""
    while True:
        _, body = await peer.request()
        if json.loads(body).get("stream"):
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + chunk({"content": "a"}))
            await peer.gone()
            return
        message = {"role": "assistant", "content": "Hello"}
        whole = {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
        await peer.answer(json.dumps(whole).encode(), "content-type: application/json")


def priced(url: str) -> dict[str, Any]:
    tables = to_upstream(url)
    tables["models"]["*"]["price"] = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
    return tables


async def key(gate: Gateway, **settings: Any) -> dict[str, str]:
    new = await gate.application.keys.create(KeyChanges(name="anna", **settings))
    return {"authorization": f"Bearer {new.token}"}


async def refusal(gate: Gateway, body: Any, auth: dict[str, str]) -> tuple[int, str, str]:
    answer = await gate.ask(body, **auth)
    error = (await answer.json())["error"]
    return answer.status, error["code"], answer.headers.get("retry-after", "")


async def test_models_and_expiry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with raw_upstream(upstream) as served, gateway(tmp_path, priced(served.url)) as gate:
        auth = await key(gate, models=("good-*", "x"))
        assert (await gate.ask(chat("good-one"), **auth)).status == 200
        assert (await refusal(gate, chat("bad"), auth))[:2] == (403, "model_not_allowed")
        now_ns = time.time_ns
        auth = await key(gate, expires_ms=now_ns() // 1_000_000 + 600_000)
        assert (await gate.ask(chat("x"), **auth)).status == 200
        monkeypatch.setattr(time, "time_ns", lambda: now_ns() + 700 * 10**9)
        assert (await refusal(gate, chat("x"), auth))[:2] == (401, "invalid_api_key")
        monkeypatch.undo()


async def test_rates_of_requests_are_exact(tmp_path: Path) -> None:
    async with raw_upstream(upstream) as served, gateway(tmp_path, priced(served.url)) as gate:
        auth = await key(gate, rates=Rates(requests=20))
        answers = await asyncio.gather(*(gate.ask(chat(), **auth) for _ in range(60)))
        statuses = [answer.status for answer in answers]
        assert (statuses.count(200), statuses.count(429)) == (20, 40)
        refused = next(answer for answer in answers if answer.status == 429)
        assert 0 < int(refused.headers["retry-after"]) <= 61  # of a window of 60 s, rounded up
        allowed = next(answer for answer in answers if answer.status == 200)
        assert allowed.headers["x-ratelimit-limit-requests"] == "20"


async def test_rates_of_tokens_count_what_was_used(tmp_path: Path) -> None:
    async with raw_upstream(upstream) as served, gateway(tmp_path, priced(served.url)) as gate:
        auth = await key(gate, rates=Rates(tokens=4000))
        for _ in range(3):
            assert (await gate.ask(chat(max_tokens=10), **auth)).status == 200
            await asyncio.sleep(0.05)
        assert (await refusal(gate, chat(max_tokens=10), auth))[:2] == (429, "rate_limit_exceeded")


async def test_streams_that_are_open(tmp_path: Path) -> None:
    async with raw_upstream(upstream) as served, gateway(tmp_path, priced(served.url)) as gate:
        auth = await key(gate, rates=Rates(streams=2))
        first, second = [await gate.ask(chat(stream=True), **auth) for _ in range(2)]
        assert (first.status, second.status) == (200, 200)
        assert (await refusal(gate, chat(stream=True), auth))[:2] == (429, "rate_limit_exceeded")
        assert (await gate.ask(chat(), **auth)).status == 200
        first.leave()
        status = 429
        async with asyncio.timeout(60):
            while status == 429:
                status = (await gate.ask(chat(stream=True), **auth)).status
        assert status == 200


@pytest.mark.parametrize("period", ["total", "day", "month"])
async def test_budgets_of_a_period(tmp_path: Path, period: str) -> None:
    async with raw_upstream(upstream) as served, gateway(tmp_path, priced(served.url)) as gate:
        auth = await key(gate, budget=Budget(**{period: 20_000}))
        body = chat(max_tokens=500)  # 6,000 micro-dollars
        statuses = [(await gate.ask(body, **auth)).status for _ in range(5)]
        assert statuses == [200, 200, 200, 402, 402]
