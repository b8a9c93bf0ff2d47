"""`serve --workers 2`: real processes on one address; limits that hold over all of them; deaths of any of them."""

import asyncio
import os
import signal
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, chat, chunk, to_upstream
from gateway_process import Books, Home, Process
from media_gateway import media_of, numbered
from raw_upstream import Peer, raw_upstream
from text_upstream import HEAD, Held

from trunkline.storage.sql.leases import SqlLeases

pytestmark = pytest.mark.faults
USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}


async def answers_at_once(peer: Peer) -> None:
    await peer.request()
    await peer.send(HEAD + chunk({"content": "x"}, "stop") + chunk(choices=[], usage=USAGE) + b"data: [DONE]\n\n")


@asynccontextmanager
async def two_workers(
    folder: Path, script: Callable[[Peer], Awaitable[None]], **tables: Any
) -> AsyncIterator[tuple[Home, Process]]:
    async with raw_upstream(script) as upstream:
        home = Home(folder, {**to_upstream(upstream.url, idle_s=60), **tables})
        async with home.gateway("a", "--workers", "2") as gate:
            yield home, gate


async def make_key(home: Home, *settings: str) -> str:
    return str((await home.cli("keys", "create", "--name", "k", *settings, "--json"))["key"])


async def statuses(gate: Process, key: str, number: int) -> list[int]:
    """Ask so often at the same time, each on a connection of its own."""

    async def one() -> int:
        answer = await gate.ask(chat(), authorization=f"Bearer {key}")
        await answer.body()
        answer.leave()
        return answer.status

    return await asyncio.gather(*(one() for _ in range(number)))


def pids(gate: Process) -> list[int]:
    """The workers, in the order in which they were started last."""
    pid = gate.process.pid
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


async def calls_by_worker(gate: Process, name: str = "trunkline_calls_total") -> dict[str, float]:
    page = (await (await gate.get("/metrics")).body()).decode()
    counted: dict[str, float] = {}
    for line in page.splitlines():
        if line.startswith(f"{name}{{"):
            worker = line.partition('worker="')[2].partition('"')[0]
            counted[worker] = counted.get(worker, 0) + float(line.rpartition(" ")[2])
    return counted


async def all_told(gate: Process, name: str, number: float) -> dict[str, float]:
    """Count by worker, once so many are told of: a worker that stalls is left out of a page."""
    async with asyncio.timeout(60):
        while sum((counted := await calls_by_worker(gate, name)).values()) < number:  # noqa: ASYNC110
            await asyncio.sleep(0.05)
    return counted


async def heard(answer: Answer, text: bytes) -> None:
    async with asyncio.timeout(60):
        while text not in await answer.chunk():
            pass


async def text_of(answer: Answer) -> str:
    """The rest of a stream, or as much of it as came."""
    got = b""
    try:
        while data := await answer.chunk():
            got += data
    except (asyncio.IncompleteReadError, ConnectionError):
        return "broken"
    return got.decode()


async def test_rates_are_exact_over_both(tmp_path: Path) -> None:
    async with two_workers(tmp_path, answers_at_once) as (home, gate):
        key = await make_key(home, "--rpm", "40")
        got = await statuses(gate, key, 160)
        assert (got.count(200), got.count(429)) == (40, 120)
        counted = await all_told(gate, "trunkline_calls_total", 40)
        refused = await all_told(gate, "trunkline_refused_calls_total", 120)
        assert counted.keys() | refused.keys() == {"0", "1"}
        assert (sum(counted.values()), sum(refused.values())) == (40, 120)


async def test_a_budget_is_exact_over_both(tmp_path: Path) -> None:
    price = {"models": {"m": {"targets": ["up:m"], "price": {"input_per_mtok": 0, "output_per_mtok": 100}}}}
    async with two_workers(tmp_path, answers_at_once, **price) as (home, gate):
        key = await make_key(home, "--budget-usd", "0.05")
        body = chat(max_tokens=10)

        async def one() -> int:
            answer = await gate.ask(body, authorization=f"Bearer {key}")
            await answer.body()
            answer.leave()
            return answer.status

        got = await asyncio.gather(*(one() for _ in range(400)))
        assert (got.count(200), got.count(402)) == (50, 350)
        async with home.books() as books:
            rows = await books.rows(50)
        assert [row.cost_microusd for row in rows] == [1000] * 50


async def test_a_killed_worker_takes_only_its_own_streams_and_is_started_again(tmp_path: Path) -> None:
    held = Held()
    async with two_workers(tmp_path, held) as (_, gate):
        first = pids(gate)
        streams = await asyncio.gather(*(gate.ask(chat(stream=True)) for _ in range(24)))
        for stream in streams:
            await heard(stream, b"begun")
        os.kill(first[0], signal.SIGKILL)
        reading = [asyncio.ensure_future(text_of(stream)) for stream in streams]
        async with asyncio.timeout(60):
            while len(now := pids(gate)) < 2 or now == first:  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)
        held.go_on.set()
        ends = await asyncio.gather(*reading)
        whole = [end for end in ends if end.endswith("data: [DONE]\n\n")]
        assert ends.count("broken") + len(whole) == 24
        assert whole
        assert ends.count("broken")
        assert first[1] in now
        async with asyncio.timeout(60):
            while len(await calls_by_worker(gate)) < 2:
                assert (await gate.ask(chat())).status == 200
        assert "worker 0 ended (status -9); it is started again" in gate.log.read_text()


async def test_what_killed_workers_held_of_a_budget_is_waited_for(tmp_path: Path) -> None:
    held, price = Held(), {"input_per_mtok": 0, "output_per_mtok": 100}
    models = {"m": {"targets": ["up:m"], "price": price}}
    async with two_workers(tmp_path, held, models=models) as (home, gate):
        key = await make_key(home, "--budget-usd", "0.001")  # one call's
        stream = await gate.ask(chat(max_tokens=10, stream=True), authorization=f"Bearer {key}")
        await heard(stream, b"begun")
        async with home.books() as books:
            dead = await names(books)
            for pid in pids(gate):
                os.kill(pid, signal.SIGKILL)
            assert await text_of(stream) == "broken"
            held.go_on.set()
            async with asyncio.timeout(120):
                while await names(books) & dead or len(await names(books)) < 2 or not await listens(gate):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            answer = await gate.ask(chat(max_tokens=10, stream=True), authorization=f"Bearer {key}")
            assert answer.status == 200
            assert (await text_of(answer)).endswith("data: [DONE]\n\n")
            assert len(await books.rows(1)) == 1


async def names(books: Books) -> set[str]:
    """The living processes."""
    return {lease.name for lease in await SqlLeases(books.database).alive()}


async def listens(gate: Process) -> bool:
    try:
        await gate.get("/health")
    except ConnectionError:
        return False
    return True


async def test_jobs_and_embedded_models_are_reached_from_either(tmp_path: Path) -> None:
    home = Home(tmp_path, {"providers": {"local": {"enabled": True}}})
    async with home.gateway("a", "--workers", "2") as gate:
        body = chat("local/text", max_tokens=4)
        picture = chat("local/image", stream=True)
        async with asyncio.timeout(120):
            while len(await calls_by_worker(gate)) < 2:
                assert (await gate.ask(body)).status == 200
        for _ in range(5):
            answer = await gate.ask(picture)
            assert answer.status == 200, await answer.body()
            stream_id = answer.headers["x-trunkline-stream-id"]
            events = await numbered(answer)
            [url] = media_of(events)["outputs"]
            for _ in range(3):  # on any worker
                again = await numbered(await gate.get(f"/v1/streams/{stream_id}"))
                assert [event for event in again if event[0] is not None] == [e for e in events if e[0] is not None]
                shown = await gate.get(url.removeprefix("http://gateway"))
                assert (await shown.body()).startswith(b"\x89PNG")


async def test_a_trace_is_shown_by_either(tmp_path: Path) -> None:
    admin = "k" * 32
    async with two_workers(tmp_path, answers_at_once, server={"admin_key": admin}) as (_, gate):
        late = 0
        for number in range(4):
            answer = await gate.ask(chat(), x_trunkline_trace="true", x_request_id=f"req-{number}")
            await answer.body()
            for _ in range(6):  # on any worker
                trace = f"/admin/api/traces/req-{number}"
                while (shown := await gate.get(trace, authorization=f"Bearer {admin}")).status == 404:
                    late += 1  # only where the other worker had not answered in time
                    assert late <= gate.log.read_text().count("the trace of worker")
                assert shown.status == 200
                assert (await shown.json())["request_id"] == f"req-{number}"
        missing = await gate.get("/admin/api/traces/req-none", authorization=f"Bearer {admin}")
        assert missing.status == 404


async def test_told_to_end_they_end_with_a_last_event(tmp_path: Path) -> None:
    held = Held()
    async with two_workers(tmp_path, held, server={"grace_s": 2}) as (_, gate):
        streams = await asyncio.gather(*(gate.ask(chat(stream=True)) for _ in range(8)))
        for stream in streams:
            await heard(stream, b"begun")
        workers = pids(gate)
        gate.kill(signal.SIGTERM)
        ends = [await text_of(stream) for stream in streams]
        assert all('"code":"server_shutdown"' in end for end in ends), ends
        held.go_on.set()
        assert await gate.end() == 0
        assert not any(map(alive, workers))


async def test_they_end_with_their_parent(tmp_path: Path) -> None:
    async with two_workers(tmp_path, answers_at_once) as (_, gate):
        workers = pids(gate)
        gate.kill()
        await gate.end()
        async with asyncio.timeout(60):
            while any(alive(pid) for pid in workers):  # noqa: ASYNC110 - seen from outside
                await asyncio.sleep(0.05)


def alive(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


async def test_a_hang_up_reaches_all_and_ends_none(tmp_path: Path) -> None:
    async with two_workers(tmp_path, answers_at_once) as (_, gate):
        workers = pids(gate)
        gate.kill(signal.SIGHUP)
        async with asyncio.timeout(60):
            while gate.log.read_text().count("the configuration was read again") < 2:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.05)
        assert pids(gate) == workers


async def test_an_address_that_is_taken_and_a_missing_admin_key_are_told_once(tmp_path: Path) -> None:
    async with two_workers(tmp_path, answers_at_once) as (home, gate):
        taken = f"127.0.0.1:{gate.port}"
        for listen, told in (
            (taken, f"cannot listen on {taken}: Address already in use; --listen names another"),
            ("0.0.0.0:0", "an admin key is needed"),
        ):
            serve = (sys.executable, "-m", "trunkline", "serve", "--workers", "2", "--listen", listen)
            failing = await asyncio.create_subprocess_exec(*serve, cwd=tmp_path, env=home.environ, stderr=PIPE)
            _, said = await failing.communicate()
            assert failing.returncode == 1
            assert (said.count(told.encode()), said.count(b"\n")) == (1, 1), said
