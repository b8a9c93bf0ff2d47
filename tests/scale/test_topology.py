"""PostgreSQL, Valkey, S3, two replicas and nginx, as the Compose file has them."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, chat, chunk, to_upstream
from media_gateway import draw, media_of, numbered, to_media
from media_providers import MediaProviders
from raw_upstream import Peer, raw_upstream
from topology import ADMIN_KEY, Topology, topology

pytestmark = pytest.mark.scale
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
TURNS = 20
CALLS = "trunkline_calls_total{"
Start = Callable[[dict[str, Any]], Any]


@pytest.fixture
def start(tmp_path: Path, postgres_url: str, valkey_url: str, s3_endpoint: str) -> Start:
    """Starts the topology with a configuration of providers."""
    return lambda tables: topology(tmp_path, tables, postgres=postgres_url, valkey=valkey_url, s3=s3_endpoint)


@asynccontextmanager
async def texts(start: Start, script: Callable[[Peer], Awaitable[None]], **tables: Any) -> AsyncIterator[Topology]:
    async with raw_upstream(script) as upstream, start({**to_upstream(upstream.url), **tables}) as running:
        yield running


async def answers_at_once(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD + chunk({"content": "x"}, "stop") + chunk(choices=[], usage=USAGE) + b"data: [DONE]\n\n")


async def until(answer: Answer, text: bytes) -> None:
    async with asyncio.timeout(120):
        while text not in await answer.chunk():
            pass


async def rest(answer: Answer) -> bytes:
    got = b""
    try:
        while data := await answer.chunk():
            got += data
    except (asyncio.IncompleteReadError, ConnectionError):
        return got + b"broken"
    return got


def on_disk(folder: Path) -> list[Path]:
    return [*folder.glob("trunkline-*/media/??/*")]


async def statuses(running: Topology, key: dict[str, str], number: int, **members: Any) -> list[int]:
    async def one() -> int:
        answer = await running.ask(chat(**members), **key)
        await answer.body()
        answer.leave()
        return answer.status

    return await asyncio.gather(*(one() for _ in range(number)))


async def counted(running: Topology, number: int) -> list[float]:
    """How many calls each replica has had, once so many are counted: they are a moment after their answers."""
    found: list[float] = []
    while sum(found) < number:
        found = []
        for replica in running.replicas.values():
            page = await replica.get("/metrics", authorization=f"Bearer {ADMIN_KEY}")
            lines = [line for line in (await page.body()).decode().splitlines() if line.startswith(CALLS)]
            found.append(sum(float(line.rpartition(" ")[2]) for line in lines))
    return found


async def test_nothing_is_held_back_on_the_way(start: Start) -> None:
    heard = [asyncio.Event() for _ in range(TURNS)]

    async def in_turns(peer: Peer) -> None:
        """Send an event only when the client has the one before."""
        await peer.request()
        await peer.send(HEAD)
        for number, event in enumerate(heard):
            await peer.send(chunk({"content": f"<{number}>"}))
            await event.wait()
        await peer.send(chunk({}, "stop") + b"data: [DONE]\n\n")

    async with texts(start, in_turns) as running:
        answer = await running.ask(chat(stream=True), **await running.key())
        assert answer.status == 200
        for number, event in enumerate(heard):
            await until(answer, b"<%d>" % number)
            event.set()
        assert (await rest(answer)).endswith(b"data: [DONE]\n\n")


async def test_a_large_body_passes(start: Start) -> None:
    async with texts(start, answers_at_once) as running:
        picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 40_000_000}}
        body = {"model": "m", "messages": [{"role": "user", "content": [picture]}]}
        answer = await running.ask(json.dumps(body).encode(), **await running.key())
        assert answer.status == 200, await answer.body()


async def test_limits_are_exact_over_both_replicas(start: Start) -> None:
    price = {"models": {"m": {"targets": ["up:m"], "price": {"input_per_mtok": 0, "output_per_mtok": 100}}}}
    async with texts(start, answers_at_once, **price) as running:
        calls, each, free = 0, [0.0], await running.key()
        while 0 in each:  # each takes some; which of them is first at a limit is a matter of chance
            assert await statuses(running, free, 1) == [200]
            calls += 1
            each = await counted(running, calls)
        got = await statuses(running, await running.key("--rpm", "40"), 160)
        assert (got.count(200), got.count(429)) == (40, 120)
        got = await statuses(running, await running.key("--budget-usd", "0.05"), 400, max_tokens=10)
        assert (got.count(200), got.count(402)) == (50, 350)
        assert sum(await counted(running, calls + 90)) == calls + 90


async def test_a_picture_is_made_once_and_shown_by_both(start: Start, tmp_path: Path) -> None:
    async with MediaProviders() as providers, start(to_media(providers.url)) as running:
        key = await running.key()
        answer = await running.ask(draw(stream=True), **key)
        assert answer.status == 200, await answer.body()
        stream_id = answer.headers["x-trunkline-stream-id"]
        [url] = media_of(await numbered(answer))["outputs"]
        path = url.removeprefix("http://gateway")
        for replica in running.replicas.values():
            again = await numbered(await replica.get(f"/v1/streams/{stream_id}", **key))
            assert media_of(again)["outputs"] == [url]
            shown = await replica.get(path)
            assert (await shown.body()).startswith(b"\x89PNG")
        assert on_disk(tmp_path) == []  # they are in S3


async def test_a_killed_replica_is_not_noticed_by_who_asks_next(start: Start) -> None:
    go_on = asyncio.Event()

    async def held(peer: Peer) -> None:
        _, body = await peer.request()
        await peer.send(HEAD + chunk({"content": "begun"}))
        if b'"max_tokens"' not in body:
            await go_on.wait()
        await peer.send(chunk({"content": "ended"}, "stop") + b"data: [DONE]\n\n")

    async with texts(start, held) as running:
        key = await running.key()
        streams = await asyncio.gather(*(running.ask(chat(stream=True), **key) for _ in range(20)))
        for stream in streams:
            await until(stream, b"begun")
        running.replicas["trunkline-1"].kill()
        await running.replicas["trunkline-1"].end()
        assert await statuses(running, key, 60, max_tokens=5) == [200] * 60
        go_on.set()
        ends = await asyncio.gather(*(rest(stream) for stream in streams))
        whole = [end for end in ends if end.endswith(b"data: [DONE]\n\n")]
        assert len(whole) == 10  # least_conn deals them out evenly
