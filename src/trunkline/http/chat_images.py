"""The images endpoints for models that answer over chat: one call, streamed or not, settled as chats are."""

import asyncio
from functools import partial

from msgspec.structs import replace

from trunkline.calls.chat import Targets
from trunkline.calls.chat_images import ChatImagesCall, ImagesWriter
from trunkline.calls.chat_media import ChatMediaKit
from trunkline.calls.gate import Gate
from trunkline.calls.image_answer import ImageAnswers
from trunkline.calls.open_calls import ENDED, OpenCalls
from trunkline.calls.upstreams import Recorder, Upstreams
from trunkline.core.caller import Caller
from trunkline.core.errors import GatewayError
from trunkline.core.money import EndReason
from trunkline.core.route import Route
from trunkline.http.chat_completions import told
from trunkline.http.error_response import JSON, respond_error
from trunkline.http.event_stream import SHUTDOWN, EventStream, Times
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.ingress.openai_images import ImagesAsk, ImagesForm
from trunkline.ingress.picture_chat import chat_of
from trunkline.policy.key_rules import check_model

Headers = list[tuple[str, str]]


class ChatImages:
    """Answers such requests."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a chat is made of
        self,
        live: Live,
        upstreams: Upstreams,
        targets: Targets,
        gate: Gate,
        recorder: Recorder,
        open_calls: OpenCalls,
        kit: ChatMediaKit,
        answers: ImageAnswers,
    ) -> None:
        self._live = live
        self._upstreams = upstreams
        self._targets = targets
        self._gate = gate
        self._recorder = recorder
        self._open_calls = open_calls
        self._kit = kit
        self._answers = answers

    async def answer(  # noqa: PLR0913, PLR0917 - a request, as it was read
        self, exchange: Exchange, caller: Caller, asked: ImagesAsk, form: ImagesForm, route: Route, headers: Headers
    ) -> None:
        """Answer one request. Raises GatewayError before the provider is asked."""
        check_model(caller.key, route.name)
        prepared = await self._kit.prepare(asked.read, chat_of(asked), route, caller)
        request = replace(chat_of(asked), n=prepared.asked.n)
        admitted = await self._gate.admit(caller, request, prepared.route)
        upstreams = self._recorder.over(self._upstreams, caller, request.model)
        parts = (upstreams, self._targets, request, caller, admitted)
        call = ChatImagesCall(self._kit, prepared, self._answers, asked.given_as, *parts)
        call.meter.path = exchange.path
        writer = ImagesWriter(call, form)
        headers += admitted.headers
        end: EndReason = "failed"
        entry = self._open_calls.enter(call, exchange.path, partial(exchange.stop, ENDED))
        try:
            end = await (self._stream if asked.stream else self._collect)(exchange, call, writer, headers)
        finally:
            self._open_calls.leave(entry)
            await call.close(end)

    async def _stream(
        self, exchange: Exchange, call: ChatImagesCall, writer: ImagesWriter, headers: Headers
    ) -> EndReason:
        settings = self._live.settings
        times = Times(
            grace_s=settings.grace_s,
            keepalive_s=settings.keepalive_s,
            client_stall_s=call.route.settings.timeouts.client_stall_s,
        )
        return await EventStream(exchange, call, writer, times).run(headers)

    async def _collect(
        self, exchange: Exchange, call: ChatImagesCall, writer: ImagesWriter, headers: Headers
    ) -> EndReason:
        try:
            events = await call.begin()
            while events:
                list(writer.encode(events))
                events = await call.read()
        except GatewayError as error:
            respond_error(exchange, error, [*headers, *told(call)])
            return "failed"
        except asyncio.CancelledError:
            if exchange.stopped is not None:
                respond_error(exchange, GatewayError(exchange.stopped.code, exchange.stopped.message), headers)
            elif exchange.interrupted:
                respond_error(exchange, GatewayError("shutting_down", SHUTDOWN.message), headers)
                return "shutdown"
            return "cancelled"
        failed = writer.failed
        if failed is not None:
            broken = GatewayError(
                failed.code, failed.message, status=failed.status, type=failed.type, param=failed.param
            )
            respond_error(exchange, broken, [*headers, *told(call)])
            return "completed"
        cost_usd = call.cost_usd(writer.usage)
        cost = [] if cost_usd is None else [("x-trunkline-cost", f"{cost_usd:.6f}")]
        exchange.respond(200, [JSON, *headers, *told(call), *cost], writer.body())
        return "completed"
