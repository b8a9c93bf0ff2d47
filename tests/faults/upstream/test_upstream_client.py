import asyncio
import gzip
import ssl
import zlib

import pytest
from raw_upstream import Peer, RawUpstream, Script, forever, raw_upstream
from upstream_talk import CHUNKED, HEAD, post, read_to_the_end, sends

from trunkline.core.ports import HttpError, HttpRequest
from trunkline.upstream.client import Client

pytestmark = pytest.mark.faults


@pytest.mark.parametrize(
    ("script", "got", "end"),
    [
        (sends(HEAD + b"content-length: 10\r\n\r\nhello"), b"hello", "incomplete"),
        (sends(CHUNKED + b"5\r\nhello\r\n"), b"hello", "incomplete"),
        (sends(CHUNKED + b"ff\r\nhello"), b"hello", "incomplete"),
        (sends(HEAD + b"content-length: 10\r\n\r\nhello", then="reset"), b"hello", "reset"),
        (sends(CHUNKED + b"5\r\nhello\r\n", then="reset"), b"hello", "reset"),
        (sends(HEAD + b"\r\nhello", then="reset"), b"hello", "reset"),
        (sends(CHUNKED + b"5\r\nhello\r\nxyz\r\n", then="hang"), b"hello", "protocol"),
        (sends(CHUNKED, b"5\r\nhelloworld", then="hang"), b"hello", "protocol"),
        (
            sends(HEAD + b"content-encoding: gzip\r\n\r\n" + gzip.compress(b"hello" * 9)[:-9]),
            b"hello" * 9,
            "incomplete",
        ),
        (sends(HEAD + b"content-encoding: gzip\r\n\r\nhello"), b"hello", "end"),  # said, but not done
        (sends(HEAD + b"content-encoding: deflate\r\n\r\n" + zlib.compress(b"hello")[:1]), b"", "incomplete"),
        (sends(HEAD + b"content-length: 0\r\ncontent-encoding: gzip\r\n\r\n"), b"", "end"),
        (sends(HEAD + b"\r\n\x1f"), b"\x1f", "end"),
    ],
)
async def test_a_body_that_breaks_gives_what_came_then_says_how(
    client: Client, tls: ssl.SSLContext | None, script: Script, got: bytes, end: str
) -> None:
    async with raw_upstream(script, tls) as upstream:
        response = await client.open(post(upstream))
        assert response.status == 200
        assert await read_to_the_end(response) == (got, end)


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (sends(), "reset"),
        (sends(then="reset"), "reset"),
        (sends(b"HTTP/1.1 20"), "incomplete"),
        (sends(HEAD), "incomplete"),
        (sends(b"HTTP/1.1 100 Continue\r\n\r\n"), "incomplete"),
        (sends(HEAD, then="reset"), "reset"),
        (sends(b"SSH-2.0-OpenSSH_9.9\r\n", then="hang"), "protocol"),
        (sends(b'{"error":"no head"}', then="hang"), "protocol"),
        (sends(b"HTTP/2 200 OK\r\n\r\n", then="hang"), "protocol"),
        (sends(HEAD + b"content-length: ten\r\n\r\n", then="hang"), "protocol"),
        (sends(HEAD + b"content-length: 1\r\ncontent-length: 2\r\n\r\n", then="hang"), "protocol"),
        (sends(HEAD + b"no colon\r\n\r\n", then="hang"), "protocol"),
        (sends(HEAD + b"content-encoding: br\r\n\r\n", then="hang"), "protocol"),
        (sends(b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n", then="hang"), "protocol"),
        (sends(b"HTTP/1.1 101 Switching\r\n\r\n", then="hang"), "protocol"),
    ],
)
async def test_an_answer_without_a_head_is_an_error(
    client: Client, tls: ssl.SSLContext | None, script: Script, kind: str
) -> None:
    async with raw_upstream(script, tls) as upstream:
        with pytest.raises(HttpError) as caught:
            await client.open(post(upstream))
        assert (caught.value.kind, caught.value.sent) == (kind, True)
        assert len(upstream.peers) == 1


@pytest.mark.parametrize(
    ("start", "flood"),
    [
        (HEAD, b"x-name: value\r\n"),
        (HEAD + b"x-name: ", b"value"),
        (b"", b"HTTP/1.1 103 Early Hints\r\n\r\n"),
        (CHUNKED + b"1;name=", b"value"),
        (CHUNKED + b"0\r\n", b"x-trailer: value\r\n"),
    ],
)
async def test_a_flood_that_is_no_body_is_ended(client: Client, start: bytes, flood: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(start)
        while True:
            await peer.send(flood * 100)

    async with raw_upstream(script) as upstream:
        with pytest.raises(HttpError, match="without a body") as caught:
            await (await client.open(post(upstream))).read()
        assert caught.value.kind == "protocol"
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)


async def test_a_refusal_is_read_before_the_body_was_sent(client: Client, tls: ssl.SSLContext | None) -> None:
    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.answer(b"too large", status="413 Content Too Large")
        await peer.gone()

    async with raw_upstream(script, tls) as upstream:
        response = await client.open(post(upstream, bytes(50_000_000)))
        assert response.status == 413
        assert await read_to_the_end(response) == (b"too large", "end")
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)
        response = await client.open(post(upstream, bytes(50_000_000)))
        assert len(upstream.peers) == 2


async def test_a_body_goes_on_while_an_early_answer_is_read(client: Client, tls: ssl.SSLContext | None) -> None:
    async def script(peer: Peer) -> None:
        head = await peer.head()
        await peer.send(CHUNKED + b"5\r\nearly\r\n")
        body = await peer.reader.readexactly(5_000_000)
        assert "content-length: 5000000" in head
        assert body == b"x" * 5_000_000
        await peer.send(b"4\r\nlate\r\n0\r\n\r\n")

    async with raw_upstream(script, tls) as upstream:
        response = await client.open(post(upstream, b"x" * 5_000_000))
        assert await response.read() == b"early"
        assert await read_to_the_end(response) == (b"late", "end")


async def test_a_connection_that_dies_while_nobody_reads_gives_what_it_can(
    client: Client, tls: ssl.SSLContext | None
) -> None:
    async def script(peer: Peer) -> None:
        await peer.head()
        await peer.send(CHUNKED + b"5\r\nhello\r\n")
        await asyncio.sleep(0.1)
        await peer.send(b"5\r\nworld\r\n")
        await asyncio.sleep(0.1)
        peer.reset()

    async with raw_upstream(script, tls) as upstream:
        response = await client.open(post(upstream, bytes(50_000_000)))
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)
        await asyncio.sleep(0.1)
        got, end = await read_to_the_end(response)
        assert got.startswith(b"hello")
        assert end == "reset"


async def test_a_read_that_is_cancelled_loses_nothing(client: Client) -> None:
    more = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(CHUNKED + b"1\r\n\x1f\r\n")
        await more.wait()
        await peer.send(b"2\r\nab\r\n0\r\n\r\n")

    async with raw_upstream(script) as upstream:
        response = await client.open(post(upstream))
        for _ in range(2):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(response.read(), 0.05)
        more.set()
        assert await read_to_the_end(response) == (b"\x1fab", "end")


async def test_what_nobody_reads_stops_the_upstream(client: Client, tls: ssl.SSLContext | None) -> None:
    total = 64 * 1024 * 1024
    sent = 0
    stuck = asyncio.Event()

    async def script(peer: Peer) -> None:
        nonlocal sent
        await peer.request()
        await peer.send(HEAD + b"content-length: %d\r\n\r\n" % total)
        while sent < total:
            peer.writer.write(bytes(65536))
            try:
                await asyncio.wait_for(peer.writer.drain(), 0.5)
            except TimeoutError:
                stuck.set()
                await peer.writer.drain()
            sent += 65536
        await peer.gone()

    async with raw_upstream(script, tls) as upstream:
        response = await client.open(post(upstream))
        await asyncio.wait_for(stuck.wait(), 60)
        assert sent < total / 2, "the kernel's buffers take some, the client next to nothing"
        assert sum(map(len, response.pieces)) <= 320 * 1024
        got = 0
        while piece := await response.read():
            got += len(piece)
        assert got == total


async def test_silence_while_connecting_times_out(client: Client) -> None:
    async def silent(peer: Peer) -> None:
        await peer.gone()

    async with raw_upstream(silent) as upstream:
        url = f"https://127.0.0.1:{upstream.port}/"  # a name may take longer than that to be found
        with pytest.raises(HttpError, match=r"within 0\.1 s") as caught:
            await client.open(HttpRequest("GET", url, connect_s=0.1))
        assert (caught.value.kind, caught.value.sent) == ("timeout", False)
        while not upstream.peers:  # noqa: ASYNC110 - it may be told of the connection later
            await asyncio.sleep(0.01)
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)


async def test_plain_http_where_tls_is_asked_for_is_a_tls_error(client: Client) -> None:
    async def script(peer: Peer) -> None:
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await peer.gone()

    async with raw_upstream(script) as upstream:
        with pytest.raises(HttpError) as caught:
            await client.open(HttpRequest("GET", f"https://localhost:{upstream.port}/"))
        assert (caught.value.kind, caught.value.sent) == ("tls", False)


@pytest.mark.parametrize("when", ["head", "body"])
async def test_cancelling_closes_the_connection(client: Client, tls: ssl.SSLContext | None, when: str) -> None:
    asked = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        asked.set()
        if when == "body":
            await peer.send(CHUNKED)
        await peer.gone()

    async def ask(upstream: RawUpstream) -> None:
        response = await client.open(post(upstream))
        try:
            await response.read()
        finally:
            await response.aclose()

    async with raw_upstream(script, tls) as upstream:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(ask(upstream))
            await asked.wait()
            await asyncio.sleep(0.05)
            task.cancel()
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)


async def test_a_late_cancel_spares_the_next_exchange_on_the_connection(client: Client) -> None:
    """The answer has come, the connection is another's, and only then the first task learns of its cancellation."""
    async with raw_upstream(forever()) as upstream:
        await (await client.open(post(upstream))).body(100)
        (connection,) = client._pool.live
        async with asyncio.TaskGroup() as group:
            first = group.create_task(client.open(post(upstream)))
            while connection.idle_since == 0.0 or not first.done():
                if connection.idle_since and not first.done():
                    second = group.create_task(client.open(post(upstream)))
                    first.cancel()
                    break
                await asyncio.sleep(0)
            else:
                second = group.create_task(client.open(post(upstream)))
            assert await (await second).body(100) == b"hello"
        assert len(upstream.peers) == 1


async def test_closing_the_client_ends_whoever_reads(client: Client, tls: ssl.SSLContext | None) -> None:
    async with raw_upstream(sends(CHUNKED + b"1\r\na\r\n", then="hang"), tls) as upstream:
        response = await client.open(post(upstream))
        assert await response.read() == b"a"
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(read_to_the_end(response))
            await asyncio.sleep(0)
            await client.aclose()
            assert await reading == (b"", "reset")
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)
