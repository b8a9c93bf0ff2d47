"""Streams of text that outlive their clients (`X-Trunkline-Resume: true`): how they begin (contract section 8)."""

import asyncio
import hashlib
import secrets

from trunkline.calls.chat import ChatCall
from trunkline.calls.streams import Pump, TextStreams, keepalive_of
from trunkline.core.caller import Caller
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency, StoredStream
from trunkline.http.error_response import respond_error
from trunkline.http.event_stream import SHUTDOWN
from trunkline.http.exchange import Exchange
from trunkline.http.followed_stream import FollowedStream
from trunkline.http.live import Live

Told = list[tuple[str, str]]


class ResumableChat:
    """Begins such streams for the chat endpoint, and writes them to whoever began them."""

    def __init__(self, live: Live, streams: TextStreams) -> None:
        self._live = live
        self._streams = streams

    async def join(self, exchange: Exchange, caller: Caller, idempotency: Idempotency | None, headers: Told) -> bool:
        """Answer a call that repeats another with that one's stream, from its first event; False: it repeats none.

        Raises GatewayError `idempotency_conflict`.
        """
        former = await self._streams.joined(idempotency)
        if former is not None:
            await self._follow(exchange, caller, former, headers)
        return former is not None

    async def begin(self, exchange: Exchange, call: ChatCall, idempotency: Idempotency | None, headers: Told) -> None:
        """Begin a stream and write it to its client; the call is closed when it ends, with the client or without."""
        stream = StoredStream(
            id=idempotency.stream_id if idempotency else new_stream_id(),
            key_id=call.caller.key.id,
            route=exchange.path,
            model=call.request.model,
        )
        try:
            begun = await self._streams.begin(stream, call, idempotency)
        except GatewayError as error:
            respond_error(exchange, error, headers)
            return
        except asyncio.CancelledError:
            if call.caller.on_disconnect == "cancel":
                await self._streams.stop(stream.id)
            raise
        if isinstance(begun, StoredStream):  # another call under the same idempotency key was quicker
            await self._follow(exchange, call.caller, begun, headers)
        elif await self._answers(exchange, begun, call.caller, headers):
            own = call.target.target if call.target else None
            told = [("x-trunkline-provider", own.provider), ("x-trunkline-model", own.model)] if own else []
            await self._follow(exchange, call.caller, begun.stream, [*headers, *told])

    async def _answers(self, exchange: Exchange, pump: Pump, caller: Caller, headers: Told) -> bool:
        """Wait a while for the first event; a failure before it is a status."""
        try:
            async with asyncio.timeout(self._live.settings.grace_s):
                await asyncio.shield(pump.begun)
        except TimeoutError:
            return True
        except GatewayError as error:
            respond_error(exchange, error, headers)
            return False
        except asyncio.CancelledError:
            if caller.on_disconnect == "cancel":
                await self._streams.stop(pump.stream.id)
            if not exchange.interrupted:
                raise
            respond_error(exchange, GatewayError("shutting_down", SHUTDOWN.message), headers)
            return False
        return True

    async def _follow(self, exchange: Exchange, caller: Caller, stream: StoredStream, headers: Told) -> None:
        settings = self._live.settings
        headers = [*headers, ("x-trunkline-stream-id", stream.id)]
        end = await FollowedStream(exchange, keepalive_of(stream), settings.keepalive_s).run(
            headers, self._streams.follow(stream.id, 0)
        )
        if end == "cancelled" and caller.on_disconnect == "cancel":
            await self._streams.stop(stream.id)


def idempotency_of(caller: Caller, exchange: Exchange) -> Idempotency | None:
    """Give what an `Idempotency-Key` says of a stream that is to begin; None: there is none."""
    if not caller.idempotency_key:
        return None
    return Idempotency(
        key_id=caller.key.id,
        route=exchange.path,
        name=caller.idempotency_key,
        body_hash=hashlib.sha256(exchange.body).hexdigest(),
        stream_id=new_stream_id(),
    )


def new_stream_id() -> str:
    """Name a stream."""
    return f"strm_{secrets.token_hex(12)}"
