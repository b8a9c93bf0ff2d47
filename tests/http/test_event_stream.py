"""How a stream is written: a large answer leaves the other streams their turns."""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

from turns import Turns

from trunkline.core.events import Ended, Event, TextDelta
from trunkline.http.event_stream import TURN_BYTES, EventStream, Times

PIECE = b"x" * 65_536
PIECES = 40


class Client(SimpleNamespace):
    """A client that takes all there is at once."""

    responded = streaming = gone = finished = False

    def __init__(self, turns: Turns) -> None:
        super().__init__(turns=turns)

    def start(self, _headers: Any) -> None:
        self.responded = self.streaming = True

    def write(self, data: bytes) -> bool:
        self.turns.take(len(data))
        return True

    def writable(self) -> None:
        return None

    def finish(self) -> None:
        self.finished = True


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

    def text(self, _text: str) -> None:
        return None


async def written(*, at_once: bool) -> Client:
    client = Client(Turns())
    times = Times(grace_s=60, keepalive_s=60, client_stall_s=60)
    stream = EventStream(cast("Any", client), cast("Any", Call(at_once=at_once)), Encoder(), times)
    assert await stream.run(()) == "completed"
    assert client.finished
    return client


async def test_a_picture_goes_out_over_many_turns() -> None:
    for at_once in (True, False):
        client = await written(at_once=at_once)
        assert sum(client.turns.taken.values()) >= PIECES * len(PIECE)
        assert max(client.turns.taken.values()) <= 2 * TURN_BYTES + len(PIECE)
