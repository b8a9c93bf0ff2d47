import asyncio
import socket

import pytest
from raw_upstream import closed_port, forever, raw_upstream

from trunkline.core.ports import HttpError, HttpRequest
from trunkline.upstream.address import dial, is_public, resolve, vet
from trunkline.upstream.client import Client


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0",
        "10.1.2.3",
        "100.64.0.1",
        "100.127.255.255",
        "127.0.0.1",
        "169.254.169.254",
        "172.31.255.255",
        "192.0.0.1",
        "192.168.1.1",
        "198.19.0.1",
        "203.0.113.7",
        "224.0.0.1",
        "255.255.255.255",
        "::",
        "::1",
        "::127.0.0.1",
        "::ffff:10.0.0.1",
        "::ffff:127.0.0.1",
        "64:ff9b::7f00:1",
        "64:ff9b:1::1",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
        "2001:db8::1",
        "2002:7f00:1::",
        "2002:808:808::1",
        "fc00::1",
        "fd12:3456::1",
        "fe80::1",
        "fe80::1%lo",
        "fec0::1",
        "ff02::1",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address",
    ["8.8.8.8", "100.128.0.1", "172.32.0.1", "::ffff:8.8.8.8", "64:ff9b::808:808", "2606:4700::1111", "2a00:1450::1"],
)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "127.0.0.1.",
        "127.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0177.0.0.1",
        "0.0.0.0",
        "0",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "[::]",
        "１２７.0.0.1",
        "169.254.169.254",
    ],
)
async def test_no_spelling_of_a_private_address_is_dialled(host: str) -> None:
    client = Client()
    async with raw_upstream(forever()) as upstream:
        with pytest.raises(HttpError) as caught:
            await client.open(HttpRequest("GET", f"http://{host}:{upstream.port}/", public_only=True))
        # Not every resolver knows a name or a number with a dot at its end.
        assert caught.value.kind == "address_refused" or (host.endswith(".") and caught.value.kind == "connect")
        assert upstream.peers == []
    await client.aclose()


async def test_a_connection_made_without_the_check_is_not_used_with_it() -> None:
    client = Client()
    async with raw_upstream(forever()) as upstream:
        await (await client.open(HttpRequest("GET", upstream.url))).body(100)
        with pytest.raises(HttpError) as caught:
            await client.open(HttpRequest("GET", upstream.url, public_only=True))
        assert (caught.value.kind, caught.value.sent) == ("address_refused", False)
    await client.aclose()


def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    vet("host", ["8.8.8.8", "2606:4700::1111"])
    with pytest.raises(HttpError, match="host leads to an address that is not public"):
        vet("host", ["8.8.8.8", "2606:4700::1111", "10.0.0.1"])


def listening(backlog: int = 16) -> tuple[socket.socket, tuple[str, int]]:
    server = socket.create_server(("127.0.0.1", 0), backlog=backlog)
    return server, server.getsockname()


async def test_the_next_address_is_tried_when_one_refuses() -> None:
    server, good = listening()
    with server, closed_port() as port:
        closed = ("127.0.0.1", port)
        with await dial([(socket.AF_INET, closed), (socket.AF_INET, good)]) as connection:
            assert connection.getpeername() == good
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        with pytest.raises(ConnectionRefusedError):
            await dial([(socket.AF_INET, closed), (socket.AF_INET, closed)])


async def test_the_next_address_joins_in_when_one_is_silent() -> None:
    full, silent = listening(backlog=0)
    server, good = listening()
    waiting = [socket.socket() for _ in range(4)]
    for one in waiting:  # nobody accepts: the queue is full, and further connections get no answer
        one.setblocking(False)
        one.connect_ex(silent)
    await asyncio.sleep(0.05)
    with full, server, await dial([(socket.AF_INET, silent), (socket.AF_INET, good)]) as connection:
        assert connection.getpeername() == good
    for one in waiting:
        one.close()


async def test_the_families_take_turns() -> None:
    addresses = await resolve("127.0.0.1", 80, public_only=False)
    assert addresses == [(socket.AF_INET, ("127.0.0.1", 80))]
