"""Answers of text models that outlive their clients: written to the event log, followed from anywhere."""

import asyncio
import logging
import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from trunkline.calls.chat import ChatCall
from trunkline.calls.life import Life
from trunkline.calls.open_calls import OpenCalls
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Event, Failed
from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.core.money import EndReason
from trunkline.core.ports import EventLog
from trunkline.core.state import StaleOwnerError, StorageError, StreamStore
from trunkline.ingress.openai_chat import ChunkEncoder, error_object

LOOK_S = 1.0
AGAIN_S = 0.5
CLAIM_S = 0.2
"""How long this process's own claim of a stream may be on its way to who writes it."""
PATIENCE_S = 60.0
"""How long an answer waits for the store of its events before it is given up."""
LAST_S = 2.0
"""How long a stream's end waits for the store when the process goes down."""
ORPHANS_EVERY = 5
STOPPED = Failed("cancelled", "The stream was stopped.", "invalid_request_error")
SHUTDOWN = Failed("server_shutdown", "The gateway is going down; ask again.", "server_error")
ORPHANED = Failed("server_shutdown", "The gateway's process that wrote this answer is gone; ask again.", "server_error")
UNWRITABLE = Failed("storage_unavailable", "The answer could not be kept; ask again.", "server_error")
log = logging.getLogger(__name__)


class Pump(Struct, eq=False):
    """One answer on its way into the log. `begun` is done at its first event, or fails with why there is none."""

    stream: StoredStream
    opened: asyncio.Future[StoredStream] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    """The stream as it is stored, or the one that came first."""
    begun: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())
    task: asyncio.Task[None] | None = None
    stopped: bool = False
    """By who asked for it, not by the server."""
    ending: bool = False
    """There is nothing left to stop."""


class TextStreams:
    """The streams that this process writes; `run` owns them, and ends those of dead processes."""

    def __init__(self, log: EventLog, store: StreamStore, life: Life, open_calls: OpenCalls) -> None:
        self._log = log
        self._store = store
        self._life = life
        self._open_calls = open_calls
        self._group: asyncio.TaskGroup | None = None
        self._pumps: dict[str, Pump] = {}

    async def joined(self, idempotency: Idempotency | None) -> StoredStream | None:
        """Give the stream that a repeated call stands for. Raises GatewayError `idempotency_conflict`."""
        return await self._store.joined(idempotency) if idempotency is not None else None

    async def begin(self, stream: StoredStream, call: ChatCall, idempotency: Idempotency | None) -> Pump | StoredStream:
        """Store a stream and write the call's answer into it; or give the stream that came first. Takes the call over.

        Whoever does not wait so long has begun it all the same. Raises GatewayError `shutting_down`,
        `idempotency_conflict`.
        """
        if self._group is None:
            await call.close("failed")
            raise GatewayError("shutting_down", SHUTDOWN.message)
        pump = self._pumps[stream.id] = Pump(replace(stream, owner=self._life.holder))
        pump.task = self._group.create_task(self._own(pump, call, idempotency))
        stored = await asyncio.shield(pump.opened)
        return pump if stored.id == stream.id else stored

    async def stop(self, stream_id: str) -> None:
        """Stop the work, wherever it is done."""
        await self._store.cancel(stream_id)
        self._stop(stream_id)

    def follow(self, stream_id: str, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """Give the events after this number as they come; raises as `EventLog.follow`."""
        return self._log.follow(stream_id, after)

    async def run(self) -> None:
        """Own the pumps until cancelled; then every stream ends with an error event."""
        looks = 0
        try:
            async with asyncio.TaskGroup() as self._group:
                while True:
                    await asyncio.sleep(LOOK_S)
                    looks += 1
                    try:
                        await self._look(orphans=looks % ORPHANS_EVERY == 0)
                    except StorageError as error:
                        log.warning("streams wait for the database: %s", error)
        finally:
            self._group = None

    async def _look(self, *, orphans: bool) -> None:
        if self._pumps:
            for stream_id in await self._store.to_cancel(self._life.holder):
                self._stop(stream_id)
        if orphans:
            for stream in await self._store.orphans():
                claimed = await self._log.claim(stream.id, self._life.holder)
                if claimed is not None and (pump := self._pumps.get(stream.id)) is not None:
                    pump.stream = claimed  # our own, of a life that was lost meanwhile
                elif claimed is not None:
                    await self._end(Pump(claimed), ORPHANED)

    def _stop(self, stream_id: str) -> None:
        pump = self._pumps.get(stream_id)
        if pump is not None and pump.task is not None and not (pump.stopped or pump.ending):
            pump.stopped = True
            if pump.opened.done():
                pump.task.cancel()

    async def _own(self, pump: Pump, call: ChatCall, idempotency: Idempotency | None) -> None:
        """Bring one stream to its end; whatever becomes of it, the others go on."""
        try:
            await self._open(pump, call, idempotency)
        except Exception:
            log.exception("stream %s broke at its end", pump.stream.id)

    async def _open(self, pump: Pump, call: ChatCall, idempotency: Idempotency | None) -> None:
        """Open a stream, and write the call's answer into it unless another stream came first."""
        new, stream_id = False, pump.stream.id
        end: EndReason = "failed"
        try:
            stored, new = await self._log.open(pump.stream, idempotency)
        except asyncio.CancelledError:
            pump.opened.set_exception(GatewayError("shutting_down", SHUTDOWN.message))
            raise
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            pump.opened.set_exception(error)
        else:
            end, pump.stream = "cancelled", stored if new else pump.stream
            pump.opened.set_result(stored)
        finally:
            if not new:
                pump.opened.exception()  # looked at: perhaps nobody waits for it
                del self._pumps[stream_id]
                await call.close(end)
        if new:
            await self._pump(pump, call)

    async def _pump(self, pump: Pump, call: ChatCall) -> None:
        """Write one answer to its end, whatever that is; settle the call."""
        end: EndReason = "failed"
        failed: Failed | None = UNWRITABLE
        within_s = math.inf
        stream_id = pump.stream.id
        self._open_calls.enter(call, pump.stream.route, lambda _failed: self._stop(stream_id), stream_id)
        try:
            end, failed = ("cancelled", STOPPED) if pump.stopped else await self._write(pump, call)
        except asyncio.CancelledError:
            end, failed = ("cancelled", STOPPED) if pump.stopped else ("shutdown", SHUTDOWN)
            if not pump.stopped:
                within_s = LAST_S
                raise
        except StaleOwnerError:
            log.warning("stream %s was taken over by another process, or is no longer kept", pump.stream.id)
        except StorageError as error:
            log.warning("stream %s cannot be written: %s", pump.stream.id, error)
        except Exception:
            log.exception("stream %s broke", pump.stream.id)
            failed = Failed("internal_error", "The gateway made a mistake; its log says which.", "server_error")
        finally:
            pump.ending = True
            self._open_calls.leave(call)
            try:
                await call.close(end)
            finally:
                if not pump.begun.done():
                    tell = failed or UNWRITABLE
                    pump.begun.set_exception(GatewayError(tell.code, tell.message, type=tell.type))
                    pump.begun.exception()
                await self._end(pump, failed, within_s)
                del self._pumps[pump.stream.id]

    async def _write(self, pump: Pump, call: ChatCall) -> tuple[EndReason, Failed | None]:
        """Write the answer's events. Gives how the call ended, and the error event that its stream is to end with."""
        encoder = encoder_of(pump.stream, call.request)
        if call.request.include_cost:
            encoder.cost_usd = call.cost_usd
        await self._append(pump, [encoder.role()])
        try:
            events = await call.begin()
        except GatewayError as error:
            pump.begun.set_exception(error)
            pump.begun.exception()  # looked at: perhaps nobody waits for it
            return "failed", Failed(error.code, error.message, error.type, error.status, error.param)
        pump.begun.set_result(None)
        while events:
            if isinstance(events[-1], Failed):
                await self._append(pump, [*sse_events(encoder, events[:-1])])
                return "completed", events[-1]
            await self._append(pump, [*sse_events(encoder, events)])
            events = await call.read()
        return "completed", None

    async def _append(self, pump: Pump, events: list[bytes]) -> None:
        """Add to a stream. The answer waits while its store is away, though not for ever."""
        if events:
            await self._owning(pump, lambda mine: self._log.append(mine.id, mine.generation, events), PATIENCE_S)

    async def _end(self, pump: Pump, failed: Failed | None, within_s: float = 0.0) -> None:
        """End a stream, with an error event if it failed, as soon as its store allows."""
        try:
            if failed is not None:
                event = b"data: " + error_object(failed) + b"\n\n"
                with suppress(StaleOwnerError):  # by another process, or its events are lost: it can be ended yet
                    await self._owning(pump, lambda mine: self._log.append(mine.id, mine.generation, [event]), within_s)
            state: Literal["ended", "failed"] = "failed" if failed else "ended"
            await self._owning(pump, lambda mine: self._log.end(mine.id, mine.generation, state), within_s)
        except (StaleOwnerError, StorageError) as error:
            log.warning("stream %s could not be ended: %s", pump.stream.id, error)

    async def _owning(self, pump: Pump, work: Callable[[StoredStream], Awaitable[object]], within_s: float) -> None:
        """Do what only a stream's owner may; once more if that is this process, in a life that has just begun."""
        while True:
            mine = pump.stream
            try:
                return await patient(partial(work, mine), within_s)
            except StaleOwnerError:
                await asyncio.sleep(CLAIM_S)
                if pump.stream is mine:
                    raise


async def patient(work: Callable[[], Awaitable[object]], within_s: float) -> None:
    """Do what needs a store, again and again for so long while it is away. Raises StorageError then."""
    until = time.monotonic() + within_s
    while True:
        try:
            await work()
        except StorageError:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(AGAIN_S)
        else:
            return


def sse_events(encoder: ChunkEncoder, events: list[Event]) -> Iterator[bytes]:
    """Write events as single events of the client's stream, each `data: …` and an empty line."""
    for block in encoder.encode(events):
        yield from (event + b"\n\n" for event in block.split(b"\n\n")[:-1])


def encoder_of(stream: StoredStream, request: ChatRequest) -> ChunkEncoder:
    """Make the encoder of a stream: whoever writes a chunk of it gives the same id, time and model."""
    name = stream.id.partition("_")[2]
    return ChunkEncoder(request, id=f"chatcmpl-{name}", created=stream.created_ms // 1000)


def keepalive_of(stream: StoredStream) -> bytes:
    """Write a chunk with an empty delta, as fits into the stream."""
    encoder = encoder_of(stream, ChatRequest(stream.model, {}))
    encoder.role()
    return encoder.progress()
