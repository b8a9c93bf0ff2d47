import asyncio
import random
import ssl
from collections import Counter

import pytest
import trustme
from raw_upstream import Peer, Script, forever, raw_upstream
from upstream_talk import CHUNKED, HEAD, post, read_to_the_end, sends

from trunkline.core.ports import HttpError
from trunkline.upstream import pool
from trunkline.upstream.client import Client

pytestmark = pytest.mark.faults


def served_once(seen: list[int], *, second: str) -> Script:
    """Answer the first request of a connection; at its second close, reset or begin an answer, then close."""

    async def script(peer: Peer) -> None:
        await peer.request()
        seen.append(peer.number)
        await peer.answer(b"hello")
        await peer.request()
        seen.append(peer.number)
        if second == "reset":
            peer.reset()
        elif second == "begin":
            await peer.send(b"HTTP/1.1")

    return script


@pytest.mark.parametrize("second", ["close", "reset"])
async def test_a_dead_pooled_connection_is_replaced_once(
    client: Client, tls: ssl.SSLContext | None, second: str
) -> None:
    seen: list[int] = []
    async with raw_upstream(served_once(seen, second=second), tls) as upstream:
        for _ in range(2):
            response = await client.open(post(upstream))
            assert await response.body(100) == b"hello"
        assert seen == [0, 0, 1]
        upstream.script = sends()
        with pytest.raises(HttpError) as caught:
            await client.open(post(upstream))
        assert (caught.value.kind, caught.value.sent) == ("reset", True)
        assert seen == [0, 0, 1, 1]
        assert len(upstream.peers) == 3


async def test_a_pooled_connection_that_has_begun_to_answer_is_not_replaced(client: Client) -> None:
    seen: list[int] = []
    async with raw_upstream(served_once(seen, second="begin")) as upstream:
        await (await client.open(post(upstream))).body(100)
        with pytest.raises(HttpError) as caught:
            await client.open(post(upstream))
        assert caught.value.kind == "incomplete"
        assert seen == [0, 0]


async def test_a_fresh_request_is_never_sent_twice(client: Client) -> None:
    async with raw_upstream(forever()) as upstream:
        await (await client.open(post(upstream))).body(100)
        upstream.script = sends()
        with pytest.raises(HttpError) as caught:
            await client.open(post(upstream, fresh=True))
        assert (caught.value.kind, caught.value.sent) == ("reset", True)
        assert len(upstream.peers) == 2


async def test_a_connection_closed_while_it_waits_is_forgotten(client: Client, tls: ssl.SSLContext | None) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.answer(b"hello")

    async with raw_upstream(script, tls) as upstream:
        for count in range(1, 4):
            assert await (await client.open(post(upstream))).body(100) == b"hello"
            await upstream.peers[-1].closed.wait()
            await asyncio.sleep(0.05)
            assert len(upstream.peers) == count


@pytest.mark.parametrize("surplus", [b"garbage", b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil"])
@pytest.mark.parametrize("together", [True, False])
async def test_an_answer_nobody_asked_for_is_given_to_nobody(client: Client, surplus: bytes, *, together: bool) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD + b"content-length: 5\r\n\r\nhello" + (surplus if together else b""))
        if not together and peer.number == 0:
            await asyncio.sleep(0.05)
            await peer.send(surplus)
        await peer.gone()

    async with raw_upstream(script) as upstream:
        assert await read_to_the_end(await client.open(post(upstream))) == (b"hello", "end")
        await asyncio.wait_for(upstream.peers[0].closed.wait(), 60)
        assert await read_to_the_end(await client.open(post(upstream))) == (b"hello", "end")
        assert len(upstream.peers) == 2


async def test_waiting_connections_are_bounded_in_time_and_number(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool, "IDLE_S", 4.0)
    monkeypatch.setattr(pool, "IDLE_COUNT", 2)
    together = asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.request()
        if peer.number == 2:
            together.set()
        await together.wait()
        await peer.answer(b"hello")
        await peer.gone()

    async with raw_upstream(script) as upstream:
        responses = await asyncio.gather(*(client.open(post(upstream)) for _ in range(3)))
        assert [await response.body(100) for response in responses] == [b"hello"] * 3
        assert client._pool.idle == 2
        for peer in upstream.peers:
            await asyncio.wait_for(peer.closed.wait(), 60)
    assert client._pool.idle == 0
    assert client._pool.live == set()


async def test_a_tls_session_is_taken_up_again(client: Client, authority: trustme.CA) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    reused = []

    async def script(peer: Peer) -> None:
        reused.append(peer.writer.get_extra_info("ssl_object").session_reused)
        await peer.request()
        await peer.answer(b"hello", "connection: close")

    async with raw_upstream(script, context) as upstream:
        for _ in range(3):
            await read_to_the_end(await client.open(post(upstream)))
    assert reused == [False, True, True]


async def test_answers_never_mix_whatever_happens_to_their_neighbours(
    client: Client, tls: ssl.SSLContext | None
) -> None:
    chance = random.Random(7)

    async def script(peer: Peer) -> None:
        """Echo the request in chunks of any size, and now and then break off."""
        while True:
            _, body = await peer.request()
            answer = CHUNKED + b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in body.split(b",")) + b"0\r\n\r\n"
            if chance.random() < 0.1:
                await peer.send(answer[: chance.randrange(len(answer))])
                return
            while answer:
                cut = chance.randrange(1, 200)
                await peer.send(answer[:cut])
                answer = answer[cut:]
                await asyncio.sleep(0)

    async def ask(number: int) -> str:
        words = [f"{number}-{index}" for index in range(chance.randrange(1, 30))]
        try:
            async with asyncio.timeout(chance.choice([0.002, 60])):
                response = await client.open(post(upstream, ",".join(words).encode()))
                got, end = await read_to_the_end(response)
        except TimeoutError:
            return "cancelled"
        except HttpError as error:
            return error.kind
        whole = "".join(words)
        assert got.decode() == whole if end == "end" else whole.startswith(got.decode())
        return end

    async def worker(number: int) -> list[str]:
        return [await ask(number * 1000 + round_) for round_ in range(40)]

    async with raw_upstream(script, tls) as upstream:
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(worker(number)) for number in range(16)]
        ends = Counter(end for worker_ in workers for end in worker_.result())
        assert ends["end"] > 100
        assert ends["cancelled"] + ends["incomplete"] + ends["reset"] == ends.total() - ends["end"]
        assert len(upstream.peers) < ends.total()


async def test_whoever_leaves_while_it_connects_leaves_no_connection(client: Client) -> None:
    async with raw_upstream(forever()) as upstream:
        for turns in range(40):
            asking = asyncio.ensure_future(client.open(post(upstream, fresh=True)))
            for _ in range(turns):
                await asyncio.sleep(turns % 3 / 5000)
            if not asking.cancel():
                await (await asking).aclose()
            await asyncio.wait([asking])
        async with asyncio.timeout(60):
            while len(client._pool.live) != client._pool.idle:  # noqa: ASYNC110 - what was broken off has to end
                await asyncio.sleep(0.01)
        assert sum(origin.live for origin in client._origins._origins.values()) == client._pool.idle
