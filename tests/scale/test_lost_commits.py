"""PostgreSQL commits, and its answer is lost: what was written is not written twice, and nothing is left lying."""

import asyncio
from pathlib import Path

import pytest
from film_provider import FilmProvider
from gateway import chunk
from gateway_process import Books, film, to_films
from job_tools import opened
from lossy_postgres import LossyPostgres
from media_gateway import deltas, media_of, numbered
from raw_upstream import Peer, raw_upstream
from replicas import ask_text, several
from text_upstream import HEAD, said, to_text

pytestmark = pytest.mark.scale


async def test_a_text_has_every_event_once(tmp_path: Path, postgres_url: str) -> None:
    words = 0

    async def until_enough_are_lost(peer: Peer) -> None:
        nonlocal words
        await peer.request()
        await peer.send(HEAD)
        while words < 40 or way.lost <= 3:
            await peer.send(chunk({"content": f"{words} "}))
            words += 1
            await asyncio.sleep(0.05)
        await peer.send(chunk({}, "stop") + b"data: [DONE]\n\n")

    async with LossyPostgres(postgres_url).open() as way, raw_upstream(until_enough_are_lost) as upstream:
        async with several(tmp_path, to_text(upstream.url), way.url).gateway() as gate:
            answer = await gate.ask(ask_text(stream=True), x_trunkline_resume="true")
            way.every = 3
            events = await numbered(answer)
            way.every = 0
            lost = way.lost
            again = await numbered(await gate.get(f"/v1/streams/{answer.headers['x-trunkline-stream-id']}"))
    assert lost > 3
    assert "".join(deltas(events)) == said(words)
    assert events[-1][1] == "[DONE]"
    assert [event for event in again if event[0] is not None] == [event for event in events if event[0] is not None]


async def test_a_film_is_made_and_booked_once(tmp_path: Path, postgres_url: str) -> None:
    async with FilmProvider() as provider, LossyPostgres(postgres_url).open() as way:
        async with several(tmp_path, to_films(provider.url), way.url).gateway() as gate:
            for _ in range(2):
                answer = await gate.ask(film({"polls": 3}))
                assert answer.status == 200
                way.every = 3
                events = await numbered(answer)
                way.every = 0
                assert media_of(events)["outputs"]
                numbers = [number for number, _ in events if number is not None]
                assert numbers == list(range(len(numbers)))
            lost = way.lost
    async with opened(postgres_url) as database:
        rows = await Books(database).rows(2)
    assert lost > 3
    assert [(row.end_reason, row.cost_microusd) for row in rows] == [("completed", 400_000)] * 2
    assert len(provider.submits) == 2


async def test_a_job_whose_storing_was_not_answered_is_done_all_the_same(tmp_path: Path, postgres_url: str) -> None:
    async with FilmProvider() as provider, LossyPostgres(postgres_url).open() as way:
        async with several(tmp_path, to_films(provider.url), way.url).gateway() as gate:
            way.once = b"INSERT INTO jobs"
            told = await gate.ask(film({"polls": 0}), idempotency_key="k")
            assert (told.status, (await told.json())["error"]["code"]) == (503, "storage_unavailable")
            assert way.lost == 1
            async with opened(postgres_url) as database:
                await Books(database).rows(1)
            again = await gate.ask(film({"polls": 0}), idempotency_key="k")
            assert media_of(await numbered(again))["outputs"]
    assert len(provider.submits) == 1
