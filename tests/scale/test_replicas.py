"""Two real replicas on PostgreSQL, Valkey and S3: streams, films and stops on any of them, and one of them dying."""

import asyncio
import re
import signal
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from film_provider import FilmProvider
from gateway import Client
from gateway_process import Home, film, stopped_in, to_films
from media_gateway import behind, deltas, heard, media_of, numbered
from raw_upstream import raw_upstream
from replicas import ask_text, several
from text_upstream import said, talking, to_text

from trunkline.core.jobs import JobState

pytestmark = pytest.mark.scale
RESUME = {"x_trunkline_resume": "true"}
FILM = b"ftyp"


@pytest_asyncio.fixture
async def provider() -> AsyncIterator[FilmProvider]:
    async with FilmProvider() as provider:
        yield provider


@pytest.fixture
def home(tmp_path: Path, provider: FilmProvider, postgres_url: str, valkey_url: str, s3_endpoint: str) -> Home:
    return several(tmp_path, to_films(provider.url), postgres_url, valkey_url, s3_endpoint)


@pytest.mark.parametrize(
    ("state", "script"),
    [("queued", {"polls": 1}), ("running", {"polls": 8}), ("storing", {"polls": 1, "file_s": 6})],
)
async def test_a_peer_takes_a_film_over(
    home: Home, provider: FilmProvider, state: JobState, script: dict[str, int]
) -> None:
    async with home.gateway("a") as first, home.gateway("b") as second, home.books() as books:
        answer = await stopped_in(state, first, books, script)
        job_id, stream_id = answer.headers["x-trunkline-job-id"], answer.headers["x-trunkline-stream-id"]
        first.kill()
        killed = time.monotonic()
        begun = await heard(answer)
        following = await second.get(f"/v1/streams/{stream_id}", **behind(begun))
        await books.claimed(job_id)
        print(f"{state}: claimed {time.monotonic() - killed:.1f} s after the kill")
        events = [event for event in begun + await numbered(following) if event[0] is not None]
        assert [number for number, _ in events] == list(range(len(events)))
        shown = await second.get(media_of(events)["outputs"][0].removeprefix("http://gateway"))
        assert (await shown.body())[4:8] == FILM
        rows = await books.rows(len(provider.submits))
    assert job_id in {row.job_id for row in rows}
    assert {row.end_reason for row in rows} == {"completed"}
    assert len(provider.submits) == len(rows)


async def test_a_stopped_replica_that_wakes_up_changes_nothing(home: Home, provider: FilmProvider) -> None:
    async with home.gateway("a") as first, home.gateway("b") as second, home.books() as books:
        answer = await first.ask(film({"polls": 10}))
        job_id, stream_id = answer.headers["x-trunkline-job-id"], answer.headers["x-trunkline-stream-id"]
        await books.reached(job_id, "running")
        first.kill(signal.SIGSTOP)
        await books.claimed(job_id)
        first.kill(signal.SIGCONT)
        events = await numbered(answer)  # its client never noticed
        assert media_of(events)["outputs"]
        there = await numbered(await second.get(f"/v1/streams/{stream_id}"))
        assert [event for event in there if event[0] is not None] == [e for e in events if e[0] is not None]
        again = await numbered(await first.ask(film({"polls": 0})))
        assert media_of(again)["outputs"]
        rows = await books.rows(2)
    assert sorted(row.end_reason for row in rows) == ["completed", "completed"]
    assert len(provider.submits) == 2


async def test_killed_inside_the_submit_a_peer_does_not_repeat_it(home: Home, provider: FilmProvider) -> None:
    async with home.gateway("a") as first, home.gateway("b") as second, home.books() as books:
        answer = await first.ask(film({"polls": 1, "submit_s": 60}))
        stream_id = answer.headers["x-trunkline-stream-id"]
        async with asyncio.timeout(120):
            while not provider.submits:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)
        first.kill()
        events = await numbered(await second.get(f"/v1/streams/{stream_id}", last_event_id="0"))
        assert events[-1][1]["error"]["code"] == "submit_unknown"
        [row] = await books.rows(1)
    assert row.end_reason == "crashed"
    assert len(provider.submits) == 1


async def test_a_film_is_followed_and_stopped_on_any_replica(home: Home, provider: FilmProvider) -> None:
    async with home.gateway("a") as first, home.gateway("b") as second:
        answer = await first.ask(film({"polls": 500}))
        stream_id = answer.headers["x-trunkline-stream-id"]
        async with asyncio.timeout(120):
            while not provider.submits:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.02)
        there = await second.get(f"/v1/streams/{stream_id}")
        assert (await second.get(f"/v1/streams/{stream_id}", "DELETE")).status == 200
        ends = [(await numbered(one))[-1][1]["error"]["code"] for one in (answer, there)]
        assert ends == ["cancelled", "cancelled"]
    assert provider.tasks["t1"]["cancelled"]


async def test_text_is_taken_up_and_stopped_on_any_replica(tmp_path: Path, postgres_url: str, valkey_url: str) -> None:
    async with raw_upstream(talking(30, 0.05)) as upstream:
        home = several(tmp_path, to_text(upstream.url), postgres_url, valkey_url)
        async with home.gateway("a") as first, home.gateway("b") as second:
            answer = await first.ask(ask_text(stream=True), **RESUME)
            stream_id = answer.headers["x-trunkline-stream-id"]
            there = await second.get(f"/v1/streams/{stream_id}")
            whole = await numbered(answer)
            assert "".join(deltas(whole)) == said(30)
            assert await numbered(there) == whole
            for at in (1, 17, len(whole) - 1):
                rest = await second.get(f"/v1/streams/{stream_id}", last_event_id=str(at))
                assert await numbered(rest) == whole[at:]
            upstream.script = talking(10_000, 0.05)
            answer = await first.ask(ask_text(stream=True), **RESUME)
            stream_id = answer.headers["x-trunkline-stream-id"]
            assert (await second.get(f"/v1/streams/{stream_id}", "DELETE")).status == 200
            assert (await numbered(answer))[-1][1]["error"]["code"] == "cancelled"


@pytest.mark.parametrize("valkey", [True, False])
async def test_text_of_a_dead_replica_ends_with_an_error(
    tmp_path: Path, postgres_url: str, valkey_url: str, *, valkey: bool
) -> None:
    async with raw_upstream(talking(10_000, 0.05)) as upstream:
        home = several(tmp_path, to_text(upstream.url), postgres_url, valkey_url if valkey else "")
        async with home.gateway("a") as first, home.gateway("b") as second:
            answer = await first.ask(ask_text(stream=True), **RESUME)
            stream_id = answer.headers["x-trunkline-stream-id"]
            chunks = [await answer.chunk() for _ in range(5)]
            first.kill()
            killed = time.monotonic()
            begun = await heard(answer)
            last = max(map(int, re.findall(rb"^id: (\d+)$", b"".join(chunks), re.MULTILINE)))
            rest = await second.get(f"/v1/streams/{stream_id}", last_event_id=str(last))
            events = await numbered(await second.get(f"/v1/streams/{stream_id}"))
            print(f"text: ended {time.monotonic() - killed:.1f} s after the kill")
            assert events[-1][1]["error"]["code"] == "server_shutdown"
            assert [event for event in await numbered(rest) if event[0] is not None] == events[last:]
            numbers = [number for number, _ in events if number is not None]
            assert numbers == list(range(1, len(numbers) + 1))
            assert len(numbers) > len([event for event in begun if event[0] is not None])


OPERATOR = {"authorization": "Bearer the-admin-key"}


async def trace_of(gate: Client, name: str) -> Any:
    """A call's trace, which is kept a moment after its last event."""
    async with asyncio.timeout(120):
        while (shown := await gate.get(f"/admin/api/traces/{name}", **OPERATOR)).status != 200:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return await shown.json()


async def test_a_trace_is_shown_by_any_replica(
    tmp_path: Path, provider: FilmProvider, postgres_url: str, valkey_url: str
) -> None:
    traced = {"x_trunkline_trace": "true", "x_request_id": "traced"}
    async with raw_upstream(talking(3, 0)) as upstream:
        tables = to_films(provider.url)
        tables["providers"] |= to_text(upstream.url)["providers"]
        home = several(tmp_path, {**tables, "server": {"admin_key": "the-admin-key"}}, postgres_url, valkey_url)
        async with home.gateway("a") as first, home.gateway("b") as second:
            await (await first.ask(ask_text(stream=True), **traced)).body()
            assert (await trace_of(second, "traced"))["inspection"]["text"] == said(3)
            answer = await first.ask(film({"polls": 1}), **traced)
            await answer.body()
            job_id = answer.headers["x-trunkline-job-id"]
            told = await trace_of(second, job_id)
            assert [one["status"] for one in told["exchanges"]][:2] == [200, 200]


async def test_without_valkey_the_replica_that_keeps_a_trace_is_named(tmp_path: Path, postgres_url: str) -> None:
    async with raw_upstream(talking(3, 0)) as upstream:
        tables = {**to_text(upstream.url), "server": {"admin_key": "the-admin-key"}}
        home = several(tmp_path, tables, postgres_url)
        async with home.gateway("a") as first, home.gateway("b") as second:
            answer = await first.ask(ask_text(stream=True), x_trunkline_trace="true", x_request_id="traced")
            await answer.body()
            await trace_of(first, "traced")
            error: dict[str, str] = {}
            async with asyncio.timeout(120):
                while not error.get("param"):  # told with its lease, every second
                    error = (await (await second.get("/admin/api/traces/traced", **OPERATOR)).json())["error"]
            shown = await (await second.get("/admin/api/overview", **OPERATOR)).json()
            assert error["param"] in {replica["id"] for replica in shown["replicas"]}
            assert error["param"] in error["message"]
            missing = await (await second.get("/admin/api/traces/none", **OPERATOR)).json()
            assert missing["error"]["param"] is None
