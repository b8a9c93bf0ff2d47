"""The images endpoints for models that answer over chat: one call, streamed or not, settled as chats are."""

from msgspec.structs import replace

from trunkline.calls.chat import Targets
from trunkline.calls.chat_images import ChatImagesCall, ImagesWriter
from trunkline.calls.chat_media import ChatMediaKit
from trunkline.calls.gate import Gate
from trunkline.calls.image_answer import ImageAnswers
from trunkline.calls.open_calls import OpenCalls
from trunkline.calls.upstreams import Recorder, Upstreams
from trunkline.core.caller import Caller
from trunkline.core.route import Route
from trunkline.http.call_answer import collect, settled, stream
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
        if asked.stream:
            told = stream(exchange, call, writer, self._live.settings, headers)
        else:
            told = collect(exchange, call, writer, headers)
        await settled(exchange, call, self._open_calls, told)
