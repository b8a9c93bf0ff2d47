"""The streaming chat over real sockets, against upstreams that misbehave in time."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

pytestmark = pytest.mark.faults

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"


async def events_of(answer: Answer) -> tuple[str, Any]:
    events = await answer.events()
    choices = [choice for event in events if event != "[DONE]" for choice in event.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices), events[-1]


async def test_a_stream_arrives_whole(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(
            HEAD + chunk({"role": "assistant", "content": "Hel"}) + chunk({"content": "lo"}) + chunk({}, "stop")
        )
        await peer.send(b"data: [DONE]\n\n")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat(stream=True))
        assert answer.status == 200
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert answer.headers["x-trunkline-provider"] == "up"
        assert await events_of(answer) == ("Hello", "[DONE]")


async def test_a_picture_that_stands_in_the_text_does_not_end_the_stream(tmp_path: Path) -> None:
    link = "https://pictures.example.org/mill.png"

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"role": "assistant", "content": ""}))
        await peer.send(chunk({"images": [{"type": "image_url", "image_url": {"url": link}}]}))
        await asyncio.sleep(0.05)
        await peer.send(chunk({"content": f"![mill]({link})"}))
        await asyncio.sleep(0.05)
        await peer.send(chunk({}, "stop"))
        await asyncio.sleep(0.05)
        await peer.send(b"data: [DONE]\n\n")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        assert await events_of(await gate.ask(chat(stream=True))) == (f"![mill]({link})", "[DONE]")


async def test_an_upstream_that_stays_open_after_the_end_mark_is_not_waited_for(tmp_path: Path) -> None:
    gone = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"content": "Hello"}) + b"data: [DONE]\n\n")
        while not gone.is_set():
            await peer.send(b": still here\n\n")
            await asyncio.sleep(0.02)

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        assert await events_of(await gate.ask(chat(stream=True))) == ("Hello", "[DONE]")
        gone.set()


async def test_usage_is_asked_for_and_the_clients_members_pass(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def script(peer: Peer) -> None:
        head, body = await peer.request()
        seen.append((head, body))
        await peer.send(HEAD + chunk({"content": "x"}, "stop") + b"data: [DONE]\n\n")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        await (await gate.ask(chat(stream=True, top_k=5))).events()
    head, body = seen[0]
    assert b'"stream_options":{"include_usage":true}' in body
    assert b'"top_k": 5' in body or b'"top_k":5' in body
    assert "authorization: Bearer sk-upstream" in head


@pytest.mark.parametrize("moment", ["before the first byte", "in the middle", "unstreamed"])
async def test_a_client_that_leaves_ends_the_provider_call(tmp_path: Path, moment: str) -> None:
    asked, left = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        if moment == "in the middle":
            await peer.send(HEAD + chunk({"content": "x"}))
        asked.set()
        await peer.gone()
        left.set()

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.send(
            "POST", "/v1/chat/completions", json.dumps(chat(stream=moment != "unstreamed")).encode()
        )
        await asked.wait()
        if moment == "in the middle":
            await answer.read_head()
            await answer.chunk()
        answer.leave()
        async with asyncio.timeout(60):
            await left.wait()


async def test_silence_before_the_first_byte_is_a_504(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.gone()

    config = to_upstream("", first_event_s=0.2)
    async with raw_upstream(script) as upstream:
        config["providers"]["up"]["base_url"] = upstream.url
        async with gateway(tmp_path, config) as gate:
            answer = await gate.ask(chat(stream=True))
            assert answer.status == 504
            assert (await answer.json())["error"]["code"] == "upstream_timeout"


@pytest.mark.parametrize(("refuses", "code"), [(True, b"upstream_error"), (False, b"upstream_timeout")])
async def test_after_the_grace_period_keepalives_come_and_the_failure_is_the_last_event(
    tmp_path: Path, code: bytes, *, refuses: bool
) -> None:
    kept_alive = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        if refuses:
            await kept_alive.wait()
            await peer.answer(b'{"error":{"message":"no"}}', status="500 Internal Server Error")
        await peer.gone()

    async with raw_upstream(script) as upstream:
        config = to_upstream(upstream.url, first_event_s=60 if refuses else 0.5)
        config["server"] = {"grace_s": 0.1, "keepalive_s": 0.1}
        async with gateway(tmp_path, config) as gate:
            answer = await gate.ask(chat(stream=True))
            assert answer.status == 200
            for _ in range(2 if refuses else 1):
                assert await answer.chunk() == b": keep-alive\n\n"
            kept_alive.set()
            body = await answer.body()
            assert body.endswith(b'"code":"' + code + b'"}}\n\n')
            assert b"[DONE]" not in body


@pytest.mark.parametrize(
    ("alive", "answer", "stream"),
    [
        (b": working\n\n", chunk({"content": "at last"}, "stop") + b"data: [DONE]\n\n", True),
        (b"\n", b'{"choices":[{"index":0,"message":{"content":"at last"},"finish_reason":"stop"}]}', False),
    ],
)
async def test_an_upstream_that_shows_that_it_lives_suspends_the_first_event_limit(
    tmp_path: Path, alive: bytes, answer: bytes, *, stream: bool
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        until = asyncio.get_running_loop().time() + 2.3
        while asyncio.get_running_loop().time() < until:
            await peer.send(alive)
            await asyncio.sleep(0.1)
        await peer.send(answer)

    async with raw_upstream(script) as upstream:
        config = to_upstream(upstream.url, first_event_s=2, idle_s=60)
        async with gateway(tmp_path, config) as gate:
            given = await gate.ask(chat(stream=stream))
            assert given.status == 200
            assert b"at last" in await given.body()


@pytest.mark.parametrize(
    ("said", "stream"),
    [
        (b"", True),
        (chunk({"role": "assistant", "content": ""}), True),
        (chunk({"content": "Half"}), True),
        (b'{"choices":[{"index":0,', False),
    ],
)
async def test_silence_counts_from_the_last_bytes_however_long_the_first_may_take(
    tmp_path: Path, said: bytes, *, stream: bool
) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + said)
        await peer.gone()

    first_event_s = 0.4 if said in (b"", b'{"choices":[{"index":0,') else 60
    async with raw_upstream(script) as upstream:
        config = to_upstream(upstream.url, first_event_s=first_event_s, idle_s=0.3)
        async with gateway(tmp_path, config) as gate, asyncio.timeout(60):
            answer = await gate.ask(chat(stream=stream))
            body = await answer.body()
            assert answer.status == (200 if b"Half" in said else 504)
            assert b'"code":"upstream_timeout"' in body


async def test_a_whole_answer_does_not_wait_for_an_upstream_that_stays_open(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"content": "x"}) + chunk({}, "stop"))
        await peer.gone()

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url, idle_s=1)) as gate:
        assert await events_of(await gate.ask(chat(stream=True))) == ("x", "[DONE]")


@pytest.mark.parametrize("stream", [True, False])
async def test_another_target_is_tried_before_the_answer_begins(tmp_path: Path, *, stream: bool) -> None:
    async def broken(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b'{"error":{"message":"overloaded"}}', status="503 Service Unavailable")

    async def well(peer: Peer) -> None:
        await peer.request()
        if stream:
            await peer.send(HEAD + chunk({"content": "fine"}, "stop") + b"data: [DONE]\n\n")
        else:
            answer = b'{"choices":[{"index":0,"message":{"role":"assistant","content":"fine"},"finish_reason":"stop"}]}'
            await peer.answer(answer)

    async with raw_upstream(broken) as first, raw_upstream(well) as second:
        config = {
            "providers": {
                "a": {"base_url": first.url, "api_key": "k", "chat": {"dialect": "openai_chat"}},
                "b": {"base_url": second.url, "api_key": "k", "chat": {"dialect": "openai_chat"}},
            },
            "models": {"m": {"targets": ["a:one", "b:two"]}},
        }
        async with gateway(tmp_path, config) as gate:
            answer = await gate.ask(chat(stream=stream))
            assert answer.headers["x-trunkline-fallback-from"] == "a:one"
            assert answer.headers["x-trunkline-provider"] == "b"
            assert answer.headers["x-trunkline-attempts"] == "2"
            assert b"fine" in await answer.body()


async def test_stream_options_that_are_refused_are_left_out_and_remembered(tmp_path: Path) -> None:
    asked: list[bool] = []

    async def script(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            asked.append(b"stream_options" in body)
            if asked[-1]:
                await peer.answer(b'{"error":{"message":"unknown field stream_options"}}', status="400 Bad Request")
            else:
                await peer.answer(
                    chunk({"content": "ok"}, "stop") + b"data: [DONE]\n\n", "content-type: text/event-stream"
                )

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        for _ in range(2):
            assert (await events_of(await gate.ask(chat(stream=True))))[0] == "ok"
    assert asked == [True, False, False]


async def test_a_client_that_does_not_read_stops_the_upstream(tmp_path: Path) -> None:
    sent = 0
    stuck = asyncio.Event()

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(HEAD)
        event = chunk({"content": "x" * 4000})
        try:
            async with asyncio.timeout(2):
                for _ in range(20_000):
                    await peer.send(event)
                    sent += len(event)
        except TimeoutError:
            stuck.set()
        await peer.gone()

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url, idle_s=30)) as gate:
        answer = await gate.ask(chat(stream=True))
        answer.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await stuck.wait()
    assert sent < 24 * 1024 * 1024  # socket buffers of the machine on both sides, and ours


async def test_a_client_that_reads_nothing_for_too_long_is_let_go(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        event = chunk({"content": "x" * 60_000})
        try:
            while True:
                await peer.send(event)
        except ConnectionError:
            left.set()

    async with (
        raw_upstream(script) as upstream,
        gateway(tmp_path, to_upstream(upstream.url, client_stall_s=0.3)) as gate,
    ):
        answer = await gate.ask(chat(stream=True))
        answer.reader._transport.pause_reading()  # type: ignore[attr-defined]
        await left.wait()


async def test_going_down_ends_running_streams_with_an_error_event(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"content": "x"}))
        await peer.gone()

    config = to_upstream("", idle_s=30)
    config["server"] = {"grace_s": 1}
    async with raw_upstream(script) as upstream:
        config["providers"]["up"]["base_url"] = upstream.url
        async with gateway(tmp_path, config) as gate:
            answer = await gate.ask(chat(stream=True))
            while b'"x"' not in await answer.chunk():
                pass
            answer.kept = True
        text, last = await events_of(answer)
        assert text == ""
        assert last["error"]["code"] == "server_shutdown"
        answer.leave()


async def test_the_upstreams_key_is_never_told(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b'{"error":{"message":"Incorrect API key provided: sk-upstream"}}', status="401 Unauthorized")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat())
        body = await answer.body()
        assert answer.status == 502
        assert b"upstream_auth" in body
        assert b"sk-upstream" not in body


async def test_a_rate_limit_passes_with_its_wait(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b'{"error":{"message":"slow down"}}', "retry-after: 7", status="429 Too Many Requests")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat())
        assert answer.status == 429
        assert answer.headers["retry-after"] == "7"
        assert (await answer.json())["error"]["type"] == "rate_limit_error"
