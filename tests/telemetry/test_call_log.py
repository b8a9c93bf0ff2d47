"""The line that every call leaves, and what never stands in it, in metrics or in errors."""

import asyncio
import contextlib
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from gateway import Answer, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges
from trunkline.core.money import LedgerRow
from trunkline.telemetry.call_log import CallLog, pieces

PROMPT = "my grandmother's recipe"
REPLY = "take two eggs"
UPSTREAM_KEY = "sk-upstream-0123456789abcdef"
ADMIN_KEY = "adm-0123456789abcdef0123456789abcdef"
USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


async def upstream_of_all_kinds(peer: Peer) -> None:
    """Answer by the model's name; errors repeat the key and the prompt, as some providers do."""
    while True:
        _, body = await peer.request()
        model = json.loads(body)["model"]
        if model == "denied":
            told = json.dumps({"error": {"message": f"Incorrect API key provided: {UPSTREAM_KEY}"}}).encode()
            await peer.answer(told, "content-type: application/json", status="401 Unauthorized")
        elif model == "broken":
            told = json.dumps({"error": {"message": f"engine failed with key {UPSTREAM_KEY}"}}).encode()
            await peer.answer(told, "content-type: application/json", status="500 Internal Server Error")
        elif model == "half":
            told = json.dumps({"error": {"message": f"key {UPSTREAM_KEY} is used up", "code": "quota"}}).encode()
            events = chunk({"content": "so"}) + b"data: " + told + b"\n\n"
            await peer.answer(events, "content-type: text/event-stream")
        elif model == "slow":
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + chunk({"content": REPLY}))
            await peer.gone()
        else:
            events = chunk({"content": REPLY}) + chunk({}, "stop", usage=USAGE)  # no [DONE]: a repair
            await peer.send(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(events)
                + events
            )


def tables(url: str) -> dict[str, Any]:
    made = to_upstream(url)
    made["providers"]["up"]["api_key"] = UPSTREAM_KEY
    made["models"]["*"]["price"] = {"input_per_mtok": 100.0, "output_per_mtok": 200.0}
    made["server"] = {"admin_key": ADMIN_KEY}
    made["keys"] = {"required": True}
    return made


def asked(model: str, **members: Any) -> dict[str, Any]:
    return chat(model, **members) | {"messages": [{"role": "user", "content": PROMPT}]}


def read_lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


async def whole(answer: Answer) -> str:
    return (await answer.body()).decode()


async def test_a_line_a_call_and_no_secret_anywhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with raw_upstream(upstream_of_all_kinds) as upstream, gateway(tmp_path, tables(upstream.url)) as gate:
        new = await gate.application.keys.create(KeyChanges(name="anna"))
        token = f"Bearer {new.token}"
        await whole(await gate.ask(asked("good", stream=True), authorization=token, x_request_id="call-1"))
        errors = [
            await whole(await gate.ask(asked("denied"), authorization=token, x_request_id="call-2")),
            await whole(await gate.ask(asked("broken", stream=True), authorization=token, x_request_id="call-3")),
            await whole(await gate.ask(asked("half", stream=True), authorization=token)),
            await whole(await gate.ask(asked("good"), authorization="Bearer sk-tl-wrong", x_request_id="call-5")),
            await whole(await gate.ask(asked("good", n="x"), authorization=token, x_request_id="call-6")),
        ]
        assert "key *** is used up" in errors[2]
        left = await gate.ask(asked("slow", stream=True), authorization=token, x_request_id="call-4")
        left.leave()
        metrics = ""
        async with asyncio.timeout(60):
            while 'end="cancelled"' not in metrics:
                metrics = await whole(await gate.get("/metrics"))
        assert "trunkline_open_calls 0.0" in metrics
        assert 'trunkline_cost_usd_total{model="good",provider="up"} 0.002' in metrics
        assert 'trunkline_upstream_usable{credential="literal:' in metrics
        assert 'trunkline_refused_calls_total{error="invalid_api_key",route="/v1/chat/completions"} 1.0' in metrics
    written = capfd.readouterr().err
    lines = {line["call"]: line for line in read_lines(written)}
    good = lines["call-1"]
    assert (good["end"], good["status"], good["key"], good["model"]) == ("completed", 200, new.key.id, "good")
    assert (good["target"], good["cost_usd"], good["prompt_tokens"]) == ("up:good", 0.002, 10)
    assert good["repairs"] == {"done_missing": 1}
    assert (lines["call-2"]["end"], lines["call-2"]["error"]) == ("failed", "upstream_auth")
    assert lines["call-3"]["end"] == "failed"
    assert (lines["call-4"]["end"], lines["call-4"]["estimated"]) == ("cancelled", True)
    for call, key, error in (("call-5", None, "invalid_api_key"), ("call-6", new.key.id, "invalid_value")):
        line = lines[call]
        assert (line["end"], line.get("key"), line["error"]) == ("not_admitted", key, error)
    for secret in (PROMPT, REPLY, UPSTREAM_KEY, ADMIN_KEY, new.token, "sk-tl-wrong"):
        assert secret not in written
        assert secret not in metrics
        assert all(secret not in error for error in errors), secret


async def test_prompts_of_marked_keys_are_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with raw_upstream(upstream_of_all_kinds) as upstream, gateway(tmp_path, tables(upstream.url)) as gate:
        new = await gate.application.keys.create(KeyChanges(name="anna", record=True))
        body = json.dumps(asked("good", stream=True), indent=2).encode()
        await whole(await gate.ask(body, authorization=f"Bearer {new.token}"))
    (line,) = read_lines(capfd.readouterr().err)
    assert line["prompt"] == [{"role": "user", "content": PROMPT}]


async def test_no_line_where_none_is_wanted(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with raw_upstream(upstream_of_all_kinds) as upstream:
        made = to_upstream(upstream.url) | {"server": {"log": "off"}}
        async with gateway(tmp_path, made) as gate:
            await whole(await gate.ask(asked("good", stream=True)))
    assert read_lines(capfd.readouterr().err) == []


LINES = 1500


def a_row(number: int) -> LedgerRow:
    return LedgerRow(id=str(number), key_id="key_1", started_ms=1, ended_ms=2, request_id=f"call-{number}" + "x" * 500)


async def test_a_reader_that_stands_still_holds_up_nothing() -> None:
    reader, writer = os.pipe()
    log = CallLog(writer, room_bytes=200_000)
    running = asyncio.ensure_future(log.run())
    async with asyncio.timeout(60):
        for number in range(LINES):  # more than fit into the pipe, and into the room behind it
            log.job_ended(a_row(number), "")
            if number % 300 == 0:
                await asyncio.sleep(0.11)
    assert log.lost() > 0
    os.set_blocking(reader, False)
    read = b""
    async with asyncio.timeout(60):
        while read.count(b"\n") < LINES - log.lost():
            await asyncio.sleep(0.01)
            with contextlib.suppress(BlockingIOError):
                read += os.read(reader, 1 << 20)
    running.cancel()
    await asyncio.wait([running])
    os.close(reader)
    os.close(writer)
    lines = [json.loads(line)["call"] for line in read.splitlines()]
    assert lines[0].startswith("call-0x")
    assert len(lines) == LINES - log.lost()


def whole_row(**members: Any) -> LedgerRow:
    """A row whose members differ from each other, and from what they are by default."""
    given: dict[str, Any] = {}
    for number, field in enumerate(msgspec.structs.fields(LedgerRow)):
        given[field.name] = True if field.type is bool else number if field.type in (int, int | None) else field.name
    return msgspec.structs.replace(LedgerRow(**given), **members)


async def test_a_line_says_what_its_row_does() -> None:
    at_ms = 1_790_000_000_012
    row = whole_row(started_ms=at_ms - 9, ended_ms=at_ms, cost_microusd=1_500_000, repairs='{"done_missing":1}')
    bare = LedgerRow(id="1", key_id="", started_ms=at_ms, ended_ms=at_ms, request_id="bare", model="m" * 300)
    reader, writer = os.pipe()
    log = CallLog(writer)
    log.job_ended(row, f"00-{'a' * 32}-{'b' * 16}-01")
    log.job_ended(bare, "")
    running = asyncio.ensure_future(log.run())
    await asyncio.sleep(0)
    running.cancel()
    await asyncio.wait([running])
    os.close(writer)
    with open(reader, "rb") as file:  # noqa: ASYNC230, PTH123 - a pipe, written already
        lines = file.read().splitlines()
    assert lines == [
        b'{"at":"2026-09-21T14:13:20.012Z","call":"request_id","end":"end_reason","ms":9,"status":%d,'
        b'"error":"error_code","job":"job_id","key":"key_id","group":"group_id","route":"route","model":"model",'
        b'"target":"provider:upstream_model","credential":"credential_id","streamed":true,"attempts":%d,'
        b'"first_event_ms":%d,"prompt_tokens":%d,"completion_tokens":%d,"cached_tokens":%d,"reasoning_tokens":%d,'
        b'"images":%d,"video_ms":%d,"cost_usd":1.5,"estimated":true,"cache_hit":true,"trace":"%b",'
        b'"repairs":{"done_missing":1}}'
        % (
            row.status,
            row.attempts,
            row.first_event_ms or 0,
            row.prompt_tokens,
            row.completion_tokens,
            row.cached_tokens,
            row.reasoning_tokens,
            row.images,
            row.video_ms,
            b"a" * 32,
        ),
        b'{"at":"2026-09-21T14:13:20.012Z","call":"bare","end":"completed","ms":0,"status":200,"model":"%b",'
        b'"attempts":1,"unpriced":true}' % (b"m" * 200),
    ]


def test_blocks_are_written_in_whole_lines() -> None:
    lines = [b"x" * size + b"\n" for size in (10, 3000, 2000, 4095, 4096, 9000, 1)]
    cut = list(pieces(b"".join(lines)))
    assert b"".join(cut) == b"".join(lines)
    assert all(piece.endswith(b"\n") for piece in cut)
    assert [len(piece) for piece in cut] == [3012, 2001, 4096, 4097, 9001, 2]
    assert list(pieces(b"")) == []
