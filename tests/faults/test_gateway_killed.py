"""The gateway's process killed at each moment of a film: one submit, one film, one booking, one stream without gap."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from film_provider import FilmProvider
from gateway_process import Home, film, stopped_in, to_films
from media_gateway import behind, heard, media_of, numbered

from trunkline.core.jobs import JobState

pytestmark = pytest.mark.faults
Numbered = list[tuple[int | None, Any]]


def blobs(home: Home, name: str = "a") -> int:
    """How many files are in the media store."""
    return len([*(home.folder / name / "media").glob("??/*")])


def joined(first: Numbered, rest: Numbered) -> Numbered:
    """The two parts of a stream as its client has them: the numbers without a gap, none twice."""
    events = [event for event in first + rest if event[0] is not None]
    assert [number for number, _ in events] == list(range(len(events)))
    return events


@pytest.mark.parametrize(
    ("state", "script"),
    [
        ("queued", {"polls": 1}),
        ("running", {"held": "polls"}),
        ("storing", {"held": "file"}),
    ],
)
async def test_a_film_survives_its_gateway(tmp_path: Path, state: JobState, script: dict[str, Any]) -> None:
    async with FilmProvider() as provider:
        home = Home(tmp_path, to_films(provider.url))
        async with home.gateway() as first, home.books() as books:
            answer = await stopped_in(state, first, books, script)
            job_id, stream_id = answer.headers["x-trunkline-job-id"], answer.headers["x-trunkline-stream-id"]
            first.kill()
            provider.go.set()
            begun = await heard(answer)
            assert len(provider.submits) == len(await books.rows()) + (state != "queued")
            async with home.gateway() as second:
                rest = await numbered(await second.get(f"/v1/streams/{stream_id}", **behind(begun)))
                events = joined(begun, rest)
                [url] = media_of(events)["outputs"]
                assert events[-1][1] == "[DONE]"
                again = await numbered(await second.get(f"/v1/streams/{stream_id}"))
                assert [event for event in again if event[0] is not None] == events
                shown = await second.get(url.removeprefix("http://gateway"))
                assert (await shown.body())[4:8] == b"ftyp"
            rows = await books.rows()
        assert job_id in {row.job_id for row in rows}
        assert {(row.end_reason, row.cost_microusd) for row in rows} == {("completed", 400_000)}
        assert len(provider.submits) == len(rows)
        assert blobs(home) == 2  # the film and its cover


async def test_killed_inside_the_submit_it_is_not_submitted_again(tmp_path: Path) -> None:
    async with FilmProvider() as provider:
        home = Home(tmp_path, to_films(provider.url))
        async with home.gateway() as first, home.books() as books:
            answer = await first.ask(film({"polls": 1, "held": "submit"}))
            job_id, stream_id = answer.headers["x-trunkline-job-id"], answer.headers["x-trunkline-stream-id"]
            async with asyncio.timeout(60):
                while not provider.submits:  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            first.kill()
            begun = await heard(answer)
            async with home.gateway() as second:
                rest = await numbered(await second.get(f"/v1/streams/{stream_id}", last_event_id="0"))
                [_, error] = joined(begun, rest)
                assert error[1]["error"]["code"] == "submit_unknown"
                video = await (await second.get(f"/v1/videos/{job_id}")).json()
                assert (video["status"], video["error"]["code"]) == ("failed", "submit_unknown")
            [row] = await books.rows()
        assert len(provider.submits) == 1
        assert (row.end_reason, row.estimated) == ("crashed", True)


async def test_a_hundred_films_at_once_survive_their_gateway(tmp_path: Path) -> None:
    async with FilmProvider() as provider:
        home = Home(tmp_path, to_films(provider.url))
        async with home.gateway() as first, home.books() as books:
            answers = await asyncio.gather(*(first.ask(film({"polls": 8})) for _ in range(100)))
            async with asyncio.timeout(180):
                while len(provider.submits) < 100:  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.1)
            jobs = [answer.headers["x-trunkline-job-id"] for answer in answers]
            for job_id in jobs:
                await books.reached(job_id, "running", "storing", "completed")
            print("at 100 jobs:", first.used())
            first.kill()
            for answer in answers:
                answer.leave()
            async with home.gateway() as second:
                for job_id in jobs:
                    await books.reached(job_id, "completed")
                print("after the restart:", second.used())
                rows = await books.rows(100)
        assert sorted(row.job_id for row in rows) == sorted(jobs)
        assert {row.end_reason for row in rows} == {"completed"}
        assert len(provider.submits) == 100
