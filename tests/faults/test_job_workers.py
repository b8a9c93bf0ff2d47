"""`serve --workers 2` with films under way: the first worker is killed, its films go on."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from film_provider import FilmProvider
from gateway import Answer
from gateway_process import Books, Home, Process, film, to_films
from media_gateway import behind, heard, media_of, numbered
from postgres import postgres_server, postgres_url
from replicas import several

from trunkline.core.jobs import Job

__all__ = ["postgres_server", "postgres_url"]
FILMS = 6


def first_worker(gate: Process) -> int:
    """The process that is worker 0."""
    pid = gate.process.pid
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    [found] = [child for child in children if '"number":0,' in Path(f"/proc/{child}/cmdline").read_text()]
    return int(found)


async def any_claimed(books: Books, held: list[Job]) -> bool:
    """Look whether one of the jobs has another owner."""
    now = [await books.jobs.get(job.id) for job in held]
    return any(job and job.owner != was.owner for job, was in zip(now, held, strict=True))


async def they_go_on(home: Home, provider: FilmProvider, at_work: int) -> None:
    """`at_work`: how many of the two workers make films; each has one when the first is killed."""
    async with home.gateway("a", "--workers", "2") as gate, home.books() as books:
        answers: list[Answer] = []
        held: list[Job] = []
        while len({job.owner for job in held}) < at_work:  # the kernel gives connections to workers as it likes
            more = await asyncio.gather(*(gate.ask(film({"held": "polls"})) for _ in range(FILMS)))
            held += [await books.reached(answer.headers["x-trunkline-job-id"], "running") for answer in more]
            answers += more
        jobs = [job.id for job in held]
        os.kill(first_worker(gate), signal.SIGKILL)
        provider.go.set()
        killed, asked = time.monotonic(), provider.seen.total()
        async with asyncio.timeout(60):
            while not await any_claimed(books, held):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
            claimed_s = time.monotonic() - killed
            while provider.seen.total() == asked:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
        polled_s, owners = time.monotonic() - killed, {job.owner for job in held}
        after = f"after the kill of one of {len(owners)} workers with films"
        print(f"claimed {claimed_s:.1f} s, asked for again {polled_s:.1f} s {after}")
        for answer in answers:
            begun = await heard(answer)
            stream = f"/v1/streams/{answer.headers['x-trunkline-stream-id']}"
            rest = await numbered(await gate.get(stream, **behind(begun)))
            events = [event for event in begun + rest if event[0] is not None]
            assert [number for number, _ in events] == list(range(len(events)))
            assert media_of(events)["outputs"]
        rows = await books.rows(len(jobs))
    assert sorted(row.job_id for row in rows) == sorted(jobs)
    assert {row.end_reason for row in rows} == {"completed"}
    assert len(provider.submits) == len(jobs)


@pytest.mark.faults
async def test_films_of_a_killed_worker_go_on(tmp_path: Path) -> None:
    async with FilmProvider() as provider:
        await they_go_on(Home(tmp_path, to_films(provider.url)), provider, at_work=1)


@pytest.mark.scale
async def test_films_of_a_killed_worker_go_on_with_postgresql(tmp_path: Path, postgres_url: str) -> None:
    async with FilmProvider() as provider:
        await they_go_on(several(tmp_path, to_films(provider.url), postgres_url), provider, at_work=2)
