"""What clients may do on one connection, byte by byte: a handler runs, and may end, inside the parser's callbacks."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import uvloop
from gateway import Answer, Gateway, chat, gateway, to_upstream
from raw_upstream import Peer, raw_upstream
from text_upstream import completion
from turns import Turns

from trunkline.core.chat import ChatRequest
from trunkline.http import chat_completions
from trunkline.http.front_door import LARGE_BODY_BYTES, FrontDoor
from trunkline.ingress.openai_chat import parse

pytestmark = pytest.mark.faults

ONE_READ = 256 * 1024


@asynccontextmanager
async def gate_and_upstream(data_dir: Path, **tables: object) -> AsyncIterator[tuple[Gateway, list[bytes]]]:
    asked: list[bytes] = []

    async def answers(peer: Peer) -> None:
        while True:
            _, body = await peer.request()
            asked.append(body)
            said = completion(3) | {"model": json.loads(body)["model"]}
            await peer.answer(json.dumps(said).encode(), "content-type: application/json")

    async with raw_upstream(answers) as up, gateway(data_dir, {**to_upstream(up.url), **tables}) as gate:
        yield gate, asked


def post(body: object, *headers: str) -> bytes:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: gateway", f"Content-Length: {len(data)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + data


async def sent(gate: Gateway, data: bytes) -> Answer:
    reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
    writer.write(data)
    gate.answers.append(Answer(reader, writer))
    return gate.answers[-1]


async def test_requests_that_are_refused_at_once_are_answered_in_their_order(tmp_path: Path) -> None:
    async with gate_and_upstream(tmp_path) as (gate, asked):
        answer = await sent(gate, post(b"{") + post({"model": 1}) + post(chat()))
        statuses = []
        for _ in range(3):
            await answer.read_head()
            statuses.append(answer.status)
            await answer.body()
        assert statuses == [400, 400, 200]
        assert len(asked) == 1


@pytest.mark.parametrize(
    "first", [post(b"{", "Connection: close"), post(b"{", "Connection: keep-alive").replace(b"/1.1", b"/1.0", 1)]
)
async def test_what_comes_behind_the_last_request_of_a_connection_is_not_answered(tmp_path: Path, first: bytes) -> None:
    async with gate_and_upstream(tmp_path) as (gate, asked):
        assert (
            await gate.ask(chat())
        ).status == 200  # there is a connection to the upstream: a request would go at once
        answer = await sent(gate, first + post(chat()) + b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
        await answer.read_head()
        assert answer.status == 400
        assert answer.headers["connection"] == "close"
        await answer.body()
        assert await answer.reader.read() == b""
        assert len(asked) == 1


async def test_a_connection_is_kept_from_call_to_call_with_whatever_headers_they_bring(tmp_path: Path) -> None:
    async with gate_and_upstream(tmp_path) as (gate, asked):
        answer = await sent(gate, b"")
        for number, header in enumerate(("X-Request-Id: one", "x-request-id: two", "X-Other: 3", "X-REQUEST-ID: four")):
            answer.writer.write(post(chat(model=f"m{number}"), header))
            await answer.read_head()
            expected = header.split(": ")[1] if "request" in header.lower() else answer.headers["x-request-id"]
            assert answer.headers["x-request-id"] == expected
            assert (await answer.json())["model"] == f"m{number}"
        answer.writer.write(b"GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n")
        await answer.read_head()
        assert answer.status == 404
        await answer.body()
        answer.writer.write(post(chat()))
        await answer.read_head()
        assert answer.status == 200
        assert len(asked) == 5


@pytest.mark.parametrize("step", [1, 7, 50])
async def test_a_request_is_read_however_it_is_cut(tmp_path: Path, step: int) -> None:
    async with gate_and_upstream(tmp_path) as (gate, _):
        data = json.dumps(chat()).encode()
        half = len(data) // 2
        chunked = b"%x\r\n%b\r\n%x\r\n%b\r\n0\r\n\r\n" % (half, data[:half], len(data) - half, data[half:])
        head = b"POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        answer = await sent(gate, b"")
        for whole in (head + chunked, post(chat())):
            for start in range(0, len(whole), step):
                answer.writer.write(whole[start : start + step])
                await asyncio.sleep(0)
            await answer.read_head()
            assert answer.status == 200
            await answer.body()


@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("framing", ["content-length", "chunked", "small chunks"])
async def test_a_body_that_is_too_large_is_refused_however_it_comes(tmp_path: Path, framing: str, *, cut: bool) -> None:
    body = json.dumps(chat(filler="x" * 3000)).encode()
    if framing == "content-length":
        whole = post(body)
    else:
        step = 7 if framing == "small chunks" else 5000
        pieces = [body[start : start + step] for start in range(0, len(body), step)]
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        whole = head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in [*pieces, b""])
    async with gate_and_upstream(tmp_path, server={"body_max_bytes": 2000}) as (gate, asked):
        answer = await sent(gate, whole[:1000] if cut else whole)
        if cut:
            await asyncio.sleep(0.05)
            answer.writer.write(whole[1000:])
        await answer.read_head()
        assert answer.status == 413
        assert answer.headers["connection"] == "close"
        await answer.body()
        assert not asked


@pytest.mark.parametrize("framing", ["content-length", "chunked"])
async def test_who_sends_a_large_body_to_its_end_finds_the_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, framing: str
) -> None:
    monkeypatch.setattr("trunkline.http.front_door.REFUSED_S", 600.0)
    body = json.dumps(chat(filler="x" * 20_000_000)).encode()
    if framing == "content-length":
        whole = post(body)
    else:
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
        whole = head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    async with gate_and_upstream(tmp_path, server={"body_max_bytes": 2000}) as (gate, asked):
        answer = await sent(gate, whole)
        await answer.writer.drain()
        await answer.read_head()
        assert answer.status == 413
        await answer.body()
        assert await answer.reader.read() == b""
        assert not asked


async def test_who_never_ends_what_was_refused_does_not_hold_up_the_end_of_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trunkline.http.front_door.REFUSED_S", 600.0)
    async with asyncio.timeout(120):
        async with gate_and_upstream(tmp_path, server={"body_max_bytes": 2000, "grace_s": 600}) as (gate, _):
            answer = await sent(gate, post(b"x" * 3000)[:1000])
            await answer.read_head()
            assert answer.status == 413
            await answer.body()
            answer.kept = True
        assert await answer.reader.read() == b""
        answer.leave()


async def test_trailers_are_of_no_account_to_the_next_request(tmp_path: Path) -> None:
    body = json.dumps(chat()).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
    first = head + b"%x\r\n%b\r\n0\r\nX-Request-Id: trailer\r\n\r\n" % (len(body), body)
    async with gate_and_upstream(tmp_path) as (gate, _):
        answer = await sent(gate, b"")
        for whole in (first, post(body)):
            answer.writer.write(whole)
            await answer.read_head()
            assert answer.status == 200
            assert answer.headers["x-request-id"] != "trailer"
            await answer.body()


OFFERS = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAAQAAP__")


@pytest.mark.parametrize("step", [40, 10_000])
async def test_who_offers_http_2_is_answered_as_if_he_had_not(tmp_path: Path, step: int) -> None:
    """As Java's client does by default."""
    async with gate_and_upstream(tmp_path) as (gate, asked):
        answer = await sent(gate, b"")
        for whole in (
            post(chat(), "X-Request-Id: mine", *OFFERS),
            post(chat(), *OFFERS),
            post({"model": 1}, *OFFERS).replace(b"chat/completions", b"nowhere"),
            post(chat()),
        ):
            for start in range(0, len(whole), step):
                answer.writer.write(whole[start : start + step])
                await asyncio.sleep(0.001)
            await answer.read_head()
            assert answer.status == (404 if b"nowhere" in whole else 200)
            assert (answer.headers.get("x-request-id") == "mine") is (b"mine" in whole)
            await answer.body()
        assert [json.loads(body)["messages"] for body in asked] == [chat()["messages"]] * 3


async def test_a_tunnel_is_not_given(tmp_path: Path) -> None:
    async with gate_and_upstream(tmp_path) as (gate, _):
        answer = await sent(gate, b"CONNECT other:443 HTTP/1.1\r\nhost: other:443\r\n\r\n")
        await answer.read_head()
        assert answer.status >= 400


def test_a_large_body_leaves_others_their_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = FrontDoor.data_received

    async def asked() -> tuple[int, Turns]:
        turns = Turns()

        def counted(door: FrontDoor, data: bytes) -> None:
            turns.take(len(data))
            read(door, data)

        monkeypatch.setattr(FrontDoor, "data_received", counted)
        async with gate_and_upstream(tmp_path) as (gate, _):
            answer = await sent(gate, post(chat(user="x" * (8 << 20))))
            await answer.read_head()
            return answer.status, turns

    status, turns = uvloop.run(asked())  # it reads 32 times from one connection, where asyncio reads once
    assert status == 200
    assert turns.taken.total() > 8 << 20
    assert max(turns.taken.values()) <= ONE_READ


def test_large_bodies_that_are_whole_at_once_are_handed_over_one_in_a_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, read = post(chat(user="x" * LARGE_BODY_BYTES)), FrontDoor.data_received

    async def asked() -> tuple[list[int], Turns]:
        turns, missing, all_but_one_byte = Turns(), [10 * (len(whole) - 1)], asyncio.Event()

        def counted(door: FrontDoor, data: bytes) -> None:
            read(door, data)
            missing[0] -= len(data)
            if not missing[0]:
                all_but_one_byte.set()

        def parsed(body: bytes) -> ChatRequest:
            turns.take(1)
            return parse(body)

        monkeypatch.setattr(FrontDoor, "data_received", counted)
        monkeypatch.setattr(chat_completions, "parse", parsed)
        async with gate_and_upstream(tmp_path) as (gate, _):
            answers = [await sent(gate, whole[:-1]) for _ in range(10)]
            await all_but_one_byte.wait()
            for answer in answers:
                answer.writer.write(whole[-1:])
            for answer in answers:
                await answer.read_head()
            return [answer.status for answer in answers], turns

    statuses, turns = uvloop.run(asked())
    assert statuses == [200] * 10
    assert list(turns.taken.values()) == [1] * 10


async def test_who_leaves_before_a_large_body_has_its_turn_asks_nobody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    came, gone = after(monkeypatch, "on_message_complete"), after(monkeypatch, "connection_lost")
    async with gate_and_upstream(tmp_path) as (gate, asked):
        async with gate.application.protocol._large:
            answer = await sent(gate, post(chat(user="x" * LARGE_BODY_BYTES)))
            await came.wait()
            answer.leave()
            await gone.wait()
        answer = await gate.ask(chat(user="y" * LARGE_BODY_BYTES))
        assert answer.status == 200
        assert [json.loads(body)["user"][0] for body in asked] == ["y"]


def after(monkeypatch: pytest.MonkeyPatch, name: str) -> asyncio.Event:
    """Give what is set when one of the front door's callbacks has been called."""
    event, real = asyncio.Event(), getattr(FrontDoor, name)

    def noted(door: FrontDoor, *args: object) -> None:
        real(door, *args)
        event.set()

    monkeypatch.setattr(FrontDoor, name, noted)
    return event
