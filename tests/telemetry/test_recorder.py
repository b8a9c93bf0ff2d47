"""What upstreams really send is kept when that is asked for, without secrets, within bounds, and can be read again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import Gateway, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.core.caller import Caller
from trunkline.core.keys import Key
from trunkline.inspection import recording
from trunkline.inspection.examine import examine
from trunkline.inspection.paste import unwrap
from trunkline.telemetry import recorder
from trunkline.telemetry.recorder import FileRecorder, masked

HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nset-cookie: a=b\r\nx-request-id: r-1\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
TALK = chunk({"role": "assistant", "content": "yours is sk-upstream, hers sk-abcdefghijklmnopqrstuv."})
CUT = TALK.index(b"stream, hers")
PIECES = [TALK[:CUT], TALK[CUT:], chunk({}, "stop") + b"data: [DONE]\n\n"]


def in_chunks(*pieces: bytes) -> bytes:
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)


async def answer(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.send(HEAD)
        for piece in PIECES:
            await peer.send(in_chunks(piece))
            await asyncio.sleep(0.02)
        await peer.send(b"0\r\n\r\n")


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob(f"*{recorder.SUFFIX}"))


async def one_recording(folder: Path) -> bytes:
    async with asyncio.timeout(60):
        while True:  # it may be there, and still empty
            for file in files(folder):
                if data := file.read_bytes():
                    return data
            await asyncio.sleep(0.01)


async def ask(gate: Gateway, **headers: str) -> list[Any]:
    return await (await gate.ask(chat(stream=True), **headers)).events()


async def test_a_call_is_recorded_with_its_reads_and_without_secrets(tmp_path: Path) -> None:
    folder = tmp_path / "recordings"
    async with raw_upstream(answer) as upstream:
        tables = to_upstream(upstream.url) | {"debug": {"record": str(folder)}}
        async with gateway(tmp_path, tables) as gate:
            events = await ask(gate, x_request_id="../call 1")
            assert events[-1] == "[DONE]"
            data = await one_recording(folder)
    assert b"sk-upstream" not in data
    assert b"abcdefghijklmnopqrstuv" not in data
    assert b"a=b" not in data
    parsed = recording.parse(data)
    assert parsed is not None
    assert parsed.facts["target"] == "up:m"
    assert parsed.facts["request"] == "POST /chat/completions"
    assert parsed.facts["call"] == "../call 1"
    assert parsed.facts["ended"] in ("complete", "left")
    assert dict(parsed.headers) == {"content-type": "text/event-stream", "x-request-id": "r-1"}
    body = b"".join(data[read.start : read.end] for read in parsed.reads)
    assert len(body) == len(b"".join(PIECES))
    assert len(parsed.reads) >= 2
    times = [read.at_s for read in parsed.reads]
    assert times == sorted(times)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert files(folder)[0].stat().st_mode & 0o777 == 0o600
    report = examine(data)
    assert report.text == f"yours is {'*' * 11}, hers {'*' * 25}."
    assert report.wrappings == ["recording"]
    assert report.rows[0].t_ms is not None


async def test_a_key_may_ask_for_it(tmp_path: Path) -> None:
    kept = FileRecorder(tmp_path, always=False)
    upstreams: Any = object()
    assert kept.over(upstreams, Caller("r"), "m") is upstreams
    assert kept.over(upstreams, Caller("r", key=Key(id="k", name="k", record=True)), "m") is not upstreams


async def test_nothing_is_recorded_unasked(tmp_path: Path) -> None:
    async with raw_upstream(answer) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        await ask(gate)
    assert files(tmp_path) == []


async def test_an_answer_that_breaks_is_recorded_as_broken(tmp_path: Path) -> None:
    async def break_off(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + in_chunks(*PIECES[:2]))
        await asyncio.sleep(0.05)
        peer.reset()

    async with raw_upstream(break_off) as upstream:
        async with gateway(tmp_path, to_upstream(upstream.url) | {"debug": {"record": str(tmp_path / "r")}}) as gate:
            events = await ask(gate)
            assert "error" in events[-1]
            capture = unwrap(await one_recording(tmp_path / "r"))
    assert capture.broken
    assert capture.data == masked(TALK, [b"sk-upstream"])
    assert examine(await one_recording(tmp_path / "r")).verdict == 2


async def test_an_error_answer_is_recorded(tmp_path: Path) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.request()
        told = {"error": {"message": "Incorrect API key provided: sk-upstream-0123456789.", "code": "invalid_api_key"}}
        await peer.answer(json.dumps(told).encode(), "content-type: application/json", status="401 Unauthorized")

    async with raw_upstream(refuse) as upstream:
        async with gateway(tmp_path, to_upstream(upstream.url) | {"debug": {"record": str(tmp_path / "r")}}) as gate:
            assert (await gate.ask(chat(stream=True))).status == 502
            data = await one_recording(tmp_path / "r")
    capture = unwrap(data)
    assert capture.head is not None
    assert capture.head.status == 401
    assert b"sk-upstream" not in data


async def test_large_answers_are_cut_and_old_recordings_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder.FileRecorder, "most_bytes", 300)
    monkeypatch.setattr(recorder, "MOST_TOTAL_BYTES", 2_000)
    folder = tmp_path / "r"
    async with raw_upstream(answer) as upstream:
        async with gateway(tmp_path, to_upstream(upstream.url) | {"debug": {"record": str(folder)}}) as gate:
            for _ in range(6):
                assert (await ask(gate))[-1] == "[DONE]"
    async with asyncio.timeout(60):
        while not all(kept := [file.read_bytes() for file in files(folder)]):  # noqa: ASYNC110 - a thread may write
            await asyncio.sleep(0.01)
    assert 1 <= len(kept) < 6
    assert all(b"truncated: after 300 bytes" in data for data in kept)
    assert all(len(unwrap(data).data) == 300 for data in kept)


async def test_a_directory_that_cannot_be_written_costs_no_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "taken").write_text("")
    async with raw_upstream(answer) as upstream:
        tables = to_upstream(upstream.url) | {"debug": {"record": str(tmp_path / "taken" / "r")}}
        async with gateway(tmp_path, tables) as gate:
            assert (await ask(gate))[-1] == "[DONE]"
    assert "cannot record to" in caplog.text


def test_what_looks_like_a_secret_is_masked_in_place() -> None:
    data = b'{"a":"Bearer abcdefgh.ij","u":"https://x/y?key=AIzaabc&z=1","k":"sk-proj-0123456789abcdef"}'
    told = masked(data, [b"hidden-one"])
    assert len(told) == len(data)
    for secret in (b"abcdefgh.ij", b"AIzaabc", b"0123456789abcdef"):
        assert secret not in told
    assert b"&z=1" in told
    assert masked(b"x hidden-one y", [b"hidden-one"]) == b"x ********** y"


def test_a_recording_that_an_editor_changed_is_still_read() -> None:
    data = b"".join(recording.encode({"status": "200"}, [(0.5, b"data: 1\n\n"), (0.75, b"data: 2\n\n")]))
    changed = data.replace(b"\n", b"\r\n")
    parsed = recording.parse(changed)
    assert parsed is not None
    assert [(read.at_s, changed[read.start : read.end].strip()) for read in parsed.reads] == [
        (0.5, b"data: 1"), (0.75, b"data: 2"),
    ]  # fmt: skip
