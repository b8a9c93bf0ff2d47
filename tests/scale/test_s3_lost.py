"""The S3 server stopped under a real gateway, and started again: while a film is stored, fetched, and at the start."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from film_provider import FilmProvider, padding
from gateway_process import Home, film, to_films
from media_gateway import media_of, numbered
from media_samples import film as film_bytes
from replicas import several
from s3_server import S3Server

pytestmark = pytest.mark.scale
LARGE = 48 << 20
FILE = "GET /files/t1"


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FilmProvider]:
    async with FilmProvider() as provider:
        yield provider


@pytest.fixture
def home(tmp_path: Path, provider: FilmProvider, s3_endpoint: str) -> Home:
    return several(tmp_path, to_films(provider.url), s3=s3_endpoint)


async def test_a_film_waits_in_hand(home: Home, provider: FilmProvider, s3_server: S3Server) -> None:
    async with home.gateway() as gate, home.books() as books:
        with s3_server.away():
            answer = await gate.ask(film({"polls": 1}))
            await books.reached(answer.headers["x-trunkline-job-id"], "storing")
            async with asyncio.timeout(120):
                while not provider.seen[FILE]:  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.05)
            await asyncio.sleep(8)  # longer than the store's client tries by itself
            refused = await gate.get(f"/v1/videos/{answer.headers['x-trunkline-job-id']}/content")
            assert refused.status == 404  # it is in progress
        media = media_of(await numbered(answer))
        shown = await gate.get(media["outputs"][0].removeprefix("http://gateway"))
        assert await shown.body() == film_bytes(noisy=True, frames=48)
        [row] = await books.rows(1)
    assert (row.end_reason, row.cost_microusd) == ("completed", 400_000)
    assert len(provider.submits) == provider.seen[FILE] == 1


async def test_started_without_it_links_are_refused_until_it_is_back(home: Home, s3_server: S3Server) -> None:
    async with home.gateway() as first:
        answer = await first.ask(film({"polls": 0}))
        url = media_of(await numbered(answer))["outputs"][0].removeprefix("http://gateway")
    content = f"/v1/videos/{answer.headers['x-trunkline-job-id']}/content"
    with s3_server.away():
        async with home.gateway() as gate:
            for place, method in ((url, "GET"), (content, "GET"), (content, "HEAD")):
                refused = await gate.get(place, method)
                assert refused.status == 503
                if method == "GET":
                    error = (await refused.json())["error"]
                    assert (error["code"], error["type"]) == ("storage_unavailable", "server_error")
                    assert "127.0.0.1" not in error["message"]
            assert (await gate.get("/v1/videos")).status == 200
    async with home.gateway() as gate, asyncio.timeout(120):
        while (status := (await gate.get(url)).status) == 503:  # noqa: ASYNC110 - seen from outside
            await asyncio.sleep(0.5)
    assert status == 200


async def test_a_download_goes_on_where_it_was(home: Home, s3_server: S3Server) -> None:
    async with home.gateway() as gate:
        answer = await gate.ask(film({"polls": 0, "padded": LARGE}))
        url = media_of(await numbered(answer))["outputs"][0].removeprefix("http://gateway")
        reader, writer = await asyncio.open_connection("127.0.0.1", gate.port)
        writer.write(f"GET {url} HTTP/1.1\r\nhost: gateway\r\n\r\n".encode())
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200")
        begun = await reader.readexactly(1 << 20)
        with s3_server.away():
            await asyncio.sleep(1)
        rest = await reader.readexactly(len(film_bytes(noisy=True, frames=48)) + LARGE - len(begun))
        writer.close()
        await writer.wait_closed()
    assert begun + rest == film_bytes(noisy=True, frames=48) + padding(LARGE)
