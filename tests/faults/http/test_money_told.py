"""What a provider tells of a call's tokens and cost, oddly: what the ledger makes of it, streamed and not."""

import json
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk, gateway
from money import ledger, priced
from raw_upstream import Peer, Script, raw_upstream

pytestmark = pytest.mark.faults

SAID = "four" * 25
"""25 tokens by our own count; of the request that is 5."""


def telling(*usages: dict[str, Any]) -> Script:
    """Say the same to everybody, and tell the usages: in a stream one after the other, else the last one."""

    async def script(peer: Peer) -> None:
        while True:
            asked = json.loads((await peer.request())[1])
            if asked.get("stream"):
                told = b"".join(chunk(choices=[], usage=usage) for usage in usages[1:])
                events = chunk({"content": SAID}, usage=usages[0]) + chunk({}, "stop") + told + b"data: [DONE]\n\n"
                await peer.answer(events, "content-type: text/event-stream")
                continue
            choice = {"index": 0, "message": {"role": "assistant", "content": SAID}, "finish_reason": "stop"}
            whole = {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
                "usage": usages[-1],
            }
            await peer.answer(json.dumps(whole).encode(), "content-type: application/json")

    return script


def counts(prompt: Any, completion: Any, total: Any = None, **more: Any) -> dict[str, Any]:
    total = prompt + completion if total is None else total
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total, **more}


CASES: list[tuple[tuple[dict[str, Any], ...], tuple[int, int, bool, int]]] = [
    ((counts(0, 0),), (5, 25, True, 10 + 200)),
    ((counts(1000, 0),), (1000, 25, True, 2000 + 200)),
    ((counts(0, 30),), (5, 30, True, 10 + 240)),
    ((counts(0, 0, 105),), (5, 100, True, 10 + 800)),
    ((counts(1000, 0, 1040),), (1000, 40, True, 2000 + 320)),
    ((counts(-5, -5, 0),), (5, 25, True, 10 + 200)),
    ((counts("1000", "30", "1030"),), (1000, 30, False, 2000 + 240)),
    ((counts(1000.0, 30.0, 1030.0),), (1000, 30, False, 2000 + 240)),
    ((counts(1000, 1), counts(1000, 20), counts(1000, 30)), (1000, 30, False, 2000 + 240)),
    ((counts(1000, 30), counts(1000, 30)), (1000, 30, False, 2000 + 240)),
    ((counts(1000, 30), counts(0, 0)), (1000, 30, False, 2000 + 240)),
    ((counts(1000, 30, cost=0.5),), (1000, 30, False, 2000 + 240)),  # the operator's price counts
    ((counts(1000, 30, completion_tokens_details={"reasoning_tokens": 20}),), (1000, 30, False, 2000 + 240)),
    ((counts(1000, 5, 1025, completion_tokens_details={"reasoning_tokens": 20}),), (1000, 5, False, 2000 + 200)),
    ((counts(1000, 30, prompt_tokens_details={"cached_tokens": 5000}),), (1000, 30, False, 2000 + 240)),
]


@pytest.mark.parametrize(("usages", "booked"), CASES)
async def test_tokens_as_they_are_told(
    tmp_path: Path, usages: tuple[dict[str, Any], ...], booked: tuple[int, int, bool, int]
) -> None:
    async with raw_upstream(telling(*usages)) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        options = {"include_usage": True, "include_cost": True}
        told = (await (await gate.ask(chat(stream=True, stream_options=options))).events())[-2]["usage"]
        usages_told = [told]
        if len(usages) == 1:
            answer = await gate.ask(chat())
            usages_told.append((await answer.json())["usage"])
            assert answer.headers["x-trunkline-cost"] == f"{booked[3] / 1e6:.6f}"
        rows = await ledger(tmp_path, len(usages_told))
    for row in rows:
        assert (row.prompt_tokens, row.completion_tokens, row.estimated, row.cost_microusd) == booked
    for usage in usages_told:
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == booked[:2]
    assert told["cost"] == booked[3] / 1e6


COSTS: list[tuple[Any, int | None]] = [
    (0.25, 250_000),
    (0.0000001, 1),
    (0, 0),
    (-1, None),
    ("free", None),
    (1e300, None),
    (9e12, None),
    (True, None),
]


@pytest.mark.parametrize(("cost", "booked"), COSTS)
async def test_a_cost_as_it_is_told(tmp_path: Path, cost: Any, booked: int | None) -> None:
    async with raw_upstream(telling(counts(1000, 30, cost=cost))) as upstream:
        tables = priced(upstream.url)
        del tables["models"]["*"]["price"]
        async with gateway(tmp_path, tables) as gate:
            await (await gate.ask(chat(stream=True))).events()
            await (await gate.ask(chat())).json()
            rows = await ledger(tmp_path, 2)
    assert [row.cost_microusd for row in rows] == [booked, booked]


async def test_absurd_numbers_are_no_counts(tmp_path: Path) -> None:
    most = 2**53 - 1
    async with raw_upstream(telling(counts(most, most))) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        assert (await gate.ask(chat())).status == 200
        await (await gate.ask(chat(stream=True))).events()
        rows = await ledger(tmp_path, 2)
    assert [(row.completion_tokens, row.estimated, row.cost_microusd) for row in rows] == [(25, True, 210)] * 2
