"""Chat calls that are answered from what was answered before: exact matches, one provider's answer for all who ask."""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import Raw

from trunkline.calls.attempt import Take
from trunkline.calls.chat import ChatCall
from trunkline.core import events as vocabulary
from trunkline.core.chat import ChatRequest
from trunkline.core.events import Ended, Event, Failed, UsageReported
from trunkline.core.keys import Key
from trunkline.core.money import EndReason
from trunkline.core.ports import AnswerCache
from trunkline.core.route import Route

NOT_THE_QUESTION = frozenset({"stream", "stream_options"})
"""Members that change how an answer is written, not what it is."""
KEPT_BYTES = 32 * 1024 * 1024
"""As JSON. Of a longer answer that is on its way only the last part is kept, for those who read it."""
BEHIND = Failed("stream_expired", "What follows of this answer is no longer kept: it was read too slowly.", status=410)


class Flight:
    """One provider's answer on its way. Whichever of its readers needs the next events fetches them, for all."""

    def __init__(self, fetch: Callable[[], Awaitable[list[Event]]]) -> None:
        self.begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when there are first events, or never will be."""
        self.readers = 1
        self.kept: list[Event] = []
        self.last: Ended | Failed | None = None
        self.dropped = 0
        """How many events were let go of, before those that are kept."""
        self.stored = False
        self.settle: Callable[[], Awaitable[None]]
        """Settles the call that asked, when nobody reads any more; set when that call has ended."""
        self._fetch = fetch
        self._fetching = asyncio.Lock()
        self._bytes = 0

    async def after(self, number: int) -> list[Event]:
        """Give what follows the first so many events as soon as there is any; none after the last."""
        if self._none_after(number):
            async with self._fetching:
                if self._none_after(number):
                    self.add(await self._fetch())
        return self.kept[number - self.dropped :] if number >= self.dropped else [BEHIND]

    def add(self, events: list[Event]) -> None:
        """Keep what has come."""
        self.kept += events
        if events and isinstance(events[-1], Ended | Failed):
            self.last = events[-1]
        self._bytes += _size(events)
        while self._bytes > KEPT_BYTES and (older := len(self.kept) - len(events)):
            older = (older + 1) // 2
            self._bytes -= _size(self.kept[:older])
            self.dropped += older
            del self.kept[:older]

    @property
    def open(self) -> bool:
        """Whether one who comes now can read it from its first event, to its end."""
        return self.readers > 0 and self.dropped == 0 and not isinstance(self.last, Failed)

    def _none_after(self, number: int) -> bool:
        return self.last is None and number == self.dropped + len(self.kept)


class Answers:
    """Answers that are kept, and those that are on their way, by name."""

    def __init__(self, kept: AnswerCache) -> None:
        self.kept = kept
        self.coming: dict[bytes, Flight] = {}


def name_of(key: Key, request: ChatRequest, route: Route) -> bytes:
    """Name the answer to a request: the same for the same key, members and targets, whatever the order of members."""
    digest = hashlib.sha256(key.id.encode())
    for item in route.targets:
        digest.update(f"\0{item.target.provider}:{item.target.model}".encode())
    for name in sorted(request.fields.keys() - NOT_THE_QUESTION):
        digest.update(b"\0%b\0%b" % (name.encode("utf-8", "surrogatepass"), bytes(request.fields[name])))
    return digest.digest()


class CachedCall(ChatCall):
    """A call whose answer may be there already. One of equal calls asks its targets; all of them read its answer."""

    def __init__(self, answers: Answers, *parts: Any) -> None:
        super().__init__(*parts)
        self._answers = answers
        self._name = name_of(self.caller.key, self.request, self.route)
        self._flight: Flight | None = None
        self._leads = False
        self._number = 0

    async def begin(self) -> list[Event]:
        """Give the kept answer whole, or the first events of one that is on its way; else begin as any call does.

        Who has waited for an answer that failed does not wait for another to begin: failures take time.
        """
        failed = False
        while True:
            kept = await self._answers.kept.get(self._name)
            if kept is not None:
                self.cache = "hit"
                return self.meter.feed(read(kept))
            flight = self._answers.coming.get(self._name)
            if flight is None or not flight.open or (failed and not flight.begun.done()):
                return await self._lead()
            events = await self._follow(flight)
            if events:
                self.cache = "hit"
                return self.meter.feed(events)
            failed = isinstance(flight.last, Failed)

    async def read(self) -> list[Event]:
        """Give the next events, none after the last."""
        if self._flight is None:
            return []
        events = await self._flight.after(self._number)
        self._number += len(events)
        if events and isinstance(events[-1], Failed):
            self._failed = events[-1]
        return events if self._leads or not events else self.meter.feed(events)

    async def pipe(self, take: Take) -> bool:
        """Hand the next events to `take` as they come, until it says False; True: there are no more."""
        while events := await self.read():
            if not take(events):
                return isinstance(events[-1], Ended | Failed)
        return True

    async def close(self, end_reason: EndReason) -> None:
        """Settle: who asked the targets when nobody reads the answer any more. Keep the answer if it is whole."""
        flight, self._flight = self._flight, None
        if flight is None:
            await super().close(end_reason)
            return
        try:
            if self._leads:
                flight.settle = partial(super().close, end_reason)
            else:
                await super().close(end_reason)
            if flight.open and flight.last is not None and not flight.stored:
                flight.stored = True
                await self._answers.kept.put(self._name, write(flight.kept))
        finally:
            await self._leave(flight)

    async def _lead(self) -> list[Event]:
        self.cache = "miss"
        self._leads = True
        flight = self._flight = self._answers.coming[self._name] = Flight(super().read)
        events = await super().begin()
        self._number = len(events)
        flight.add(events)
        flight.begun.set_result(None)
        return events

    async def _follow(self, flight: Flight) -> list[Event]:
        """Give the first events, all of them to a call that is not streamed; none: there is no answer to follow."""
        await asyncio.shield(flight.begun)
        if not flight.open:
            return []
        flight.readers += 1
        self._flight = flight
        events = await flight.after(0)
        while not self.request.stream and (more := await flight.after(len(events))):
            events += more
            if isinstance(more[-1], Failed):
                self._flight = None
                await self._leave(flight)
                return []
        self._number = len(events)
        return events

    async def _leave(self, flight: Flight) -> None:
        flight.readers -= 1
        if not flight.readers:
            if self._answers.coming.get(self._name) is flight:
                del self._answers.coming[self._name]
            if not flight.begun.done():
                flight.last = self._failed
                flight.begun.set_result(None)
            await flight.settle()


def write(events: list[Event]) -> bytes:
    """Write events down. What a provider said of the cost is left out: it is of that call."""
    return msgspec.json.encode([(type(event).__name__, _free(event)) for event in events])


def read(data: bytes) -> list[Event]:
    """Read events that were written by `write`."""
    return [
        msgspec.json.decode(raw, type=getattr(vocabulary, name))
        for name, raw in msgspec.json.decode(data, type=list[tuple[str, Raw]])
    ]


def _free(event: Event) -> Event:
    if isinstance(event, UsageReported) and event.usage.cost_microusd is not None:
        return UsageReported(msgspec.structs.replace(event.usage, cost_microusd=None))
    return event


def _size(events: list[Event]) -> int:
    return sum(len(msgspec.json.encode(event)) for event in events)
