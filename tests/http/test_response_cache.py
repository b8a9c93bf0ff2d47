"""Answers from the response cache, for the same key and request, streamed or not."""

import json
from pathlib import Path
from typing import Any

from gateway import Answer, Gateway, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.calls.cached import read, write
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Finished,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from trunkline.core.keys import KeyChanges
from trunkline.storage.shared.answers import LocalAnswers
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
ASKED = {"x_trunkline_cache": "true"}


class Upstream:
    """Numbers its answers."""

    def __init__(self) -> None:
        self.asked = 0

    async def __call__(self, peer: Peer) -> None:
        _, body = await peer.request()
        self.asked += 1
        text = f"answer {self.asked}"
        if not json.loads(body).get("stream"):
            message = {"role": "assistant", "content": text}
            whole = {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": USAGE}
            await peer.answer(json.dumps(whole).encode(), "content-type: application/json")
            return
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + chunk({"content": text}))
        await peer.send(chunk({"content": "."}) + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n")


def priced(url: str) -> dict[str, Any]:
    tables = to_upstream(url)
    tables["models"]["*"]["price"] = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
    return tables


async def text_of(answer: Answer) -> str:
    if answer.headers["content-type"] == "application/json":
        return str((await answer.json())["choices"][0]["message"]["content"])
    events = await answer.events()
    assert events[-1] == "[DONE]"
    return "".join(event["choices"][0]["delta"].get("content", "") for event in events[:-1] if event["choices"])


async def said(gate: Gateway, body: Any, **headers: str) -> tuple[str, str]:
    """Ask; give the text, and what the answer says of the cache."""
    answer = await gate.ask(body, **headers)
    return await text_of(answer), answer.headers.get("x-trunkline-cache", "")


async def test_equal_requests_have_one_answer(tmp_path: Path) -> None:
    upstream = Upstream()
    async with raw_upstream(upstream) as served, gateway(tmp_path, priced(served.url)) as gate:
        streamed = chat(stream=True, temperature=0)
        assert await said(gate, streamed, **ASKED) == ("answer 1.", "miss")
        assert await said(gate, streamed, **ASKED) == ("answer 1.", "hit")
        assert await said(gate, chat(temperature=0), **ASKED) == ("answer 1.", "hit")
        assert await said(gate, chat(temperature=1), **ASKED) == ("answer 2", "miss")
        assert await said(gate, streamed) == ("answer 3.", "")
        whole = await gate.ask(chat(temperature=0), **ASKED)
        assert whole.headers["x-trunkline-cost"] == "0.000000"
        assert (await whole.json())["usage"]["total_tokens"] == 1500
        metrics = (await (await gate.get("/metrics")).body()).decode()
        assert 'trunkline_cached_calls_total{cache="hit"} 3.0' in metrics
    database = Database.at(tmp_path / "trunkline.db")
    rows = await SqlMoney(database).rows()
    await database.close()
    assert sorted((row.cache_hit, row.cost_microusd) for row in rows) == [(False, 6000)] * 3 + [(True, 0)] * 3


async def test_answers_are_of_their_key(tmp_path: Path) -> None:
    async with raw_upstream(Upstream()) as served, gateway(tmp_path, priced(served.url)) as gate:
        anna, ben = [
            f"Bearer {(await gate.application.keys.create(KeyChanges(name=name, cache=True))).token}"
            for name in ("anna", "ben")
        ]
        assert await said(gate, chat(), authorization=anna) == ("answer 1", "miss")
        assert await said(gate, chat(), authorization=ben) == ("answer 2", "miss")
        assert await said(gate, chat(), authorization=anna) == ("answer 1", "hit")
        assert await said(gate, chat(), authorization=anna, x_trunkline_cache="false") == ("answer 3", "")
        wrong = await gate.ask(chat(), authorization=anna, x_trunkline_cache="perhaps")
        assert wrong.status == 400
        assert (await wrong.json())["error"]["message"] == "X-Trunkline-Cache is 'perhaps'; allowed are true, false."


EVENTS: list[Event] = [
    Started("id", "m", 7),
    TextDelta("a\n\u2028\U0001f600"),
    ReasoningDelta("r"),
    RefusalDelta("no", 1),
    ToolCallStarted(0, "c", "f"),
    ToolCallDelta(0, '{"a":'),
    Extras({}, None),
    Finished("stop"),
    UsageReported(Usage(prompt_tokens=1)),
    Ended(),
]


def test_events_are_read_as_they_were_written() -> None:
    assert read(write(EVENTS)) == EVENTS
    assert read(write([UsageReported(Usage(cost_microusd=9))])) == [UsageReported(Usage())]


async def test_the_room_is_bounded() -> None:
    answers = LocalAnswers(max_bytes=800, ttl_s=60)
    await answers.put(b"large", b"x" * 101)
    assert await answers.get(b"large") is None
    for number in range(10):
        await answers.put(b"%d" % number, b"x" * 100)
        assert await answers.get(b"0") is not None
    assert answers.bytes == 800
    assert [number for number in range(10) if await answers.get(b"%d" % number)] == [0, 3, 4, 5, 6, 7, 8, 9]
    await answers.put(b"0", b"y" * 50)
    assert (answers.bytes, await answers.get(b"0")) == (750, b"y" * 50)
    brief = LocalAnswers(max_bytes=800, ttl_s=0)
    await brief.put(b"a", b"x")
    assert await brief.get(b"a") is None
