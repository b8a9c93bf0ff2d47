"""Whoever waits for an upstream runs on inside the connection's callback: what it may do there, on real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial

import pytest
from raw_upstream import Peer, forever, raw_upstream
from turns import Turns

from trunkline.calls.task import Task
from trunkline.core.ports import HttpError, HttpRequest
from trunkline.upstream.client import Client
from trunkline.upstream.connection import Connection

ONE_READ = 256 * 1024
ANSWER = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello"


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.aclose()


async def ran(coroutine: Coroutine[None, None, None]) -> None:
    """Run in a task of ours, begun outside of any other."""
    loop = asyncio.get_running_loop()
    over = loop.create_future()

    def ended(error: BaseException | None) -> None:
        if error is None:
            over.set_result(None)
        else:
            over.set_exception(error)

    loop.call_soon(Task(loop, coroutine, ended).step)
    await asyncio.wait_for(over, 60)


def post(url: str, body: bytes = b"{}") -> HttpRequest:
    return HttpRequest("POST", url, (), body)


@pytest.fixture
def inside(monkeypatch: pytest.MonkeyPatch) -> Callable[[], str]:
    """Say which of a connection's callbacks is running."""
    running: list[str] = []

    def watched(name: str, original: Callable[..., None], *args: object) -> None:
        running.append(name)
        try:
            original(*args)
        finally:
            running.pop()

    for name in ("data_received", "connection_lost", "fail"):
        original = getattr(Connection, name)
        monkeypatch.setattr(
            Connection, name, lambda self, *args, n=name, o=original, **_: watched(n, partial(o, self), *args)
        )
    return lambda: running[-1] if running else ""


async def test_the_next_exchange_may_begin_inside_the_callback_that_ends_the_one_before(
    client: Client, inside: Callable[[], str]
) -> None:
    where: list[str] = []

    async def calls() -> None:
        for _ in range(5):
            response = await client.open(post(upstream.url))
            assert await response.body(100) == b"hello"
            where.append(inside())

    async with raw_upstream(forever()) as upstream:
        await ran(calls())
        assert len(upstream.peers) == 1
    assert where == ["data_received"] * 5


async def test_a_large_body_leaves_others_their_turns(client: Client) -> None:
    body = bytes(8 << 20)
    turns = Turns()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(body)

    async def call() -> None:
        response = await client.open(post(upstream.url))
        while data := await response.read():
            turns.take(len(data))

    async with raw_upstream(script) as upstream:
        await ran(call())
    assert turns.taken.total() == len(body)
    assert max(turns.taken.values()) <= ONE_READ


@pytest.mark.parametrize("tail", [ANSWER, b"HTTP/1.1 200", b"junk", b"\r\n"])
async def test_what_comes_behind_an_end_is_not_the_next_answer(client: Client, tail: bytes) -> None:
    got: list[bytes] = []

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(ANSWER + (tail if peer.number == 0 else b""))
        _, body = await peer.request()
        await peer.answer(body)

    async def calls() -> None:
        for number in range(2):
            response = await client.open(post(upstream.url, b"call %d" % number))
            got.append(await response.body(100))

    async with raw_upstream(script) as upstream:
        await ran(calls())
    assert got[0] == b"hello"
    assert got[1] == (b"call 1" if tail == b"\r\n" else b"hello")
    assert len(upstream.peers) == (1 if tail == b"\r\n" else 2)


@pytest.mark.parametrize("chunked", [False, True])
async def test_an_answer_may_be_closed_inside_the_callback_that_brings_it(client: Client, *, chunked: bool) -> None:
    framing = b"transfer-encoding: chunked\r\n\r\n5\r\nhello\r\n" if chunked else b"content-length: 500000\r\n\r\nhello"

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\n" + framing)
        await peer.gone()

    async def calls() -> None:
        for _ in range(3):
            response = await client.open(post(upstream.url))
            assert await response.read() == b"hello"
            await response.aclose()
            with pytest.raises(HttpError):
                await response.read()

    async with raw_upstream(script) as upstream:
        await ran(calls())
        assert len(upstream.peers) == 3


@pytest.mark.parametrize("how", ["reset", "cut", "garbage", "too much"])
async def test_an_error_is_not_met_inside_the_callback_that_finds_it(
    client: Client, inside: Callable[[], str], how: str
) -> None:
    where: list[str] = []

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number:
            await peer.answer(b"again")
            return
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n")
        await asyncio.sleep(0.02)
        match how:
            case "reset":
                peer.reset()
            case "garbage":
                await peer.send(b"what?\r\n")
                await peer.gone()
            case "too much":
                await peer.send(b"1" + b";" * 100_000)
                await peer.gone()

    async def calls() -> None:
        response = await client.open(post(upstream.url))
        assert await response.read() == b"hello"
        try:
            await response.read()
        except HttpError:
            where.append(inside())
        response = await client.open(post(upstream.url))
        assert await response.body(100) == b"again"

    async with raw_upstream(script) as upstream:
        await ran(calls())
    assert where == [""]


async def test_closing_the_client_wakes_all_when_all_is_closed(client: Client) -> None:
    """Else the first that is woken would begin anew while the others still look alive."""
    seen: list[list[bool]] = []
    reading: list[bool] = []

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhello")
        await peer.gone()

    async def call() -> None:
        response = await client.open(post(upstream.url))
        await response.read()
        reading.append(True)
        with pytest.raises(HttpError, match="the client was closed"):
            await response.read()
        seen.append([connection.transport.is_closing() for connection in client._pool.live])

    async def close() -> None:
        while len(reading) < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        asyncio.get_running_loop().call_soon(client._pool.close)

    async with raw_upstream(script) as upstream:
        await asyncio.gather(*(ran(call()) for _ in range(3)), close())
    assert all(all(each) for each in seen)
    assert len(seen) == 3
