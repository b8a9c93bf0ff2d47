"""OpenAI's own Python library reads our streams: text, tool calls, usage, errors in mid-stream."""

from pathlib import Path

import pytest
from gateway import chat, chunk, gateway, to_upstream
from openai import APIError, AsyncOpenAI
from openai.types.chat import ChatCompletionStreamOptionsParam
from raw_upstream import Peer, Script, raw_upstream

pytestmark = pytest.mark.oracles
MESSAGES = chat()["messages"]


def serving(*events: bytes) -> Script:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"".join(events), "content-type: text/event-stream")

    return script


async def test_text_and_usage_arrive_through_the_stream_helper(tmp_path: Path) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5}
    script = serving(chunk({"content": "Hel"}), chunk({"content": "lo"}), chunk({}, "stop", usage=usage))
    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        async with AsyncOpenAI(base_url=gate.url, api_key="none") as client:
            options: ChatCompletionStreamOptionsParam = {"include_usage": True}
            async with client.chat.completions.stream(model="m", messages=MESSAGES, stream_options=options) as stream:
                completion = await stream.get_final_completion()
    assert completion.choices[0].message.content == "Hello"
    assert completion.choices[0].finish_reason == "stop"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 5
    assert completion.model == "m"


async def test_tool_calls_without_index_and_with_repeated_names_are_put_together(tmp_path: Path) -> None:
    first = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": '{"x"'}}]}
    second = {"tool_calls": [{"id": "a", "function": {"name": "f", "arguments": ":1}"}}]}
    script = serving(chunk(first), chunk(second), chunk({}, "stop"), b"data: [DONE]\n\n")
    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        async with AsyncOpenAI(base_url=gate.url, api_key="none") as client:
            async with client.chat.completions.stream(model="m", messages=MESSAGES) as stream:
                completion = await stream.get_final_completion()
    calls = completion.choices[0].message.tool_calls
    assert calls is not None
    assert [(call.id, call.function.name, call.function.arguments) for call in calls] == [("a", "f", '{"x":1}')]
    assert completion.choices[0].finish_reason == "tool_calls"


async def test_a_cut_stream_is_an_error_for_the_client(tmp_path: Path) -> None:
    script = serving(chunk({"content": "Half an ans"}))
    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        async with AsyncOpenAI(base_url=gate.url, api_key="none", max_retries=0) as client:
            stream = await client.chat.completions.create(model="m", messages=MESSAGES, stream=True)
            with pytest.raises(APIError, match="ends before its end"):
                async for _ in stream:
                    pass
