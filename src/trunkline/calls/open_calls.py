"""The chat calls in flight, over all replicas: each process tells its own with its lease, and ends them when asked."""

import itertools
import secrets
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from trunkline.calls.chat import ChatCall
from trunkline.calls.inbox import Inbox
from trunkline.calls.life import Life
from trunkline.core.events import Failed
from trunkline.core.state import Lease, Leases

END_CALL = "end_call"
MOST_TOLD = 500
"""So many calls a process tells the others of, those that run longest; how many it has it tells always."""
ENDED = Failed("cancelled", "The gateway's operator ended this call.", "invalid_request_error", 409)


class OpenCall(Struct, frozen=True, kw_only=True):
    """A call in flight, as it is told. `id` is the request's, which its client may send again; `call_id` is its own."""

    id: str
    call_id: str = ""
    """Empty: an older process tells it."""
    route: str
    key_id: str
    key_name: str
    model: str
    provider: str | None
    upstream_model: str | None
    started_ms: int
    first_event_ms: int | None
    events: int
    completion_tokens: int
    attempts: int
    stream_id: str


class Told(Struct):
    """What a process says with its lease."""

    count: int = 0
    calls: list[OpenCall] = []
    traces: list[str] = []
    """Of which calls it keeps what their providers sent."""


class Replica(Struct, frozen=True):
    """A living process, and its calls as far as they are known."""

    name: str
    started_ms: int
    count: int
    calls: list[OpenCall]
    traces: list[str] = []


class Entry(Struct, eq=False):
    """A call of this process."""

    call: ChatCall
    route: str
    stream_id: str
    stop: Callable[[Failed], object]
    id: str = ""
    """Made when it is first told."""


class Ending(Struct, frozen=True):
    """Which calls a process asks the others to end: these, and those of a request that had begun by then."""

    calls: list[str]
    request_id: str = ""
    begun_ms: int = 0


class OpenCalls:
    """The calls of this process, and what others tell of theirs."""

    def __init__(self, leases: Leases, inbox: Inbox, life: Life, traces: Callable[[], list[str]] = list) -> None:
        """`traces` gives the ids of those that this process keeps."""
        self.begun_s = time.monotonic()
        """When this process began."""
        self._traces = traces
        self._leases = leases
        self._inbox = inbox
        self._life = life
        self._entries: dict[ChatCall, Entry] = {}
        self._name = f"run_{secrets.token_hex(8)}"
        self._numbers = itertools.count()
        life.tell = self._tell
        inbox.listen(END_CALL, self.__len__, self._hear)

    def __len__(self) -> int:
        """Count the calls of this process."""
        return len(self._entries)

    def enter(self, call: ChatCall, route: str, stop: Callable[[Failed], object], stream_id: str = "") -> None:
        """Note a call that begins. `stop` ends it at once with that error, if its operator wants it; before `leave`."""
        self._entries[call] = Entry(call, route, stream_id, stop)

    def leave(self, call: ChatCall) -> None:
        """Note that it is over."""
        del self._entries[call]

    async def everywhere(self) -> list[Replica]:
        """Give all living processes with their calls. Raises StorageError."""
        return [self._replica(lease) for lease in await self._leases.alive()]

    async def with_trace(self, call_id: str) -> str:
        """Name another process that keeps a trace of this call; empty: there is none. Raises StorageError."""
        return next((each.name for each in await self.everywhere() if call_id in each.traces), "")

    async def end(self, name: str) -> bool:
        """End the call of this id, or all calls of this request that run now; False: none is. Raises StorageError."""
        here = [entry for entry in self._entries.values() if name in (entry.id, entry.call.caller.request_id)]
        _stop(here)
        if any(entry.id == name for entry in here):
            return True
        others = [self._replica(lease) for lease in await self._leases.alive() if lease.holder != self._life.holder]
        named = [call.call_id for each in others for call in each.calls if name in (call.id, call.call_id)]
        untold = any(each.count > len(each.calls) for each in others)
        if named or untold:
            ending = Ending(named, name if untold else "", time.time_ns() // 1_000_000)
            await self._inbox.send(END_CALL, msgspec.json.encode(ending).decode())
        return bool(here or named or untold)

    def _hear(self, body: str) -> None:
        try:
            asked = msgspec.json.decode(body, type=Ending)
        except msgspec.DecodeError:  # an older process's, which names no call of its own
            return
        named = frozenset(asked.calls) - {""}
        _stop([entry for entry in self._entries.values() if entry.id in named or _of_request(entry, asked)])

    def _replica(self, lease: Lease) -> Replica:
        if lease.holder == self._life.holder:
            calls = [self._seen(entry) for entry in self._entries.values()]
            return Replica(lease.name, lease.started_ms, len(calls), calls)
        told = msgspec.json.decode(lease.info, type=Told)
        return Replica(lease.name, lease.started_ms, told.count, told.calls, told.traces)

    def _seen(self, entry: Entry) -> OpenCall:
        entry.id = entry.id or f"{self._name}{next(self._numbers):x}"
        call = entry.call
        target = call.target.target if call.target else None
        return OpenCall(
            id=call.caller.request_id,
            call_id=entry.id,
            route=entry.route,
            key_id=call.caller.key.id,
            key_name=call.caller.key.name,
            model=call.request.model,
            provider=target.provider if target else None,
            upstream_model=target.model if target else None,
            started_ms=call.meter.started_ms,
            first_event_ms=call.meter.first_event_ms,
            events=call.meter.chunks,
            completion_tokens=call.meter.completion_tokens,
            attempts=call.attempts,
            stream_id=entry.stream_id,
        )

    def _tell(self) -> str:
        first = [entry for entry, _ in zip(self._entries.values(), range(MOST_TOLD), strict=False)]
        return msgspec.json.encode(
            Told(len(self._entries), [self._seen(entry) for entry in first], self._traces())
        ).decode()


def _stop(entries: list[Entry]) -> None:
    for entry in entries:
        entry.stop(ENDED)


def _of_request(entry: Entry, asked: Ending) -> bool:
    return entry.call.caller.request_id == asked.request_id and entry.call.meter.started_ms <= asked.begun_ms
