"""How a stream is written: a large answer leaves the other streams their turns."""

import asyncio
from collections.abc import Iterator
from typing import Any, cast

from turns import Turns

from trunkline.core.events import Ended, Event, TextDelta
from trunkline.http.event_stream import TURN_BYTES, EventStream, Times
from trunkline.http.exchange import Exchange
from trunkline.ingress.openai_chat import KEEPALIVE

PIECE = b"x" * 65_536
PIECES = 40


class Client:
    """A client's connection that takes all there is at once: see `http.exchange.Wire`."""

    keep_alive, http_1_0, peer = True, False, ""
    waiting: asyncio.Future[None] | None = None

    def __init__(self) -> None:
        self.turns = Turns()
        self.writes: list[bytes] = []
        self.finished = False

    def send(self, data: bytes) -> None:
        self.writes.append(data)
        self.turns.take(len(data))

    def done(self, _exchange: Exchange) -> None:
        self.finished = True

    def cut(self) -> None:
        raise AssertionError


class Call:
    """Says something large, in its first events or later."""

    target, attempts, fallback_from, cache = None, 1, "", ""

    def __init__(self, *, at_once: bool) -> None:
        self.at_once = at_once

    async def begin(self) -> list[Event]:
        return [TextDelta("picture")] if self.at_once else [TextDelta("word")]

    async def pipe(self, take: Any) -> bool:
        if self.at_once or take([TextDelta("picture")]):
            take([Ended()])
            return True
        self.at_once = True
        return False


class Encoder:
    def encode(self, events: list[Event]) -> Iterator[bytes]:
        for event in events:
            if isinstance(event, TextDelta):
                yield from [PIECE] * PIECES if event.text == "picture" else [b"word"]
            else:
                yield b"[DONE]"

    def text(self, _text: str) -> None:
        return None


async def written(*, at_once: bool) -> Client:
    client = Client()
    times = Times(grace_s=60, keepalive_s=60, client_stall_s=60)
    exchange = Exchange(client, "POST", "/v1/chat/completions", b"", {})
    exchange.asked_at = asyncio.get_running_loop().time()
    stream = EventStream(exchange, cast("Any", Call(at_once=at_once)), Encoder(), times)
    assert await stream.run(()) == "completed"
    assert client.finished
    return client


class Unanswered(Call):
    """Says nothing before its client has been told that it will be answered."""

    def __init__(self, client: Client) -> None:
        super().__init__(at_once=False)
        self.client = client

    async def begin(self) -> list[Event]:
        async with asyncio.timeout(30):
            while not self.client.writes:  # noqa: ASYNC110 - a list has no event
                await asyncio.sleep(0.01)
        return [TextDelta("word")]


async def test_what_was_waited_for_before_the_call_is_of_its_grace_period() -> None:
    client = Client()
    exchange = Exchange(client, "POST", "/v1/chat/completions", b"", {})
    exchange.asked_at = asyncio.get_running_loop().time() - 61
    times = Times(grace_s=60, keepalive_s=60, client_stall_s=60)
    stream = EventStream(exchange, cast("Any", Unanswered(client)), Encoder(), times)
    assert await stream.run(()) == "completed"
    assert client.writes[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert KEEPALIVE in client.writes[0]


async def test_a_picture_goes_out_over_many_turns() -> None:
    for at_once in (True, False):
        client = await written(at_once=at_once)
        assert sum(client.turns.taken.values()) >= PIECES * len(PIECE)
        assert max(client.turns.taken.values()) <= 2 * TURN_BYTES + len(PIECE)


async def test_head_and_end_go_out_with_the_first_and_the_last_piece() -> None:
    client = await written(at_once=False)
    assert len(client.writes) == 1 + PIECES + 1
    assert client.writes[0].startswith(b"HTTP/1.1 200 OK\r\n")
    assert client.writes[0].endswith(b"\r\n\r\n4\r\nword\r\n")
    assert client.writes[-1] == b"6\r\n[DONE]\r\n0\r\n\r\n"
