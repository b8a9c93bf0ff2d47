"""A provider that is always asked for a stream: who wants none gets one whole answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, chat, chunk, gateway
from raw_upstream import Peer, Script, raw_upstream

pytestmark = pytest.mark.faults

USAGE = {"prompt_tokens": 3, "completion_tokens": 9, "total_tokens": 12}
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
TAIL = chunk(choices=[], usage=USAGE) + b"data: [DONE]\n\n"


def to_streams(url: str) -> dict[str, Any]:
    talk = {"dialect": "openai_chat", "quirks": ["stream_only"]}
    return {"providers": {"up": {"base_url": url, "api_key": "sk-up", "chat": talk}}}


def telling(events: bytes, asked: list[Any]) -> Script:
    async def script(peer: Peer) -> None:
        asked.append(json.loads((await peer.request())[1]))
        await peer.send(HEAD + events)

    return script


async def whole(gate: Gateway, **members: Any) -> Any:
    answer = await gate.ask(chat("up/m", **members))
    body = await answer.json()
    assert answer.status == 200, body
    assert body["object"] == "chat.completion"
    assert body["usage"].items() >= USAGE.items()
    return body


@pytest.mark.parametrize("members", [{}, {"stream": False}, {"stream": None, "stream_options": None}])
async def test_the_upstream_is_asked_for_a_stream_with_its_usage(tmp_path: Path, members: dict[str, Any]) -> None:
    asked: list[Any] = []
    events = chunk({"role": "assistant", "content": "Hel"}) + chunk({"content": "lo"}) + chunk({}, "stop") + TAIL
    async with raw_upstream(telling(events, asked)) as upstream, gateway(tmp_path, to_streams(upstream.url)) as gate:
        body = await whole(gate, max_tokens=9, **members)
    assert asked == [chat("m", max_tokens=9, stream=True, stream_options={"include_usage": True})]
    [choice] = body["choices"]
    assert choice["message"] == {"role": "assistant", "content": "Hello", "refusal": None}
    assert choice["finish_reason"] == "stop"


async def test_all_that_a_stream_says_is_in_the_answer(tmp_path: Path) -> None:
    def piece(index: int, finish: str | None = None, *, logprobs: Any = None, **delta: Any) -> bytes:
        return chunk(choices=[{"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}])

    def likely(token: str) -> dict[str, Any]:
        return {"content": [{"token": token, "logprob": -0.5, "bytes": None, "top_logprobs": []}]}

    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "tide", "arguments": ""}}
    more = [{"index": 0, "function": {"arguments": text}} for text in ('{"at":', '"sea"}')]
    events = [
        piece(0, role="assistant", content="Lo", logprobs=likely("Lo")),
        piece(1, role="assistant", tool_calls=[call]),
        piece(0, content="w", logprobs=likely("w")),
        *(piece(1, tool_calls=[each]) for each in more),
        piece(0, "length"),
        piece(1, "tool_calls"),
        TAIL,
    ]
    async with (
        raw_upstream(telling(b"".join(events), [])) as upstream,
        gateway(tmp_path, to_streams(upstream.url)) as gate,
    ):
        first, second = (await whole(gate, n=2, logprobs=True))["choices"]
    assert (first["message"]["content"], first["finish_reason"]) == ("Low", "length")
    assert [each["token"] for each in first["logprobs"]["content"]] == ["Lo", "w"]
    assert second["finish_reason"] == "tool_calls"
    assert second["message"]["tool_calls"] == [
        {"id": "c1", "type": "function", "function": {"name": "tide", "arguments": '{"at":"sea"}'}}
    ]


async def test_a_stream_that_is_cut_is_an_error(tmp_path: Path) -> None:
    cut = chunk({"content": "Hel"})
    async with raw_upstream(telling(cut, [])) as upstream, gateway(tmp_path, to_streams(upstream.url)) as gate:
        answer = await gate.ask(chat("up/m"))
        assert (answer.status, (await answer.json())["error"]["code"]) == (502, "upstream_incomplete")
