import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import trustme
from raw_upstream import Peer, Script, forever, raw_upstream

from trunkline.core.ports import HttpError
from trunkline.upstream.client import Client
from trunkline.upstream.download import DownloadError, download
from trunkline.upstream.tls import make_context

FILE = bytes(range(256)) * 4000
KEY = ("authorization", "Bearer s3cret")


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    client = Client()
    yield client
    await client.aclose()


async def fetch(
    client: Client,
    url: str,
    *,
    max_bytes: int = len(FILE),
    total_s: float = 20,
    headers: tuple[tuple[str, str], ...] = (),
) -> bytes:
    pieces = download(client, url, max_bytes=max_bytes, total_s=total_s, headers=headers, public_only=False)
    async with aclosing(pieces):
        return b"".join([piece async for piece in pieces])


def redirects(*targets: str) -> Script:
    """Send each request on to the next target, then give the file; by the path, which counts the hops."""

    async def script(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            hop = int(head.split(" ")[1].rpartition("/")[2] or 0)
            if hop < len(targets):
                await peer.answer(b"moved", f"location: {targets[hop]}", status="302 Found")
            else:
                await peer.answer(FILE)

    return script


async def test_a_file_comes_whole(client: Client) -> None:
    async with raw_upstream(forever(body=FILE)) as upstream:
        assert await fetch(client, upstream.url) == FILE
        assert await fetch(client, upstream.url) == FILE
        assert len(upstream.peers) == 1


async def test_redirects_are_followed_up_to_five(client: Client) -> None:
    async with raw_upstream(redirects("/1", "2", "/a/3", "./4", "5")) as upstream:
        assert await fetch(client, f"http://127.0.0.1:{upstream.port}/0") == FILE
        upstream.script = redirects("/1", "/2", "/3", "/4", "/5", "/6")
        with pytest.raises(DownloadError, match="more than 5 redirects") as caught:
            await fetch(client, f"http://localhost:{upstream.port}/0")
        assert caught.value.status == 302


async def test_credentials_go_to_the_same_host_only(client: Client) -> None:
    seen: list[str] = []

    async def elsewhere(peer: Peer) -> None:
        head, _ = await peer.request()
        seen.append(head)
        await peer.answer(FILE)

    async with raw_upstream(elsewhere) as other:

        async def script(peer: Peer) -> None:
            while True:
                head, _ = await peer.request()
                seen.append(head)
                target = "/again" if " /v1 " in head else f"http://127.0.0.1:{other.port}/"
                await peer.answer(b"", f"location: {target}", status="307 Temporary Redirect")

        async with raw_upstream(script) as upstream:
            assert await fetch(client, upstream.url, headers=(KEY,)) == FILE
    assert ["s3cret" in head for head in seen] == [True, True, False]


@pytest.mark.parametrize(
    ("location", "error"),
    [("http://0x7f.1:1/", "address_refused"), ("file:///etc/passwd", "protocol"), ("http://u:p@h/", "protocol")],
)
async def test_every_hop_is_checked(client: Client, location: str, error: str) -> None:
    async with raw_upstream(redirects(location)) as upstream:
        opened = client.open

        class Vetting:
            """The first hop is on loopback, as it must be here; the second is vetted."""

            hops = 0
            aclose = client.aclose

            async def open(self, request):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
                self.hops += 1
                if self.hops == 1:
                    assert request.public_only
                    return await opened(type(request)(request.method, request.url))
                return await opened(request)

        with pytest.raises(HttpError) as caught:
            [piece async for piece in download(Vetting(), f"{upstream.url}/0", max_bytes=9, total_s=9)]
        assert caught.value.kind == error


async def test_a_redirect_that_gives_up_tls_or_is_no_url_is_refused() -> None:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(server)
    client = Client(tls=make_context([authority.cert_pem.bytes().decode()]))
    async with raw_upstream(redirects("http://localhost/"), server) as upstream:
        with pytest.raises(DownloadError, match="from https to http"):
            await fetch(client, f"{upstream.url}/0")
    async with (
        raw_upstream(forever(body=FILE), server) as secure,
        raw_upstream(redirects(f"{secure.url}/ü")) as upstream,
    ):
        assert await fetch(client, f"{upstream.url}/0") == FILE
    async with raw_upstream(redirects("http://[nowhere")) as upstream:
        with pytest.raises(DownloadError, match="not a URL"):
            await fetch(client, f"{upstream.url}/0")
    await client.aclose()


async def test_an_answer_that_is_not_the_file_is_an_error_with_its_status(client: Client) -> None:
    for status, number in (("404 Not Found", 404), ("304 Not Modified", 304), ("206 Partial Content", 206)):
        async with raw_upstream(forever(status=status)) as upstream:
            with pytest.raises(DownloadError, match=str(number)) as caught:
                await fetch(client, upstream.url)
            assert caught.value.status == number


async def test_a_file_that_is_too_large_is_ended(client: Client) -> None:
    async with raw_upstream(forever(body=FILE)) as upstream:
        with pytest.raises(HttpError, match=f"longer than {len(FILE) - 1} bytes") as caught:
            await fetch(client, upstream.url, max_bytes=len(FILE) - 1)
        assert caught.value.kind == "too_large"

        async def endless(peer: Peer) -> None:
            await peer.request()
            await peer.send(b"HTTP/1.1 200 OK\r\n\r\n")
            while True:
                await peer.send(FILE)

        upstream.script = endless
        with pytest.raises(HttpError) as caught:
            await fetch(client, upstream.url)
        assert caught.value.kind == "too_large"
        await asyncio.wait_for(upstream.peers[-1].closed.wait(), 60)


@pytest.mark.parametrize("begun", [True, False])
async def test_a_download_that_takes_too_long_is_ended(client: Client, *, begun: bool) -> None:
    async def silent(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n" if begun else b"")
        await peer.gone()

    async with raw_upstream(silent) as upstream:
        while not upstream.peers:  # on a machine that stalls the time is over before there is a connection
            with pytest.raises(HttpError, match="takes too long") as caught:
                await fetch(client, upstream.url, total_s=0.5)
            assert caught.value.kind == "timeout"
            await asyncio.sleep(0.01)
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)


def cut(at: int, rest: bytes, heads: list[str], first: str = 'etag: "one"') -> Script:
    """Break the first transfer at a byte, answer the second as told."""

    async def script(peer: Peer) -> None:
        head, _ = await peer.request()
        heads.append(head)
        if len(heads) == 1:
            start = f"HTTP/1.1 200 OK\r\n{first}\r\ncontent-length: {len(FILE)}\r\n\r\n"
            await peer.send(start.encode() + FILE[:at])
        else:
            await peer.send(rest)

    return script


def partial(start: int, end: int, total: str = str(len(FILE))) -> bytes:
    head = (
        f"HTTP/1.1 206 Partial\r\ncontent-length: {len(FILE) - start}\r\ncontent-range: bytes {start}-{end - 1}/{total}"
    )
    return head.encode() + b"\r\n\r\n" + FILE[start:end]


@pytest.mark.parametrize(
    ("first", "condition"),
    [
        ('etag: "one"', 'if-range: "one"'),
        ("last-modified: Mon, 02 Nov 2026 10:00:00 GMT", "if-range: Mon, 02 Nov 2026 10:00:00 GMT"),
        ('etag: W/"weak"', "range: bytes=1000-"),
    ],
)
async def test_a_file_that_is_cut_is_taken_up_where_it_broke(client: Client, first: str, condition: str) -> None:
    heads: list[str] = []
    async with raw_upstream(cut(1000, partial(1000, len(FILE)), heads, first)) as upstream:
        assert await fetch(client, upstream.url, headers=(KEY,)) == FILE
    assert "range: bytes=1000-\r\n" in heads[1]
    assert condition in heads[1]
    assert "s3cret" in heads[1]


async def test_a_file_that_is_cut_before_its_first_byte_is_asked_for_again(client: Client) -> None:
    heads: list[str] = []
    whole = b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(FILE) + FILE
    async with raw_upstream(cut(0, whole, heads)) as upstream:
        assert await fetch(client, upstream.url) == FILE
    assert "range" not in heads[1]


@pytest.mark.parametrize(
    "second",
    [
        partial(1000, 2000),
        partial(999, len(FILE)),
        partial(1000, len(FILE), "77"),
        b"HTTP/1.1 206 Partial\r\ncontent-length: 1\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nnew",
        b"HTTP/1.1 416 No\r\ncontent-length: 0\r\n\r\n",
        b"",
    ],
)
async def test_what_is_not_just_the_rest_is_not_put_behind_the_beginning(client: Client, second: bytes) -> None:
    heads: list[str] = []
    async with raw_upstream(cut(1000, second, heads)) as upstream:
        with pytest.raises(HttpError) as caught:
            await fetch(client, upstream.url)
        assert caught.value.kind == "incomplete"
    assert len(heads) == 2
