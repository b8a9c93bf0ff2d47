"""`POST /v1/chat/completions`, streamed and not (contract section 5)."""

from collections.abc import Awaitable

from msgspec.structs import replace

from trunkline.calls.cached import Answers, CachedCall
from trunkline.calls.chat import ChatCall, Targets
from trunkline.calls.gate import Gate
from trunkline.calls.open_calls import OpenCalls
from trunkline.calls.upstreams import Recorder, Upstreams
from trunkline.core.errors import GatewayError
from trunkline.core.money import EndReason
from trunkline.http.call_answer import collect, settled, stream
from trunkline.http.call_headers import (
    WISHES,
    next_name,
    read_headers,
    read_request_id,
    wants_cache,
    wants_resume,
    wants_trace,
)
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import respond_error
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.http.media_chat import MediaChat
from trunkline.http.text_streams import ResumableChat, idempotency_of
from trunkline.ingress.chat_size import check_size
from trunkline.ingress.completion import Collector
from trunkline.ingress.openai_chat import ChunkEncoder, parse


class ChatCompletions:
    """The endpoint's handler, behind the front door."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a chat may become
        self,
        live: Live,
        upstreams: Upstreams,
        targets: Targets,
        gate: Gate,
        resumable: ResumableChat,
        media: MediaChat,
        recorder: Recorder,
        open_calls: OpenCalls,
        answers: Answers,
    ) -> None:
        self._live = live
        self._upstreams = upstreams
        self._targets = targets
        self._gate = gate
        self._resumable = resumable
        self._media = media
        self._recorder = recorder
        self._open_calls = open_calls
        self._answers = answers

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        settings = self._live.settings
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, settings)]
        wishes = not WISHES.isdisjoint(exchange.headers)
        caller, chat, resumable = None, None, False
        try:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
            if wishes:
                caller = replace(caller, traceparent=exchange.header(b"traceparent"))
            request = parse(exchange.body)
            check_size(request, settings.messages_max, settings.images_max)
            route = self._live.table.route(request.model)
            if route.kind != "text":
                chat = await self._media.handle(exchange, caller, request, route, headers)
                if chat is None:
                    return
                route, caller = chat.route, chat.caller
            cached = caller.key.cache
            if wishes:
                if resumable := request.stream and wants_resume(exchange):
                    caller = read_headers(exchange, caller, settings)
                    idempotency = idempotency_of(caller, exchange)
                    if await self._resumable.join(exchange, caller, idempotency, headers):
                        return
                cached = not resumable and wants_cache(exchange, caller.key)
                caller = replace(caller, trace=wants_trace(exchange))
            exchange.body = b""
            admitted = await self._gate.admit(caller, request if chat is None else chat.counted(request), route)
        except GatewayError as error:
            self._gate.refused(request_id, caller, exchange.path, error)
            respond_error(exchange, error, headers)
            return
        upstreams = self._recorder.over(self._upstreams, caller, request.model)
        if chat is not None and chat.call:
            call: ChatCall = chat.call(upstreams, self._targets, request, caller, admitted)
        elif cached:
            call = CachedCall(self._answers, upstreams, self._targets, route, request, caller, admitted)
        else:
            call = ChatCall(upstreams, self._targets, route, request, caller, admitted)
        headers += admitted.headers
        if resumable:
            await self._resumable.begin(exchange, call, idempotency, headers)
            return
        await settled(exchange, call, self._open_calls, self._answer(exchange, call, headers))

    def _answer(self, exchange: Exchange, call: ChatCall, headers: list[tuple[str, str]]) -> Awaitable[EndReason]:
        request, made_id, now_s = call.request, f"chatcmpl-{next_name()}", call.meter.started_ms // 1000
        if not request.stream:
            return collect(exchange, call, Collector(request, id=made_id, created=now_s), headers)
        encoder = ChunkEncoder(request, id=made_id, created=now_s)
        if request.include_cost:
            encoder.cost_usd = call.cost_usd
        return stream(exchange, call, encoder, self._live.settings, headers)
