"""Text streams that outlive their clients, over real sockets."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, Gateway, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney
from trunkline.storage.sql.streams import SqlStreams
from trunkline.telemetry.recorder import FileRecorder

pytestmark = pytest.mark.faults

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
RESUME = {"x_trunkline_resume": "true"}


async def numbered(answer: Answer, begun: bytes = b"") -> list[tuple[int | None, Any]]:
    """The stream's events with their numbers; `begun`: what was read of it before."""
    events = []
    for block in (begun + await answer.body()).decode().removesuffix("\n\n").split("\n\n"):
        lines = dict(line.split(": ", 1) for line in block.split("\n"))
        data = lines["data"]
        number = int(lines["id"]) if "id" in lines else None
        events.append((number, data if data == "[DONE]" else json.loads(data)))
    return events


def text(events: list[tuple[int | None, Any]]) -> str:
    chunks = [event for _, event in events if event != "[DONE]"]
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in chunks if event.get("choices"))


async def words(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD)
    for word in ("one ", "two ", "three ", "four"):
        await peer.send(chunk({"content": word}))
        await asyncio.sleep(0.05)
    await peer.send(chunk({}, "stop") + b"data: [DONE]\n\n")


async def taken_up(gate: Gateway, stream_id: str, after: int | None = None) -> Answer:
    headers = {} if after is None else {"last_event_id": str(after)}
    return await gate.get(f"/v1/streams/{stream_id}", **headers)


async def test_a_stream_is_taken_up_after_any_event_without_gap_or_double(tmp_path: Path) -> None:
    async with raw_upstream(words) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat(stream=True), **RESUME)
        whole = await numbered(answer)
        assert text(whole) == "one two three four"
        assert whole[-1][1] == "[DONE]"
        assert [number for number, _ in whole] == list(range(1, len(whole) + 1))
        stream_id = answer.headers["x-trunkline-stream-id"]
        assert answer.headers["x-trunkline-provider"] == "up"
        assert await numbered(await taken_up(gate, stream_id)) == whole
        for at in range(1, len(whole)):
            assert await numbered(await taken_up(gate, stream_id, at)) == whole[at:]


async def test_the_work_goes_on_without_its_client(tmp_path: Path) -> None:
    async with raw_upstream(words) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat(stream=True), **RESUME)
        answer.leave()
        stream_id = answer.headers["x-trunkline-stream-id"]
        assert text(await numbered(await taken_up(gate, stream_id))) == "one two three four"


@pytest.mark.parametrize("how", ["delete", "leave"])
async def test_the_work_is_stopped_when_that_is_asked_for(tmp_path: Path, how: str) -> None:
    left = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + chunk({"content": "one"}))
        await peer.gone()
        left.set()

    headers = RESUME | ({"x_trunkline_on_disconnect": "cancel"} if how == "leave" else {})
    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat(stream=True), **headers)
        stream_id = answer.headers["x-trunkline-stream-id"]
        await answer.chunk()
        if how == "leave":
            answer.leave()
        else:
            stopped = await gate.get(f"/v1/streams/{stream_id}", "DELETE")
            assert (stopped.status, (await stopped.json())["id"]) == (200, stream_id)
        async with asyncio.timeout(60):
            await left.wait()
        events = await numbered(await taken_up(gate, stream_id))
        assert events[-1][1]["error"]["code"] == "cancelled"
        assert "choices" not in events[-1][1]


async def test_a_failure_before_the_first_event_is_a_status(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b'{"error":{"message":"busy","type":"x","code":null}}', status="429 Slow down")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat(stream=True), **RESUME)
        assert answer.status == 429


async def test_before_the_first_event_there_are_keep_alives_without_comments(tmp_path: Path) -> None:
    kept_alive = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await kept_alive.wait()
        await peer.send(HEAD + chunk({"content": "late"}, "stop") + b"data: [DONE]\n\n")

    async with raw_upstream(script) as upstream:
        tables = to_upstream(upstream.url) | {"server": {"grace_s": 0.1, "keepalive_s": 0.1}}
        async with gateway(tmp_path, tables) as gate:
            answer = await gate.ask(chat(stream=True), **RESUME)
            begun = b"".join([await answer.chunk() for _ in range(3)])  # the role, then what keeps it alive
            kept_alive.set()
            events = await numbered(answer, begun)
    silent = [event for number, event in events if number is None]
    assert len(silent) >= 2
    assert all(event["choices"][0]["delta"] == {} for event in silent)
    assert {event["id"] for _, event in events if event != "[DONE]"} == {events[0][1]["id"]}
    first, event = next((number, event) for number, event in events if number is not None)
    assert (text(events), first, event["choices"][0]["delta"]["role"]) == ("late", 1, "assistant")


async def test_a_repeated_call_joins_the_stream(tmp_path: Path) -> None:
    asked = 0

    async def script(peer: Peer) -> None:
        nonlocal asked
        asked += 1
        await words(peer)

    headers = RESUME | {"idempotency_key": "k1"}
    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        first = await gate.ask(chat(stream=True), **headers)
        second = await gate.ask(chat(stream=True), **headers)
        whole = await numbered(first)
        assert await numbered(second) == whole
        assert await numbered(await gate.ask(chat(stream=True), **headers)) == whole
        other = await gate.ask(chat(stream=True, seed=1), **headers)
        assert (other.status, (await other.json())["error"]["code"]) == (409, "idempotency_conflict")
    assert asked == 1


async def test_what_is_wrong_with_taking_up_is_said(tmp_path: Path) -> None:
    async with raw_upstream(words) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        missing = await taken_up(gate, "strm_0")
        assert (missing.status, (await missing.json())["error"]["code"]) == (404, "stream_not_found")
        answer = await gate.ask(chat(stream=True), **RESUME)
        await answer.body()
        wrong = await gate.get(f"/v1/streams/{answer.headers['x-trunkline-stream-id']}", last_event_id="x")
        assert (wrong.status, (await wrong.json())["error"]["param"]) == (400, "Last-Event-ID")
        word = await gate.ask(chat(stream=True), **RESUME, x_trunkline_on_disconnect="perhaps")
        assert (word.status, (await word.json())["error"]["param"]) == (400, "X-Trunkline-On-Disconnect")


async def test_events_beyond_the_bound_are_gone(tmp_path: Path) -> None:
    async with raw_upstream(words) as upstream:
        tables = to_upstream(upstream.url) | {"resume": {"max_bytes": 600}}
        async with gateway(tmp_path, tables) as gate:
            answer = await gate.ask(chat(stream=True), **RESUME)
            await answer.body()
            gone = await taken_up(gate, answer.headers["x-trunkline-stream-id"], 1)
            assert (gone.status, (await gone.json())["error"]["code"]) == (410, "stream_expired")


async def test_a_stream_that_is_being_recorded_when_the_gateway_goes_down_is_booked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keeping = asyncio.Event()

    async def keep(*_: Any) -> None:
        keeping.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(FileRecorder, "keep", keep)
    async with raw_upstream(words) as upstream:
        tables = to_upstream(upstream.url) | {"debug": {"record": str(tmp_path / "r")}}
        async with gateway(tmp_path, tables) as gate:
            answer = await gate.ask(chat(stream=True), **RESUME)
            await keeping.wait()
    database = Database.at(tmp_path / "trunkline.db")
    [row] = await SqlMoney(database).rows()
    stream = await SqlStreams(database).get(answer.headers["x-trunkline-stream-id"])
    await database.close()
    assert stream is not None
    assert (row.end_reason, stream.state) == ("completed", "ended")


async def test_a_stream_that_is_claimed_anew_while_it_ends_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SqlStreams.end

    async def end(store: SqlStreams, stream_id: str, generation: int, *rest: Any) -> None:
        texts = gate.application._media.texts
        if generation == 1:  # the lease was lost, and the life after it comes between
            claimed = await texts._log.claim(stream_id, texts._life.holder)
            assert claimed is not None
            texts._pumps[stream_id].stream = claimed
        await real(store, stream_id, generation, *rest)

    monkeypatch.setattr(SqlStreams, "end", end)
    async with raw_upstream(words) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        async with asyncio.timeout(60):
            whole = await numbered(await gate.ask(chat(stream=True), **RESUME))
    assert whole[-1][1] == "[DONE]"
