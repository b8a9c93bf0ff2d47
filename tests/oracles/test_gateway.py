"""Official client libraries read the gateway's streams right, whatever the upstream sent."""

import asyncio
import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from corpus import Case, cases
from gateway import gateway, to_upstream
from meaning import Meaning, read_meaning
from raw_upstream import Peer, raw_upstream
from readers import READERS, Readers

from trunkline.local.text.process import local_text
from trunkline.local.text.weights import find_weights

pytestmark = [pytest.mark.oracles, pytest.mark.timeout(1200)]  # the first of each library has it installed

CASES = {
    case.name: case
    for case in cases()
    if case.configured == "openai_chat" and case.dialect == "openai_chat" and not case.quirks and case.n in (1, 2)
}
CHOICES = ("py_raw", "py_helper", "node_raw", "node_helper")
"""The modes that tell choices apart."""
REASONING = ("py_raw", "py_helper", "litellm", "node_raw", "ai_sdk")
"""The modes that put reasoning together; openai-node's helper keeps its last piece."""
MODES = [(mode, False) for mode in READERS] + [("py_raw", True), ("py_helper", True)]
every_mode = pytest.mark.parametrize(
    ("mode", "old"), MODES, ids=[f"{mode}{'_1x' if old else ''}" for mode, old in MODES]
)


async def serve(peer: Peer) -> None:
    """Answer with the case that the model names."""
    while True:
        _, body = await peer.request()
        case = CASES[json.loads(body)["model"]]
        kind = "application/json" if (case.folder / "upstream.json").exists() else "text/event-stream"
        head = f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n"
        data = case.upstream
        await peer.send(head.encode() + b"%x\r\n%b\r\n" % (len(data), data))
        if case.broken:
            peer.reset()
            return
        await peer.send(b"0\r\n\r\n")


def request(case: Case, meant: Meaning) -> dict[str, Any]:
    asked: dict[str, Any] = {
        "model": case.name,
        "messages": [{"role": "user", "content": "hi"}],
        "stream_options": {"include_usage": True},
    }
    if names := {call["name"] for call in meant.calls}:
        schema = {"type": "object", "properties": {}, "additionalProperties": True}
        asked["tools"] = [
            {"type": "function", "function": {"name": name, "description": "d", "parameters": schema}}
            for name in sorted(names)
        ]
    if case.n == 2:
        asked["n"] = 2
    return asked


def faults(mode: str, told: dict[str, Any], meant: dict[int, Meaning], name: str) -> Iterator[str]:
    """What a library got wrong."""
    error = told.get("error")
    if meant[0].error:
        if not error:
            yield f"the error {meant[0].error['message']!r} was not noticed"
        elif mode != "litellm" and not CASES[name].broken and meant[0].error["message"][:40] not in error["message"]:
            yield f"the error reads {error['message']!r}"
        return
    if error:
        yield f"raised {error}"
        return
    for index, choice in meant.items():
        if index and mode not in CHOICES:
            return
        yield from choice_faults(mode, told["choices"].get(str(index)), choice)
    if mode in ("py_raw", "node_raw", "py_helper", "node_helper") and told["model"] != name:
        yield f"model {told['model']!r}"
    usages, usage = [usage["total_tokens"] for usage in told["usage"]], meant[0].usage or {}
    total = usage.get("total_tokens", 0)
    if len(usages) != 1 or not isinstance(usages[0], int):
        yield f"usage {told['usage']}"
    elif usages[0] != total if usage.get("prompt_tokens") and usage.get("completion_tokens") else usages[0] < total:
        yield f"{usages[0]} tokens, not {total}"  # of which the gateway counts a side that was not told


def choice_faults(mode: str, told: dict[str, Any] | None, meant: Meaning) -> Iterator[str]:
    if told is None:
        yield "a choice is missing"
        return
    if told["text"] != meant.text:
        yield f"text {told['text']!r}, not {meant.text!r}"
    if mode in REASONING and told["reasoning"] != meant.reasoning:
        yield f"reasoning {told['reasoning']!r}, not {meant.reasoning!r}"
    calls = [(name_of(call["id"]), call["name"], parsed(call["arguments"])) for call in told["calls"].values()]
    wanted = [(name_of(call["id"]), call["name"], parsed(call["arguments"])) for call in meant.calls]
    if calls != wanted:
        yield f"calls {calls}, not {wanted}"
    if told["finish"] != [meant.finish]:
        yield f"finish {told['finish']}, not {meant.finish}"
    if told.get("role", "assistant") not in ("assistant", "ai", "AIMessageChunk"):
        yield f"role {told['role']}"


def name_of(call_id: str) -> str:
    """An id that the gateway made up has its own salt."""
    return re.sub(r"^call_[0-9a-z]+_", "call_made_", call_id)


def parsed(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


def readable(mode: str, case: Case, meant: dict[int, Meaning]) -> bool:
    """Whether a mode can hold what is said at all."""
    if any(call["type"] == "custom" for call in meant[0].calls):
        return False  # no mode's plain tools have these
    if mode == "ai_sdk" and (b'"refusal":"' in (case.folder / "client.sse").read_bytes()):
        return False  # it makes text of refusals
    return len(meant) == 1 or mode in CHOICES


@every_mode
async def test_the_corpus(mode: str, *, old: bool, readers: Readers, tmp_path: Path) -> None:
    wrong: dict[str, list[str]] = {}
    seen = 0
    async with raw_upstream(serve) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        for name, case in CASES.items():
            meant = read_meaning((case.folder / "client.sse").read_bytes())
            if not readable(mode, case, meant):
                continue
            told = await readers.read(mode, gate.url, request(case, meant[0]), old=old)
            seen += 1
            if found := list(faults(mode, told, meant, name)):
                wrong[name] = found
    print(f"{mode}: {seen} of {len(CASES)} cases read, {len(wrong)} wrong")
    assert wrong == {}


@every_mode
async def test_an_error_before_the_answer(mode: str, *, old: bool, readers: Readers, tmp_path: Path) -> None:
    async def refuse(peer: Peer) -> None:
        while True:
            await peer.request()
            told = {"error": {"message": "no such deployment", "type": "invalid_request_error", "code": "nope"}}
            await peer.answer(json.dumps(told).encode(), "content-type: application/json", status="404 Not Found")

    async with raw_upstream(refuse) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        asked = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
        told = await readers.read(mode, gate.url, asked, old=old)
    assert "no such deployment" in told["error"]["message"]


@every_mode
async def test_the_embedded_model(mode: str, *, old: bool, readers: Readers, tmp_path: Path) -> None:
    async with gateway(tmp_path, {"providers": {"local": {"enabled": True}}}) as gate:
        asked = {
            "model": "local/text",
            "messages": [{"role": "user", "content": "Say hello."}],
            "max_tokens": 12,
            "stream_options": {"include_usage": True},
        }
        told = await readers.read(mode, gate.url, asked, old=old)
    assert "error" not in told, told
    choice = told["choices"]["0"]
    assert choice["text"]
    assert choice["finish"] in (["stop"], ["length"])
    assert len(told["usage"]) == 1
    assert told["usage"][0]["total_tokens"] > told["usage"][0]["prompt_tokens"] > 0


WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = {"type": "function", "function": {"name": "weather_of", "description": "Weather.", "parameters": WEATHER}}


def turn(city: str) -> list[dict[str, str]]:
    """A call as the model writes it: two of them teach even a small one."""
    call = json.dumps({"name": "weather_of", "arguments": {"city": city}})
    return [
        {"role": "user", "content": f"What is the weather in {city}?"},
        {"role": "assistant", "content": f"<tool_call>\n{call}\n</tool_call>"},
    ]


@every_mode
async def test_the_embedded_model_calls_tools(mode: str, *, old: bool, readers: Readers, tmp_path: Path) -> None:
    async with gateway(tmp_path, {"providers": {"local": {"enabled": True}}}) as gate:
        asked = {
            "model": "local/text",
            "messages": [
                *turn("Rome"),
                *turn("Oslo"),
                {"role": "user", "content": "What is the weather in Paris?"},
            ],
            "tools": [TOOL],
            "max_tokens": 60,
            "temperature": 0,
            "stream_options": {"include_usage": True},
        }
        told = await readers.read(mode, gate.url, asked, old=old)
    assert "error" not in told, told
    choice = told["choices"]["0"]
    [call] = choice["calls"].values()
    assert call["id"]
    assert call["name"] == "weather_of"
    assert isinstance(parsed(call["arguments"])["city"], str)
    assert choice["finish"] == ["tool_calls"]
    assert told["usage"][0]["total_tokens"] > 0


@every_mode
async def test_an_engine_that_dies_in_mid_stream(mode: str, *, old: bool, readers: Readers, tmp_path: Path) -> None:
    child = local_text(find_weights())

    async def relay(peer: Peer) -> None:
        """Pass a request on to llama.cpp, and kill it when some of the answer has gone through."""
        _, body = await peer.request()
        address = await child.address()
        reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(address.base_url).port)
        head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {address.key}\r\n"
        writer.write(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        seen = 0
        while data := await reader.read(65536):
            await peer.send(data)
            seen += data.count(b"data: ")
            if seen > 5 and child.pid:
                os.killpg(child.pid, signal.SIGKILL)
        writer.close()

    async with asyncio.TaskGroup() as group:
        group.create_task(child.run())
        async with raw_upstream(relay) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
            asked = {"model": "m", "messages": [{"role": "user", "content": "Tell a long story."}], "max_tokens": 2000}
            told = await readers.read(mode, gate.url, asked | {"ignore_eos": True}, old=old)
        child.stop()
    assert told["error"]["message"], told
