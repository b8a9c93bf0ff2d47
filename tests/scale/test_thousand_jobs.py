"""A gateway that starts again on a thousand finished films: how soon, how large, and all of them in the list."""

import asyncio
import time
from pathlib import Path

import openai
import pytest
from film_provider import FilmProvider
from gateway_process import Home, Process, to_films

pytestmark = pytest.mark.scale
FILMS = 1000
AT_ONCE = 50


async def make_all(gate: Process, names: asyncio.Queue[str]) -> None:
    """Ask for films until there are enough, each under a key of its own."""
    while not names.empty():
        name = names.get_nowait()
        asked = {"model": "films/reel", "prompt": '{"polls": 0}'}
        answer = await gate.ask(asked, "/v1/videos", idempotency_key=name, connection="close")
        assert answer.status == 200
        await answer.body()
        answer.leave()


async def started(home: Home, what: str) -> str:
    """Start a gateway and say how long that took, and how large it is when it has settled."""
    before = time.monotonic()
    async with home.gateway() as gate:
        up_s = time.monotonic() - before
        await asyncio.sleep(5)
        return f"{what}: up after {up_s:.1f} s; {gate.used()}"


async def test_a_restart_with_a_thousand_finished_films(tmp_path: Path) -> None:
    async with FilmProvider() as provider:
        home = Home(tmp_path, to_films(provider.url))
        print(await started(home, "empty"))
        async with home.gateway() as gate, home.books() as books:
            names: asyncio.Queue[str] = asyncio.Queue()
            for n in range(FILMS):
                names.put_nowait(f"film-{n}")
            before = time.monotonic()
            await asyncio.gather(*(make_all(gate, names) for _ in range(AT_ONCE)))
            async with asyncio.timeout(600):
                while any((await books.jobs.count()).values()):  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.5)
            print(f"{FILMS} films in {time.monotonic() - before:.0f} s; {gate.used()}")
        print(await started(home, "with a thousand"))
        async with home.gateway() as gate:
            before = time.monotonic()
            seen = await asyncio.to_thread(all_films, gate.url)
            print(f"listed in {time.monotonic() - before:.2f} s, ten pages; {gate.used()}")
            again = await gate.ask(
                {"model": "films/reel", "prompt": '{"polls": 0}'}, "/v1/videos", idempotency_key="film-7"
            )
            assert (await again.json())["status"] == "completed"
    assert len(provider.submits) == FILMS
    assert len({film.id for film in seen}) == len(seen) == FILMS
    assert [film.created_at for film in seen] == sorted((film.created_at for film in seen), reverse=True)
    assert {film.status for film in seen} == {"completed"}


def all_films(url: str) -> list[openai.types.Video]:
    """List all, page by page, as OpenAI's client does."""
    with openai.OpenAI(base_url=url, api_key="none") as client:
        return list(client.videos.list(limit=100))
