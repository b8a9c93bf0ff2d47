"""Equal calls at one time, with the response cache: one provider's answer, read by all as it comes."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
from gateway import Answer, Gateway, chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream
from text_upstream import HEAD

from trunkline.calls.attempt import LARGE_BYTES
from trunkline.calls.cached import BEHIND, KEPT_BYTES, Flight
from trunkline.core.events import Ended, Event, TextDelta
from trunkline.core.money import LedgerRow
from trunkline.http.chat_completions import ChatCompletions
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.money import SqlMoney

pytestmark = pytest.mark.faults

USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}
ASKED = {"x_trunkline_cache": "true"}
STREAMED = chat(stream=True)


class Upstream:
    """Says `one`, `two` and so on, each when it is told to; the first call breaks off, or is refused, if it is to."""

    def __init__(self, first: str = "") -> None:
        self.first = first
        self.asked = asyncio.Queue[None]()
        self.more = asyncio.Semaphore(0)
        self.left = asyncio.Event()

    async def __call__(self, peer: Peer) -> None:
        await peer.request()
        self.asked.put_nowait(None)
        if peer.number == 0 and self.first == "refuses":
            await self.more.acquire()
            await peer.answer(b"{}", status="500 Broken")
            return
        await peer.send(HEAD)
        for text in ("one", "two", "three"):
            telling = asyncio.ensure_future(self.more.acquire())
            leaving = asyncio.ensure_future(peer.gone())
            await asyncio.wait({telling, leaving}, return_when=asyncio.FIRST_COMPLETED)
            leaving.cancel()
            if not telling.done():
                telling.cancel()
                self.left.set()
                return
            await peer.send(chunk({"content": text}))
            if peer.number == 0 and self.first == "breaks" and text == "two":
                return
        await peer.send(chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n")

    def say(self, number: int = 1) -> None:
        for _ in range(number):
            self.more.release()


@asynccontextmanager
async def asking(folder: Path, upstream: Upstream) -> AsyncIterator[Gateway]:
    async with raw_upstream(upstream) as served:
        tables = to_upstream(served.url)
        tables["models"]["*"]["price"] = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
        async with gateway(folder, tables) as gate:
            yield gate


async def begun(gate: Gateway, number: int, body: Any = STREAMED) -> list[Answer]:
    """Ask so many times, each call let in before the next."""
    answers = []
    for _ in range(number):
        before = len(gate.application._open_calls)
        answers.append(await gate.send("POST", "/v1/chat/completions", json.dumps(body).encode(), **ASKED))
        while len(gate.application._open_calls) == before:  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
    return answers


async def heard(answer: Answer, *texts: str) -> None:
    """Read until the texts have come."""
    if not answer.status:
        await answer.read_head()
    for text in texts:
        while f'"{text}"'.encode() not in await answer.chunk():
            pass


async def rows(folder: Path, number: int) -> list[LedgerRow]:
    """Wait for so many rows of the ledger."""
    database = Database.at(folder / "trunkline.db")
    while len(found := await SqlMoney(database).rows()) < number:  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.05)
    await database.close()
    return sorted(found, key=lambda row: (row.cache_hit, row.started_ms))


async def test_those_who_come_later_hear_it_as_it_comes(tmp_path: Path) -> None:
    upstream = Upstream()
    async with asking(tmp_path, upstream) as gate:
        first, early = await begun(gate, 2)
        upstream.say()
        await heard(first, "one")
        await heard(early, "one")
        late, whole = *await begun(gate, 1), *await begun(gate, 1, chat())
        await heard(late, "one")
        upstream.say()
        for answer in (late, early, first):
            await heard(answer, "two")
            assert answer.headers["x-trunkline-cache"] == ("miss" if answer is first else "hit")
        upstream.say()
        for answer in (first, early, late):
            assert (await answer.events())[-1] == "[DONE]"
        await whole.read_head()
        assert (await whole.json())["choices"][0]["message"]["content"] == "onetwothree"
        assert whole.headers["x-trunkline-cost"] == "0.000000"
        ledger = await rows(tmp_path, 4)
    assert [(row.cost_microusd, row.total, row.estimated) for row in map(Brief, ledger)] == [
        (6000, 1500, False),
        *[(0, 1500, False)] * 3,
    ]
    assert upstream.asked.qsize() == 1


class Brief:
    """A row, as these tests look at it."""

    def __init__(self, row: LedgerRow) -> None:
        self.cost_microusd = row.cost_microusd
        self.total = row.prompt_tokens + row.completion_tokens
        self.estimated = row.estimated


async def test_it_goes_on_without_the_first_as_long_as_one_reads(tmp_path: Path) -> None:
    upstream = Upstream()
    async with asking(tmp_path, upstream) as gate:
        first, second, third = await begun(gate, 3)
        upstream.say()
        for answer in (first, second, third):
            await heard(answer, "one")
        first.leave()
        second.leave()
        upstream.say(2)
        assert [event["choices"][0]["delta"].get("content") for event in (await third.events())[:2]] == ["two", "three"]
        ledger = await rows(tmp_path, 3)
        again = await gate.ask(STREAMED, **ASKED)
        assert again.headers["x-trunkline-cache"] == "hit"
    assert [(row.end_reason, row.cost_microusd, row.estimated) for row in ledger if not row.cache_hit] == [
        ("cancelled", 6000, False)
    ]
    assert sorted(row.end_reason for row in ledger if row.cache_hit) == ["cancelled", "completed"]
    assert upstream.asked.qsize() == 1


async def test_when_all_have_left_the_provider_is_left(tmp_path: Path) -> None:
    upstream = Upstream()
    async with asking(tmp_path, upstream) as gate:
        answers = await begun(gate, 3)
        upstream.say()
        for answer in answers:
            await heard(answer, "one")
        for answer in answers:
            answer.leave()
        await upstream.left.wait()
        ledger = await rows(tmp_path, 3)
        assert [row.estimated for row in ledger] == [True] * 3
        assert [bool(row.cost_microusd) for row in ledger] == [True, False, False]
        (again,) = await begun(gate, 1)
        upstream.say(3)
        assert [event for event in await body_of(again) if event == "[DONE]"]
    assert upstream.asked.qsize() == 2


async def body_of(answer: Answer) -> list[Any]:
    await answer.read_head()
    return await answer.events()


async def test_where_the_first_leaves_before_an_answer_begins_the_next_one_asks(tmp_path: Path) -> None:
    upstream = Upstream()
    async with asking(tmp_path, upstream) as gate:
        first, second, third = await begun(gate, 3)
        await upstream.asked.get()
        first.leave()
        await upstream.asked.get()
        upstream.say(3)
        uses = []
        for answer in (second, third):
            assert (await body_of(answer))[-1] == "[DONE]"
            uses.append(answer.headers["x-trunkline-cache"])
    assert sorted(uses) == ["hit", "miss"]
    assert upstream.asked.empty()


async def test_where_no_answer_begins_all_ask(tmp_path: Path) -> None:
    upstream = Upstream("refuses")
    async with asking(tmp_path, upstream) as gate:
        first, *others = await begun(gate, 4)
        upstream.say()
        await first.read_head()
        assert first.status == 502
        for _ in range(4):  # at once: none waits until another has failed, too
            await upstream.asked.get()
        upstream.say(9)
        for answer in others:
            assert (await body_of(answer))[-1] == "[DONE]"
            assert answer.headers["x-trunkline-cache"] == "miss"
        again = await gate.ask(STREAMED, **ASKED)
        assert again.headers["x-trunkline-cache"] == "hit"
        handler = cast("ChatCompletions", gate.application.protocol.routes[b"POST", b"/v1/chat/completions"])
    assert not handler._answers.coming


async def test_an_answer_that_breaks_fails_those_who_heard_it_and_nobody_else(tmp_path: Path) -> None:
    upstream = Upstream("breaks")
    async with asking(tmp_path, upstream) as gate:
        first, second = await begun(gate, 2)
        (whole,) = await begun(gate, 1, chat())
        upstream.say(2)
        for answer in (first, second):
            events = await body_of(answer)
            assert events[-1]["error"]["code"] == "upstream_incomplete"
        await upstream.asked.get()
        await upstream.asked.get()
        upstream.say(3)
        await whole.read_head()
        assert (whole.headers["x-trunkline-cache"], whole.headers["x-trunkline-attempts"]) == ("miss", "1")
        ledger = await rows(tmp_path, 3)
    assert [(row.error_code, bool(row.cost_microusd)) for row in ledger] == [
        ("upstream_incomplete", True),
        ("", True),
        ("upstream_incomplete", False),
    ]


async def test_a_slow_reader_holds_up_nobody(tmp_path: Path) -> None:
    text = "Q" * 65536

    async def long(peer: Peer) -> None:
        await peer.request()
        await peer.send(HEAD)
        for _ in range(100):
            await peer.send(chunk({"content": text}))
        await peer.send(chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n")

    async with raw_upstream(long) as served, gateway(tmp_path, to_upstream(served.url)) as gate:
        data = json.dumps(STREAMED).encode()
        slow = socket.create_connection(("127.0.0.1", gate.port))
        slow.setblocking(False)
        head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\nx-trunkline-cache: true\r\nconnection: close\r\n"
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(slow, head + b"content-length: %d\r\n\r\n" % len(data) + data)
        while not len(gate.application._open_calls):  # noqa: ASYNC110 - nothing tells
            await asyncio.sleep(0.01)
        quick = await gate.ask(STREAMED, **ASKED)
        assert quick.headers["x-trunkline-cache"] == "hit"
        assert (await quick.events())[-1] == "[DONE]"
        late = await gate.ask(STREAMED, **ASKED)
        assert (await late.events())[-1] == "[DONE]"
        said = b""
        while piece := await loop.sock_recv(slow, 1 << 20):
            said += piece
        slow.close()
        assert said.count(b"Q") == 100 * len(text)
        assert b"x-trunkline-cache: miss" in said
    assert len(served.peers) == 1


async def test_a_large_event_is_not_lost_with_the_one_who_reads_it(tmp_path: Path) -> None:
    text = "Q" * (2 * LARGE_BYTES)
    rest = asyncio.Event()

    async def large(peer: Peer) -> None:
        await peer.request()
        event = chunk({"content": text})
        await peer.send(HEAD + chunk({"content": "one"}))
        await rest.wait()
        await peer.send(event[:-9])
        await asyncio.sleep(0.1)
        await peer.send(event[-9:] + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n")

    async with raw_upstream(large) as served, gateway(tmp_path, to_upstream(served.url)) as gate:
        first, second = await begun(gate, 2)
        await heard(first, "one")
        await heard(second, "one")
        handler = cast("ChatCompletions", gate.application.protocol.routes[b"POST", b"/v1/chat/completions"])
        async with handler._targets.large:
            rest.set()
            for _ in range(2):  # each of them reads it in turn, and waits for its turn to parse
                while not handler._targets.large._waiters:  # noqa: ASYNC110 - nothing tells
                    await asyncio.sleep(0.01)
                if not first.writer.transport.is_closing():
                    first.leave()
                    while len(gate.application._open_calls) > 1:  # noqa: ASYNC110 - nothing tells
                        await asyncio.sleep(0.01)
        said = await second.body()
        assert said.count(b"Q") == len(text)
        assert said.endswith(b"data: [DONE]\n\n")
    assert len(served.peers) == 1


async def test_what_is_kept_of_an_answer_is_bounded() -> None:
    coming = [[TextDelta("x" * (KEPT_BYTES // 10))] for _ in range(20)] + [[Ended()]]

    async def fetch() -> list[Event]:
        return [*coming.pop(0)]

    flight = Flight(fetch)
    flight.add([TextDelta("first")])
    number = 0
    while events := await flight.after(number):
        number += len(events)
        assert sum(len(event.text) for event in flight.kept if isinstance(event, TextDelta)) <= KEPT_BYTES
        assert flight.open == (number <= 10)
    assert number == 22
    assert await flight.after(0) == [BEHIND]
    assert await flight.after(21) == [Ended()]


async def test_who_fetches_has_all_that_came() -> None:
    large: list[Event] = [TextDelta("x" * (KEPT_BYTES // 2)) for _ in range(5)]

    async def fetch() -> list[Event]:
        return [*large, Ended()]

    flight = Flight(fetch)
    flight.add([TextDelta("first")])
    assert await flight.after(1) == [*large, Ended()]
