"""A gateway that starts again on a thousand finished films: how soon, how large, and all of them in the list."""

import asyncio
import time
from pathlib import Path

import openai
import pytest
from film_provider import FilmProvider
from gateway_process import Books, Home, to_films
from msgspec import Raw

from trunkline.core.binding import bind
from trunkline.core.chat import Target
from trunkline.core.jobs import Job, JobChanges
from trunkline.core.media import MediaRecord
from trunkline.storage.sql.media import SqlMediaIndex

pytestmark = [pytest.mark.scale, pytest.mark.filterwarnings("ignore:The Sora API:DeprecationWarning")]
FILMS = 1000
REQUEST = Raw(b'{"kind":"video","prompt":"a dog","model":"films/reel"}')


async def finished(books: Books, number: int, like: Job, film: MediaRecord) -> None:
    """Write a film that was made, as the engine leaves it."""
    job_id, film_id = f"video_{number:024}", f"vid_{number:024}"
    target = Target(provider="films", model="reel", base_url="", dialect="openai_videos")
    await books.jobs.add(
        Job(
            id=job_id, kind="video", key_id=like.key_id, model="films/reel", request=REQUEST, binding=bind(target, 1, 1)
        )
    )
    await SqlMediaIndex(books.database).add(
        MediaRecord(
            **{name: getattr(film, name) for name in ("kind", "key_id", "sha256", "storage_key", "mime_type", "bytes")},
            id=film_id,
            job_id=job_id,
        )
    )
    for changes in (
        JobChanges(state="submitting"),
        JobChanges(state="storing"),
        JobChanges(state="completed", result=(film_id,)),
    ):
        await books.jobs.change(job_id, 1, changes)


async def started(home: Home, what: str) -> str:
    """Start a gateway and say how long that took, and how large it is when it has settled."""
    before = time.monotonic()
    async with home.gateway() as gate:
        up_s = time.monotonic() - before
        await asyncio.sleep(3)
        return f"{what}: up after {up_s:.1f} s; {gate.used()}"


async def test_a_restart_on_a_thousand_finished_films(tmp_path: Path) -> None:
    async with FilmProvider() as provider:
        home = Home(tmp_path, to_films(provider.url))
        print(await started(home, "empty"))
        async with home.gateway() as gate, home.books() as books:
            asked = {"model": "films/reel", "prompt": '{"polls": 0}'}
            made = (await (await gate.ask(asked, "/v1/videos")).json())["id"]
            like = await books.reached(made, "completed")
            [film] = [one for one in await SqlMediaIndex(books.database).of_job(made) if one.kind == "video"]
        async with home.books() as books:
            for number in range(1, FILMS):
                await finished(books, number, like, film)
        print(await started(home, "with a thousand"))
        async with home.gateway() as gate:
            before = time.monotonic()
            seen = await asyncio.to_thread(all_films, f"http://127.0.0.1:{gate.port}/v1")
            print(f"listed in {time.monotonic() - before:.2f} s, ten pages; {gate.used()}")
            content = await gate.get(f"/v1/videos/{seen[0].id}/content")
            assert (await content.body())[4:8] == b"ftyp"
    assert len(provider.submits) == 1
    assert len({film.id for film in seen}) == len(seen) == FILMS
    assert [film.created_at for film in seen] == sorted((film.created_at for film in seen), reverse=True)
    assert {film.status for film in seen} == {"completed"}


def all_films(url: str) -> list[openai.types.Video]:
    """List all, page by page, as OpenAI's client does."""
    with openai.OpenAI(base_url=url, api_key="none") as client:
        return list(client.videos.list(limit=100))
