import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest
import trustme
from raw_upstream import Peer, RawUpstream, Script, forever, raw_upstream

from trunkline.core.ports import HttpError, HttpRequest
from trunkline.upstream.client import Client
from trunkline.upstream.proxies import Proxies
from trunkline.upstream.tls import make_context
from trunkline.upstream.url import split


def host_of(environ: dict[str, str], url: str) -> str | None:
    proxy = Proxies(environ).find(split(url)[0])
    return proxy and proxy.host


def test_the_environment_says_which_proxy() -> None:
    environ = {"HTTP_PROXY": "http://upper", "http_proxy": "http://plain:3128", "https_proxy": "secure"}
    assert host_of(environ, "http://host/") == "plain"
    assert host_of(environ, "https://host/") == "secure"
    assert host_of({"ALL_PROXY": "http://all"}, "https://host/") == "all"
    assert host_of({"HTTPS_PROXY": "http://only"}, "http://host/") is None
    assert host_of({"HTTP_PROXY": ""}, "http://host/") is None
    for url in ("http://localhost/", "http://a.localhost/", "http://127.0.0.1/", "http://[::1]/", "http://127.9.9.9/"):
        assert host_of({"ALL_PROXY": "http://all"}, url) is None


@pytest.mark.parametrize(
    ("no_proxy", "url", "direct"),
    [
        ("*", "http://host/", True),
        ("example.com", "http://example.com/", True),
        ("example.com", "http://EXAMPLE.com./", True),
        ("example.com", "http://a.example.com/", True),
        ("example.com", "http://notexample.com/", False),
        (".example.com", "http://a.example.com/", True),
        ("*.example.com", "http://a.example.com/", True),
        ("other, example.com:8080 ,", "http://example.com:8080/", True),
        ("example.com:8080", "http://example.com/", False),
        ("10.0.0.0/8", "http://10.9.8.7/", True),
        ("10.0.0.0/8", "http://11.9.8.7/", False),
        ("10.9.8.7", "http://10.9.8.7:81/", True),
        ("10.9.8.7:82", "http://10.9.8.7:81/", False),
        ("10.9.8.7:81", "http://10.9.8.7:81/", True),
        ("fd00::/8", "http://[fd00::1]/", True),
        ("[fd00::1]", "http://[fd00::1]/", True),
        ("[fd00::1]:81", "http://[fd00::1]/", False),
        ("10.0.0.0/8", "http://host/", False),
    ],
)
def test_no_proxy_names_hosts_suffixes_ports_and_networks(no_proxy: str, url: str, direct: bool) -> None:  # noqa: FBT001
    assert (host_of({"ALL_PROXY": "http://all", "NO_PROXY": no_proxy}, url) is None) is direct


def test_a_proxy_that_is_not_spoken_is_named_and_its_password_is_not() -> None:
    for url in ("socks5://u:hidden@host:1080", "https://host", "http://host:port", "http://"):
        with pytest.raises(HttpError, match="proxy") as caught:
            host_of({"ALL_PROXY": url}, "http://example.com/")
        assert "hidden" not in str(caught.value)
    proxy = Proxies({"ALL_PROXY": "http://us%40er:hid%3Aden@host"}).find(split("http://a/")[0])
    assert proxy is not None
    assert proxy.authorization == "Basic dXNAZXI6aGlkOmRlbg=="
    assert proxy.authorization not in repr(proxy)


class Tunnel:
    """A proxy for CONNECT and absolute-form requests that leads every name to one upstream."""

    def __init__(self, upstream: RawUpstream) -> None:
        self.upstream = upstream
        self.heads: list[str] = []

    async def script(self, peer: Peer) -> None:
        head, body = await peer.request()
        self.heads.append(head)
        if not head.startswith("CONNECT"):
            await peer.answer(b"through the proxy " + body)
            return
        reader, writer = await asyncio.open_connection("127.0.0.1", self.upstream.port)
        await peer.send(b"HTTP/1.1 200 Connection established\r\nvia: test\r\n\r\n")

        async def pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                sink.write(data)
                await sink.drain()
            sink.close()

        await asyncio.gather(pump(peer.reader, writer), pump(reader, peer.writer), return_exceptions=True)


@pytest.fixture
async def secure() -> AsyncIterator[tuple[RawUpstream, Client, Tunnel]]:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("upstream.test").configure_cert(server)
    async with raw_upstream(forever(), server) as upstream:
        tunnel = Tunnel(upstream)
        async with raw_upstream(tunnel.script) as proxy:
            environ = {"ALL_PROXY": f"http://user:pass@127.0.0.1:{proxy.port}"}
            client = Client(environ, make_context([authority.cert_pem.bytes().decode()]))
            yield upstream, client, tunnel
            await client.aclose()


async def test_https_goes_through_a_tunnel_that_is_kept(secure: tuple[RawUpstream, Client, Tunnel]) -> None:
    upstream, client, tunnel = secure
    for _ in range(2):
        response = await client.open(HttpRequest("GET", "https://upstream.test/v1"))
        assert await response.body(100) == b"hello"
    (head,) = tunnel.heads
    assert head == (
        "CONNECT upstream.test:443 HTTP/1.1\r\nhost: upstream.test:443\r\n"
        "proxy-authorization: Basic dXNlcjpwYXNz\r\n\r\n"
    )
    assert len(upstream.peers) == 1


async def test_http_goes_to_the_proxy_in_absolute_form(secure: tuple[RawUpstream, Client, Tunnel]) -> None:
    _, client, tunnel = secure
    response = await client.open(HttpRequest("POST", "http://upstream.test:8080/v1?q", (), b"body"))
    assert await response.body(100) == b"through the proxy body"
    lines = tunnel.heads[0].split("\r\n")
    assert lines[0] == "POST http://upstream.test:8080/v1?q HTTP/1.1"
    assert "host: upstream.test:8080" in lines
    assert "proxy-authorization: Basic dXNlcjpwYXNz" in lines


async def test_a_public_host_is_named_to_the_proxy_by_the_address_that_was_vetted(
    secure: tuple[RawUpstream, Client, Tunnel],
) -> None:
    _, client, tunnel = secure
    for url in ("http://10.0.0.1/", "https://10.0.0.1/"):
        with pytest.raises(HttpError) as caught:
            await client.open(HttpRequest("GET", url, public_only=True))
        assert caught.value.kind == "address_refused"
    assert tunnel.heads == []
    await client.open(HttpRequest("GET", "http://0x08080808/x", public_only=True))
    lines = tunnel.heads[0].split("\r\n")
    assert lines[0] == "GET http://8.8.8.8:80/x HTTP/1.1"
    assert "host: 0x08080808" in lines


async def refuses(peer: Peer) -> None:
    await peer.head()
    await peer.send(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")


async def closes(peer: Peer) -> None:
    await peer.head()


async def floods(peer: Peer) -> None:
    await peer.head()
    while True:
        await peer.send(b"x" * 1000)


async def hangs(peer: Peer) -> None:
    await peer.gone()


@pytest.mark.parametrize(
    ("script", "kind", "message"),
    [
        (refuses, "connect", "the proxy refused CONNECT host.test:443: HTTP/1.1 407"),
        (closes, "connect", "did not answer"),
        (floods, "connect", "did not answer"),
        (hangs, "timeout", "no connection"),
    ],
)
async def test_a_proxy_that_fails_is_an_error_of_connecting(script: Script, kind: str, message: str) -> None:
    connect_s = 0.5 if kind == "timeout" else 60
    async with raw_upstream(script) as proxy:
        client = Client({"HTTPS_PROXY": f"http://127.0.0.1:{proxy.port}"})
        with pytest.raises(HttpError, match=message) as caught:
            await client.open(HttpRequest("GET", "https://host.test/", connect_s=connect_s))
        assert (caught.value.kind, caught.value.sent) == (kind, False)
        await client.aclose()
