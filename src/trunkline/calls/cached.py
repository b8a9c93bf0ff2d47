"""Chat calls that are answered from what was answered before: exact matches, one provider's answer for all who wait."""

import asyncio
import hashlib
from typing import Any

import msgspec
from msgspec import Raw

from trunkline.calls.chat import ChatCall
from trunkline.core import events as vocabulary
from trunkline.core.chat import ChatRequest
from trunkline.core.events import Ended, Event, UsageReported
from trunkline.core.keys import Key
from trunkline.core.money import EndReason
from trunkline.core.ports import AnswerCache
from trunkline.core.route import Route

NOT_THE_QUESTION = frozenset({"stream", "stream_options"})
"""Members that change how an answer is written, not what it is."""


class Answers:
    """Answers that are kept, and those that are on their way."""

    def __init__(self, kept: AnswerCache) -> None:
        self.kept = kept
        self.coming: dict[bytes, asyncio.Future[bytes | None]] = {}
        """By name; the result is None where there was no answer to keep."""


def name_of(key: Key, request: ChatRequest, route: Route) -> bytes:
    """Name the answer to a request: the same for the same key, members and targets, whatever the order of members."""
    digest = hashlib.sha256(key.id.encode())
    for item in route.targets:
        digest.update(f"\0{item.target.provider}:{item.target.model}".encode())
    for name in sorted(request.fields.keys() - NOT_THE_QUESTION):
        digest.update(b"\0%b\0%b" % (name.encode("utf-8", "surrogatepass"), bytes(request.fields[name])))
    return digest.digest()


class CachedCall(ChatCall):
    """A call whose answer may be there already. One of equal calls asks its targets; the others wait for its answer."""

    def __init__(self, answers: Answers, *parts: Any) -> None:
        super().__init__(*parts)
        self._answers = answers
        self._name = name_of(self.caller.key, self.request, self.route)
        self._coming: asyncio.Future[bytes | None] | None = None
        self._heard: list[Event] = []

    async def begin(self) -> list[Event]:
        """Give the kept answer whole; else begin as any call does."""
        kept = await self._answers.kept.get(self._name)
        while kept is None:
            coming = self._answers.coming.get(self._name)
            if coming is None:
                self.cache = "miss"
                self._coming = asyncio.get_running_loop().create_future()
                self._answers.coming[self._name] = self._coming
                return await super().begin()
            kept = await asyncio.shield(coming)
        self.cache = "hit"
        return self.meter.feed(read(kept))

    def _metered(self, events: list[Event]) -> list[Event]:
        events = super()._metered(events)
        if self._coming is not None:
            self._heard += events
        return events

    async def close(self, end_reason: EndReason) -> None:
        """Settle; keep the answer if it is whole, and let those have it who wait for it."""
        coming, self._coming = self._coming, None
        try:
            await super().close(end_reason)
            if coming is not None and self._heard and isinstance(self._heard[-1], Ended):
                data = write(self._heard)
                coming.set_result(data)
                await self._answers.kept.put(self._name, data)
        finally:
            if coming is not None:
                del self._answers.coming[self._name]
                if not coming.done():
                    coming.set_result(None)


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
