"""Chats with models that make pictures or films (contract section 7): durable jobs, where a dialect makes them."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from trunkline.calls.chat import Targets
from trunkline.calls.chat_media import ChatMediaCall, ChatMediaKit
from trunkline.calls.gate import Admitted
from trunkline.calls.media import MediaAsk, MediaCalls
from trunkline.calls.media_answer import ChatAnswers, Telling
from trunkline.calls.upstreams import Upstreams
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Failed
from trunkline.core.jobs import Job
from trunkline.core.media import MediaRequest
from trunkline.core.route import MediaStyle, Route
from trunkline.http.call_headers import read_headers
from trunkline.http.error_response import JSON
from trunkline.http.exchange import Exchange
from trunkline.http.job_answer import JobAnswer, Told, cost_of
from trunkline.http.live import Live
from trunkline.ingress.callback import read_callback
from trunkline.ingress.media_params import read_chat
from trunkline.ingress.side_request import side_request
from trunkline.policy.key_rules import check_model


class Begin(NamedTuple):
    """A chat that is no job, before it is admitted."""

    route: Route
    caller: Caller
    call: Callable[[Upstreams, Targets, ChatRequest, Caller, Admitted], ChatMediaCall] | None = None
    """Makes the call, where the media come over chat; None: it is a call like any other."""
    asked: MediaRequest | None = None
    """What its media are to be, wherever that was said."""

    def counted(self, request: ChatRequest) -> ChatRequest:
        """Give the request as it is let in: with how many media are asked for, and how long."""
        return request if self.asked is None else replace(request, n=self.asked.n, film_s=self.asked.seconds)


class MediaChat:
    """Begins the job of a chat, and answers its client."""

    def __init__(
        self, live: Live, calls: MediaCalls, answers: ChatAnswers, answer: JobAnswer, over_chat: ChatMediaKit
    ) -> None:
        self._live = live
        self._calls = calls
        self._answers = answers
        self._answer = answer
        self._over_chat = over_chat

    async def handle(
        self, exchange: Exchange, caller: Caller, request: ChatRequest, route: Route, headers: Told
    ) -> Begin | None:
        """Answer a request, if it is one for a job.

        Else give the route by which it is a chat like any other; where the media come over chat, what begins the call.
        Raises GatewayError, before there is a job.
        """
        if side := side_request(request):
            if not route.settings.task_model:
                raise GatewayError("not_a_chat_model", side, param="model")
            return Begin(self._live.table.route(route.settings.task_model), caller)
        caller = read_headers(exchange, caller, self._live.settings)
        if route.targets[0].target.side == "chat":
            check_model(caller.key, route.name)
            read = partial(read_chat, request, route.kind)
            prepared = await self._over_chat.prepare(read, request, route, caller)
            call = partial(ChatMediaCall, self._over_chat, prepared)
            return Begin(prepared.route, caller, call, prepared.asked)
        body_hash = hashlib.sha256(exchange.body).hexdigest()
        exchange.body = b""
        job = await self._begin(caller, request, route, body_hash, exchange.path)
        request.fields.clear()  # the job has what it needs, and pictures are large
        await self._tell(exchange, job, headers, stream=request.stream)
        return None

    async def _begin(self, caller: Caller, request: ChatRequest, route: Route, body_hash: str, path: str) -> Job:
        """Begin the job, or join the one that this call repeats."""
        settings = route.settings
        style: MediaStyle = caller.media_style or caller.key.media_style or settings.media_style or "markdown"  # type: ignore[assignment]
        telling = Telling(
            stream=request.stream,
            style=style,
            progress=settings.progress,
            include_usage=request.include_usage,
            include_cost=request.include_cost,
            traceparent=caller.traceparent,
            trace=caller.trace,
        )
        ask = MediaAsk(
            read=partial(read_chat, request, route.kind),
            route=route,
            caller=caller,
            path=path,
            body_hash=body_hash,
            answer=Raw(msgspec.json.encode(telling)),
            media_style=style,
            callback_url=read_callback(request.fields),
        )
        return await self._calls.start(ask)

    async def _tell(self, exchange: Exchange, job: Job, headers: Told, *, stream: bool) -> None:
        """Stream the job's answer, or wait for it."""
        if stream:
            events = self._answers.events(job, None)
            await self._answer.follow(exchange, job, events, self._answers.keepalive(job), headers)
            return
        finish = await self._answer.wait(exchange, job, headers)
        if finish is None:
            return
        body = await self._answers.completion(finish)
        assert not isinstance(body, Failed)  # noqa: S101 - `wait` gives only what succeeded
        exchange.respond(200, [JSON, *headers, *self._answer.told(job), *cost_of(finish.job)], body)
