"""One of two replicas behind nginx goes away under load: what its clients see, and that nobody else sees anything."""

import asyncio
import json
import signal
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from film_provider import FilmProvider
from gateway import chunk
from gateway_process import Books, film, to_films
from job_tools import opened
from media_gateway import heard
from raw_upstream import Peer, raw_upstream
from replicas import ask_text
from text_upstream import HEAD, to_text
from topology import REPLICAS, Topology, topology

pytestmark = pytest.mark.scale
CLIENTS = 40
ROUNDS = 8


async def one_stream(running: Topology, key: dict[str, str]) -> str:
    """Ask once; gives how it ended."""
    answer = await running.ask(ask_text(stream=True), connection="close", **key)
    if answer.status != 200:
        return str(answer.status)
    events = await heard(answer)
    answer.leave()
    last: Any = events[-1][1] if events else "nothing"
    return "whole" if last == "[DONE]" else last["error"]["code"] if "error" in last else "cut"


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
async def test_nobody_else_notices(
    tmp_path: Path, postgres_url: str, valkey_url: str, s3_endpoint: str, how: signal.Signals
) -> None:
    begun = 0
    gone = asyncio.Event()

    async def talks(peer: Peer) -> None:
        """Talk; in the third round, all are in the middle of an answer when the replica goes."""
        nonlocal begun
        await peer.request()
        await peer.send(HEAD + chunk({"content": "begun "}))
        begun += 1
        if 2 * CLIENTS < begun <= 3 * CLIENTS:
            if begun == 3 * CLIENTS:
                running.replicas[REPLICAS[0]].kill(how)
                await running.replicas[REPLICAS[0]].end()
                gone.set()
            await gone.wait()
        for n in range(10):
            await asyncio.sleep(0.1)
            await peer.send(chunk({"content": f"{n} "}))
        await peer.send(chunk({}, "stop") + b"data: [DONE]\n\n")

    async with raw_upstream(talks) as upstream:
        tables = to_text(upstream.url, server={"grace_s": 2})
        async with topology(tmp_path, tables, postgres=postgres_url, valkey=valkey_url, s3=s3_endpoint) as running:
            key = await running.key()
            ends: list[str] = []

            async def client() -> None:
                ends.extend([await one_stream(running, key) for _ in range(ROUNDS)])

            await asyncio.gather(*(client() for _ in range(CLIENTS)))
            told = Counter(ends)
            print(how.name, dict(told))
    # Its own answers, at most one of each client, and nothing else.
    ended = "cut" if how == signal.SIGKILL else "server_shutdown"
    assert told[ended]
    assert set(told) - {"503"} == {"whole", ended}
    assert not told["503"] or how == signal.SIGTERM  # what had not begun when it went
    assert told["whole"] >= CLIENTS * (ROUNDS - 1)


async def test_a_film_that_is_not_answered_yet_is_asked_for_again_and_made_once(
    tmp_path: Path, postgres_url: str, valkey_url: str, s3_endpoint: str
) -> None:
    services = {"postgres": postgres_url, "valkey": valkey_url, "s3": s3_endpoint}
    async with (
        FilmProvider() as provider,
        topology(tmp_path, to_films(provider.url), **services) as running,
        opened(postgres_url) as database,
    ):
        key = await running.key()
        books = Books(database)
        body = json.dumps(film({"polls": 8}, stream=False)).encode()
        answer = await running.send("POST", "/v1/chat/completions", body, connection="close", **key)
        async with asyncio.timeout(120):
            while not (jobs := await books.jobs.page(limit=10)):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
        job = await books.reached(jobs[0].id, "running")
        running.replicas[REPLICAS[0]].kill()  # nginx asks the first one first
        await answer.read_head()
        assert answer.status == 200, await answer.body()
        assert answer.headers["x-trunkline-job-id"] == job.id
        await books.claimed(job.id)
        assert [found.id for found in await books.jobs.page(limit=10)] == [job.id]
        assert len(provider.submits) == 1
