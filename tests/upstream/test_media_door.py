"""The engine's door: whose key goes where, and which addresses a provider's link may lead to."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from raw_upstream import Peer, Script, raw_upstream

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.provider import MediaSide, Provider
from trunkline.core.secret import Secret
from trunkline.upstream.client import Client
from trunkline.upstream.media_door import MediaDoor

KEYS = (Secret("k-one", "env:ONE"), Secret("k-two", "env:TWO"))


def target(base_url: str, provider: str = "home") -> Target:
    return Target(provider, "film/1", base_url, "films", side="video")


@asynccontextmanager
async def door(
    base_url: str, *, allow_private: bool = False, local: str = "", idle_s: float = 60
) -> AsyncIterator[MediaDoor]:
    async def child() -> tuple[str, Secret]:
        return local, Secret("child-key")

    side = MediaSide("films", auth="x-api-key")
    provider = Provider(base_url, api_key=KEYS, video=side, headers={"x-team": Secret("red")})
    client = Client()
    try:
        locals_ = {("local", "film/1"): child} if local else {}
        yield MediaDoor(client, {"home": provider}, locals_, allow_private=allow_private, idle_s=idle_s)
    finally:
        await client.aclose()


def seen(heads: list[str], body: bytes = b"ok", status: str = "200 OK", *headers: str) -> Script:
    async def script(peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            heads.append(head.lower())
            await peer.answer(body, *headers, status=status)

    return script


async def fetched(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


async def test_a_request_carries_the_bound_key_and_the_providers_headers() -> None:
    heads: list[str] = []
    async with raw_upstream(seen(heads)) as upstream, door(upstream.url) as home:
        request = UpstreamRequest("/models/{model}/films", b"{}")
        response = await home.open(request, target(upstream.url), "env:TWO", fresh=True)
        assert await response.body(10) == b"ok"
    assert heads[0].startswith("post /v1/models/film%2f1/films ")
    assert "x-api-key: k-two" in heads[0]
    assert "x-team: red" in heads[0]
    assert "k-one" not in heads[0]


async def test_a_key_that_is_gone_is_said() -> None:
    async with door("http://127.0.0.1:1") as home:
        with pytest.raises(GatewayError) as caught:
            await home.open(UpstreamRequest("/x"), target("http://127.0.0.1:1"), "env:OLD")
    assert caught.value.code == "upstream_auth"
    async with door("http://127.0.0.1:1") as home:
        with pytest.raises(GatewayError) as caught:
            await home.open(UpstreamRequest("/x"), target("http://127.0.0.1:1", "gone"), "")
    assert caught.value.code == "upstream_unavailable"


async def test_an_embedded_model_is_reached_where_it_is_now() -> None:
    heads: list[str] = []
    async with raw_upstream(seen(heads)) as upstream, door("", local=upstream.url) as home:
        response = await home.open(UpstreamRequest("/videos"), target("", "local"), "")
        await response.body(10)
        assert await fetched(home.download("/f", max_bytes=9, target=target("", "local"), authorized=True)) == b"ok"
    assert all("authorization: bearer child-key" in head for head in heads)


async def test_the_key_goes_to_the_providers_own_origin_only() -> None:
    here: list[str] = []
    there: list[str] = []
    async with (
        raw_upstream(seen(here)) as own,
        raw_upstream(seen(there)) as other,
        door(own.url, allow_private=True) as home,
    ):
        for url in ("/films/1", own.url + "/films/1", other.url + "/films/1"):
            file = home.download(url, max_bytes=9, target=target(own.url), credential_id="env:ONE", authorized=True)
            assert await fetched(file) == b"ok"
    assert ["x-api-key: k-one" in head for head in (*here, *there)] == [True, True, False]


async def test_links_to_private_addresses_are_refused_but_the_providers_own_are_not() -> None:
    heads: list[str] = []
    async with raw_upstream(seen(heads)) as own, raw_upstream(seen([])) as other, door(own.url) as home:
        at_home = home.download(own.url + "/films/1", max_bytes=9, target=target(own.url))
        assert await fetched(at_home) == b"ok"
        for url in (other.url + "/films/1", "http://169.254.169.254/latest/meta-data", "file:///etc/passwd"):
            with pytest.raises(GatewayError) as caught:
                await fetched(home.download(url, max_bytes=9, target=target(own.url)))
            assert caught.value.code == "media_refused"
    assert "x-api-key" not in heads[0]


async def test_a_redirect_into_a_private_network_is_refused() -> None:
    away = seen([], b"", "302 Found", "location: http://169.254.169.254/latest/meta-data")
    async with raw_upstream(away) as own, door(own.url) as home:
        with pytest.raises(GatewayError) as caught:
            await fetched(home.download("/films/1", max_bytes=9, target=target(own.url)))
    assert caught.value.code == "media_refused"


@pytest.mark.parametrize(
    ("status", "body", "code"),
    [
        ("404 Not Found", b"", "media_gone"),
        ("403 Forbidden", b"", "media_gone"),
        ("429 Slow Down", b"", "media_unavailable"),
        ("503 Busy", b"", "media_unavailable"),
        ("200 OK", b"x" * 100, "media_refused"),
    ],
)
async def test_what_may_pass_is_told_from_what_will_not(status: str, body: bytes, code: str) -> None:
    async with raw_upstream(seen([], body, status)) as own, door(own.url) as home:
        with pytest.raises(GatewayError) as caught:
            await fetched(home.download("/films/1", max_bytes=50, target=target(own.url)))
    assert caught.value.code == code


async def test_a_file_that_stops_coming_is_left() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf")
        await peer.gone()

    async with raw_upstream(script) as own, door(own.url, idle_s=0.2) as home:
        with pytest.raises(GatewayError, match="stopped for") as caught:
            await fetched(home.download("/films/1", max_bytes=50, target=target(own.url)))
    assert caught.value.code == "media_unavailable"
