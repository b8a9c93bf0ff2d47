"""A configuration that changes while the gateway runs, and the limits of a request that it sets."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, RawUpstream, raw_upstream

from trunkline.config.load import Loaded, load
from trunkline.config.spoken import this_build

pytestmark = pytest.mark.faults

FILE = """
[server]
keepalive_s = {keepalive}
[providers.local]
enabled = false
[providers.up]
base_url = "{url}"
api_key = "{key}"
chat = {{ dialect = "openai_chat" }}
[models.{name}]
targets = ["up:*"]
"""


def write(file: Path, upstream: RawUpstream, name: str, key: str = "sk-one", keepalive: object = 10) -> None:
    file.write_text(FILE.format(url=upstream.url, name=name, key=key, keepalive=keepalive))


def reader(file: Path, data_dir: Path) -> Any:
    def again() -> Loaded:
        return load(str(file), {}, {"server.data_dir": str(data_dir), "server.listen": "127.0.0.1:0"}, this_build())

    return again


async def become(gate: Gateway, name: str, status: int) -> int:
    """Ask for a model until it is answered with this status."""
    got = 0
    async with asyncio.timeout(60):
        while got != status:
            answer = await gate.ask(chat(name, n=0))
            await answer.body()
            got = 404 if answer.status == 404 else (await gate.ask(chat(name))).status
            await asyncio.sleep(0.05)
    return got


class Upstream:
    """Sends the first piece of an answer, and the rest when told; notes the keys that it is sent."""

    def __init__(self) -> None:
        self.more = asyncio.Event()
        self.keys: list[str] = []

    async def __call__(self, peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            self.keys.append(head.lower().partition("authorization: bearer ")[2].partition("\r\n")[0])
            if not json.loads(body).get("stream"):
                message = {"role": "assistant", "content": "Hello"}
                whole = {"id": "1", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                await peer.answer(json.dumps(whole).encode(), "content-type: application/json")
                continue
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + chunk({"content": "one "}))
            await self.more.wait()
            await peer.send(chunk({"content": "two"}) + chunk({}, "stop") + b"data: [DONE]\n\n")
            break


async def test_a_changed_file_is_taken_over_and_streams_go_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    script, file = Upstream(), tmp_path / "trunkline.toml"
    async with raw_upstream(script) as upstream:
        write(file, upstream, "old")
        first = reader(file, tmp_path)
        tables = to_upstream(upstream.url) | {"models": {"old": {"targets": ["up:*"]}}}
        tables["providers"]["up"]["api_key"] = "sk-one"
        async with gateway(tmp_path, tables, first) as gate:
            assert gate.application.watch is not None
            stream = await gate.ask(chat("old", stream=True))
            await stream.chunk()
            write(file, upstream, "new", key="sk-two")
            gate.application.watch.ask()
            assert await become(gate, "new", 200) == 200
            assert await become(gate, "old", 404) == 404
            assert script.keys[-1] == "sk-two"
            with caplog.at_level(logging.ERROR, "trunkline"):
                write(file, upstream, "newest", keepalive='"never"')
                gate.application.watch.ask()
                async with asyncio.timeout(60):
                    while not caplog.records:
                        assert await become(gate, "new", 200) == 200
            fault = "`server.keepalive_s` must be a number above 0; it is text"
            assert caplog.messages == [f"the changed configuration is not used, the former one stays: {fault}"]
            assert await become(gate, "new", 200) == 200
            script.more.set()
            rest = (await stream.body()).decode()
    assert '"content":"two"' in rest
    assert rest.endswith("data: [DONE]\n\n")


async def test_what_waits_for_the_next_start_is_named(tmp_path: Path) -> None:
    async with raw_upstream(Upstream()) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        file = tmp_path / "trunkline.toml"
        write(file, upstream, "new")
        file.write_text(file.read_text().replace("[server]", '[server]\nlog = "off"') + "\n[resume]\nttl_s = 7\n")
        loaded = reader(file, tmp_path)()
        assert gate.application.use(loaded) == ["server.log", "resume"]
        assert gate.application.config.resume.ttl_s == 3600
        assert gate.application.use(loaded) == ["server.log", "resume"]


PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}


@pytest.mark.parametrize(
    ("messages", "told"),
    [
        ([{"role": "user", "content": "x"}] * 4, "`messages` has 4 messages; at most 3 are allowed here."),
        ([{"role": "user", "content": [PICTURE] * 3}], "`messages` hold 3 pictures; at most 2 are allowed here."),
    ],
)
async def test_limits_of_a_request(tmp_path: Path, messages: list[Any], told: str) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1") | {"server": {"messages_max": 3, "images_max": 2}}
    async with gateway(tmp_path, tables) as gate:
        answer = await gate.ask({"model": "m", "messages": messages})
        error = (await answer.json())["error"]
        assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", "messages")
        assert error["message"] == told
        fine = [{"role": "user", "content": [PICTURE, PICTURE, {"type": "text", "text": "image_url image_url"}]}]
        assert (await gate.ask({"model": "m", "messages": fine})).status == 503
