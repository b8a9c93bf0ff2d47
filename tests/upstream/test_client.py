import asyncio
import gzip
import socket
import ssl
import zlib
from collections.abc import AsyncIterator

import pytest
import trustme
from raw_upstream import Peer, closed_port, forever, raw_upstream

from trunkline.core.ports import HttpClient, HttpError, HttpRequest, HttpResponse
from trunkline.upstream.client import Client
from trunkline.upstream.tls import make_context


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.aclose()


def post(url: str, body: bytes = b"{}", **more: object) -> HttpRequest:
    return HttpRequest("POST", url, (("content-type", "application/json"),), body, **more)  # type: ignore[arg-type]


async def everything(response: HttpResponse) -> bytes:
    pieces = []
    while piece := await response.read():
        pieces.append(piece)
    await response.aclose()
    return b"".join(pieces)


async def fetched(client: HttpClient, url: str) -> bytes:
    return await everything(await client.open(HttpRequest("GET", url)))


async def test_a_request_arrives_whole_and_its_answer_too(client: Client) -> None:
    seen = []

    async def script(peer: Peer) -> None:
        seen.append(await peer.request())
        await peer.answer(b"hello", "Content-Type: text/plain", "X-Twice: a", "X-Twice: b", status="201 Made")

    async with raw_upstream(script) as upstream:
        response = await client.open(post(f"{upstream.url}/x?q=1", b'{"a":1}'))
        assert response.status == 201
        assert response.headers["content-type"] == "text/plain"
        assert response.headers["x-twice"] == "b"
        assert await everything(response) == b"hello"
    head, body = seen[0]
    lines = head.split("\r\n")
    assert lines[0] == "POST /v1/x?q=1 HTTP/1.1"
    assert f"host: 127.0.0.1:{upstream.port}" in lines
    assert "content-length: 7" in lines
    assert "accept-encoding: identity" in lines
    assert body == b'{"a":1}'


async def test_a_connection_is_used_again_the_last_one_first(client: Client) -> None:
    served = []

    async def script(peer: Peer) -> None:
        while True:
            await peer.request()
            served.append(peer.number)
            await peer.answer(b"hello")

    async with raw_upstream(script) as upstream:
        first = await client.open(post(upstream.url))
        second = await client.open(post(upstream.url))
        await everything(first)
        await everything(second)
        for _ in range(3):
            await fetched(client, upstream.url)
        assert len(upstream.peers) <= 2
        assert served[2:] == [served[-1]] * 3


async def test_a_read_gives_all_that_has_arrived(client: Client) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n1\r\nb\r\n1\r\nc\r\n")
        await peer.request()
        await peer.send(b"1;name=value\r\nd\r\n0\r\nx-trailer: t\r\n\r\n")
        await peer.request()
        await peer.answer(b"next")

    async with raw_upstream(script) as upstream:
        response = await client.open(post(upstream.url))
        assert await response.read() == b"abc"
        upstream.peers[0].reader.feed_data(b"GET / HTTP/1.1\r\n\r\n")
        assert await response.read() == b"d"
        assert await response.read() == b""
        assert await response.read() == b""
        assert await fetched(client, upstream.url) == b"next"
        assert len(upstream.peers) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (
            b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n"
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok"
        ),
        b"HTTP/1.0 200 OK\r\ncontent-type: text/plain\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\n\r\nok",
        b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nx-folded: a\r\n b\x01\r\ncontent-length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\ncontent-length: 2\n\nok",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-length: 9\r\n\r\n2  \r\nok\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
    ],
)
@pytest.mark.parametrize("step", [1, 7, 10_000])
async def test_every_framing_is_read_however_it_is_cut(client: Client, answer: bytes, step: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        for start in range(0, len(answer), step):
            await peer.send(answer[start : start + step])
            await asyncio.sleep(0)

    async with raw_upstream(script) as upstream:
        response = await client.open(post(upstream.url))
        assert response.status == 200
        assert await everything(response) == b"ok"


async def test_the_body_of_a_small_answer_is_there_at_once(client: Client) -> None:
    async with raw_upstream(forever(body=b"x" * 1000)) as upstream:
        response = await client.open(post(upstream.url))
        assert await response.body(1000) == b"x" * 1000
        assert await response.body(1000) == b""
        response = await client.open(post(upstream.url))
        with pytest.raises(HttpError, match="longer than 999 bytes") as caught:
            await response.body(999)
        assert caught.value.kind == "too_large"


async def test_head_and_204_have_no_body(client: Client) -> None:
    async def script(peer: Peer) -> None:
        head, _ = await peer.request()
        if head.startswith("HEAD"):
            await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n")
            await peer.gone()
        else:
            await peer.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with raw_upstream(script) as upstream:
        for method in ("HEAD", "DELETE"):
            response = await client.open(HttpRequest(method, upstream.url))
            assert await everything(response) == b""


BODY = b'data: {"text":"hello"}\n\n' * 50


@pytest.mark.parametrize(
    ("packed", "headers"),
    [
        (gzip.compress(BODY, mtime=0), ("content-encoding: gzip",)),
        (
            gzip.compress(BODY[:100], mtime=0) + gzip.compress(BODY[100:], mtime=0) + b"\0\0",
            ("content-encoding: X-GZIP",),
        ),
        (zlib.compress(BODY), ("content-encoding: deflate",)),
        (gzip.compress(BODY, mtime=0), ("content-encoding: deflate",)),
        (zlib.compress(BODY)[2:-4], ("content-encoding: deflate",)),
        (zlib.compress(BODY), ("content-encoding: gzip",)),
        (zlib.compress(BODY), ("content-encoding: X-GZIP", "content-type: text/event-stream")),
        (BODY, ("content-encoding: gzip",)),
        (gzip.compress(BODY, mtime=0), ("content-encoding: identity, gzip",)),
        (gzip.compress(BODY, mtime=0), ("content-type: application/octet-stream",)),
        (gzip.compress(BODY, mtime=0), ("content-type: text/event-stream",)),
        (gzip.compress(BODY, mtime=0), ("content-type: Application/JSON; charset=utf-8",)),
        (BODY, ("content-type: text/event-stream", "content-encoding: identity")),
    ],
)
@pytest.mark.parametrize("step", [1, 10_000])
async def test_content_codings_are_undone(client: Client, packed: bytes, headers: tuple[str, ...], step: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send("\r\n".join(["HTTP/1.1 200 OK", *headers, "", ""]).encode())
        for start in range(0, len(packed), step):
            await peer.send(packed[start : start + step])
            await asyncio.sleep(0)

    async with raw_upstream(script) as upstream:
        assert await fetched(client, upstream.url) == BODY


@pytest.mark.parametrize("body", [BODY, BODY[:60], "é\u2028日本".encode() * 9])
async def test_deflate_without_a_head_may_be_called_gzip(client: Client, body: bytes) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(zlib.compress(body)[2:-4], "content-encoding: gzip")

    async with raw_upstream(script) as upstream:
        assert await fetched(client, upstream.url) == body


@pytest.mark.parametrize("body", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"\xff\xd8\xff\xe0\0\x10JFIF", BODY, b"hello"])
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
async def test_a_body_that_is_not_packed_may_be_called_so(client: Client, body: bytes, coding: str) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(body, f"content-encoding: {coding}")

    async with raw_upstream(script) as upstream:
        assert await fetched(client, upstream.url) == body


async def test_an_error_in_a_coding_that_is_not_known_has_its_status(client: Client) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 429 Busy\r\ncontent-encoding: br\r\ncontent-length: 6\r\n\r\n\x0b\x02\x80{}\x03")

    async with raw_upstream(script) as upstream:
        response = await client.open(post(upstream.url))
        assert (response.status, await everything(response)) == (429, b"")


async def test_a_small_body_does_not_grow_large_in_memory(client: Client) -> None:
    async with raw_upstream(forever(body=b"")) as upstream:

        async def script(peer: Peer) -> None:
            await peer.request()
            await peer.answer(gzip.compress(bytes(20_000_000)), "content-encoding: gzip")

        upstream.script = script
        response = await client.open(post(upstream.url))
        sizes = []
        while piece := await response.read():
            sizes.append(len(piece))
        assert sum(sizes) == 20_000_000
        assert max(sizes) <= 256 * 1024


async def test_tls_is_verified(client: Client) -> None:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    trusting = Client(tls=make_context([authority.cert_pem.bytes().decode()]))
    async with raw_upstream(forever(), server) as upstream:
        assert await fetched(trusting, upstream.url) == b"hello"
        assert await fetched(trusting, upstream.url) == b"hello"
        assert len(upstream.peers) == 1
        with pytest.raises(HttpError) as caught:
            await fetched(client, upstream.url)
        assert (caught.value.kind, caught.value.sent) == ("tls", False)
        with pytest.raises(HttpError) as caught:
            await fetched(trusting, upstream.url.replace("localhost", "127.0.0.1"))
        assert caught.value.kind == "tls"
        await trusting.aclose()


async def test_a_bad_request_is_refused_before_anything_is_sent(client: Client) -> None:
    for url in ("ftp://host/", "http://", "http://user:pass@host/", "http://host:port/", "http://a b/", "x" * 20_000):
        with pytest.raises(HttpError, match="URL") as caught:
            await client.open(HttpRequest("GET", url))
        assert (caught.value.kind, caught.value.sent) == ("protocol", False)
    with pytest.raises(HttpError, match="line break"):
        await client.open(HttpRequest("GET", "http://127.0.0.1:9/", (("x", "a\r\nb: c"),)))


async def unknown(*_: object, **__: object) -> None:
    raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")


async def test_what_cannot_be_reached_is_a_connect_error(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    with closed_port() as port:
        monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", unknown)  # a real one may take its time
        for url in (f"http://127.0.0.1:{port}/", "http://no-such-host.invalid/"):
            with pytest.raises(HttpError) as caught:
                await client.open(HttpRequest("GET", url))
            assert (caught.value.kind, caught.value.sent) == ("connect", False)


async def test_a_refused_connection_is_told_in_the_systems_words(client: Client) -> None:
    with closed_port() as port:
        with pytest.raises(HttpError, match=rf"^no connection to 127.0.0.1:{port}: Connection refused$"):
            await client.open(HttpRequest("GET", f"http://127.0.0.1:{port}/"))


async def test_closing_twice_is_closing_once() -> None:
    client = Client()
    async with raw_upstream(forever()) as upstream:
        assert await fetched(client, upstream.url) == b"hello"
        await client.aclose()
        assert client._pool.live == set()
        await client.aclose()
        with pytest.raises(HttpError, match="client is closed"):
            await client.open(HttpRequest("GET", upstream.url))
