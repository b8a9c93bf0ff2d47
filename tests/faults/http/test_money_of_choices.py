"""Several answers to one call cost what they all cost, whatever the provider tells of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, gateway
from money import ledger, priced
from raw_upstream import Peer, Script, raw_upstream

pytestmark = pytest.mark.faults

TIMINGS = {"prompt_n": 1000, "prompt_ms": 9.5, "predicted_n": 10, "predicted_ms": 80.0}
USAGE = {"prompt_tokens": 1000, "completion_tokens": 10, "total_tokens": 1010}


def answering(**members: Any) -> Script:
    """Answer with three choices, of 40, 80 and 20 characters."""

    async def script(peer: Peer) -> None:
        await peer.request()
        texts = ("four" * 10, "four" * 20, "four" * 5)
        choices = [
            {"index": at, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for at, text in enumerate(texts)
        ]
        whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, **members}
        await peer.answer(json.dumps(whole).encode(), "content-type: application/json")

    return script


@pytest.mark.parametrize(
    ("members", "completion", "estimated"),
    [
        ({"usage": USAGE, "timings": TIMINGS}, 35, True),  # llama.cpp: the first choice's
        ({"timings": TIMINGS}, 35, True),
        ({"usage": {**USAGE, "completion_tokens": 33, "total_tokens": 1033}, "timings": TIMINGS}, 33, False),
        ({"usage": USAGE}, 10, False),
    ],
)
async def test_an_answer_of_several_choices(
    tmp_path: Path, members: dict[str, Any], completion: int, *, estimated: bool
) -> None:
    async with raw_upstream(answering(**members)) as upstream, gateway(tmp_path, priced(upstream.url)) as gate:
        answer = await gate.ask(chat(n=3))
        usage = (await answer.json())["usage"]
        (row,) = await ledger(tmp_path, 1)
    told = (usage["prompt_tokens"], usage["completion_tokens"], usage["total_tokens"])
    assert told == (1000, completion, 1000 + completion)
    assert (row.completion_tokens, row.estimated, row.cost_microusd) == (completion, estimated, 2000 + 8 * completion)
    assert answer.headers["x-trunkline-cost"] == f"{(2000 + 8 * completion) / 1e6:.6f}"
