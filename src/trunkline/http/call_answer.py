"""Answering an exchange with a chat call: as a stream or at once, listed while it runs, settled however it ends."""

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Protocol

from trunkline.calls.chat import ChatCall
from trunkline.calls.open_calls import OpenCalls
from trunkline.core.errors import GatewayError
from trunkline.core.events import Ended, Event, Failed, Usage
from trunkline.core.money import EndReason
from trunkline.http.error_response import JSON, respond_error
from trunkline.http.event_stream import SHUTDOWN, Encoder, EventStream, Times
from trunkline.http.exchange import Exchange
from trunkline.http.live import Settings

Headers = list[tuple[str, str]]


class Whole(Protocol):
    """Collects an answer that is given at once."""

    failed: Failed | None
    usage: Usage

    def feed(self, events: list[Event]) -> None:
        """Take the next events."""

    def body(self) -> bytes:
        """Write the answer; `failed` must be None."""


async def settled(exchange: Exchange, call: ChatCall, open_calls: OpenCalls, answer: Awaitable[EndReason]) -> None:
    """Give an answer, by `stream` or `collect`, and settle its call."""
    exchange.headers = {}  # all is read, and a stream may be long
    end: EndReason = "failed"
    open_calls.enter(call, exchange.path, exchange.stop)
    try:
        end = await answer
        if call.request.stream:
            await asyncio.sleep(0)  # its client has all of it; what has come for other streams is not to wait
    finally:
        open_calls.leave(call)
        await call.close(end)


def stream(
    exchange: Exchange, call: ChatCall, encoder: Encoder, settings: Settings, headers: Headers
) -> Coroutine[None, None, EndReason]:
    """Answer with a stream."""
    times = Times(
        grace_s=settings.grace_s,
        keepalive_s=settings.keepalive_s,
        client_stall_s=call.route.settings.timeouts.client_stall_s,
    )
    return EventStream(exchange, call, encoder, times).run(headers)


async def collect(exchange: Exchange, call: ChatCall, whole: Whole, headers: Headers) -> EndReason:
    """Answer at once, when all has come."""
    try:
        events = await call.begin()
        while events:
            whole.feed(events)
            last = type(events[-1])
            if last is Ended or last is Failed:
                break
            events = await call.read()
    except GatewayError as error:
        respond_error(exchange, error, [*headers, *told(call)])
        return "failed"
    except asyncio.CancelledError:
        if exchange.stopped is not None:
            respond_error(exchange, GatewayError(exchange.stopped.code, exchange.stopped.message), headers)
            return "cancelled"
        if not exchange.interrupted:
            return "cancelled"
        respond_error(exchange, GatewayError("shutting_down", SHUTDOWN.message), headers)
        return "shutdown"
    failed = whole.failed
    if failed is not None:
        broken = GatewayError(failed.code, failed.message, status=failed.status, type=failed.type, param=failed.param)
        respond_error(exchange, broken, [*headers, *told(call)])
        return "completed"
    said = [JSON, *headers, *told(call)]
    cost_usd = call.cost_usd(whole.usage)
    if cost_usd is not None:
        said.append(("x-trunkline-cost", f"{cost_usd:.6f}"))
    exchange.respond(200, said, whole.body())
    return "completed"


def told(call: ChatCall) -> list[tuple[str, str]]:
    """Say in headers what was done: provider, real model, attempts."""
    item, headers = call.target, []
    if item is not None:
        headers = [("x-trunkline-provider", item.target.provider), ("x-trunkline-model", item.target.model)]
    if call.attempts:
        headers.append(("x-trunkline-attempts", str(call.attempts)))
    if call.fallback_from:
        headers.append(("x-trunkline-fallback-from", call.fallback_from))
    if call.cache:
        headers.append(("x-trunkline-cache", call.cache))
    return headers
