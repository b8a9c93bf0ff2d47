"""`POST /v1/images/generations` and `/v1/images/edits`, streamed and not: durable jobs, or calls, as in chats."""

import msgspec
from msgspec import Raw

from trunkline.calls.gate import Gate
from trunkline.calls.image_answer import ImageAnswers
from trunkline.calls.media import MediaAsk, MediaCalls
from trunkline.calls.media_answer import Telling
from trunkline.core.caller import Caller
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Job
from trunkline.core.route import Route
from trunkline.http.call_headers import read_headers, read_request_id
from trunkline.http.chat_images import ChatImages
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import JSON, respond_error
from trunkline.http.exchange import Exchange
from trunkline.http.job_answer import JobAnswer, Told, cost_of
from trunkline.http.live import Live
from trunkline.http.media_body import media_route, read_media_body
from trunkline.ingress.openai_images import ImagesAsk, ImagesForm, parse_images

FORMS: dict[str, ImagesForm] = {"/v1/images/generations": "images", "/v1/images/edits": "edits"}
FILES = ("image", "mask")


class Images:
    """The handler of both endpoints, behind the front door."""

    def __init__(  # noqa: PLR0913, PLR0917 - a job's parts, and what answers without one
        self,
        live: Live,
        gate: Gate,
        calls: MediaCalls,
        answers: ImageAnswers,
        answer: JobAnswer,
        over_chat: ChatImages,
    ) -> None:
        self._live = live
        self._gate = gate
        self._calls = calls
        self._answers = answers
        self._answer = answer
        self._over_chat = over_chat

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        caller = None
        try:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
            caller = read_headers(exchange, caller, self._live.settings)
            body = read_media_body(exchange, FILES)
            form = FORMS[exchange.path]
            asked = parse_images(body.fields, body.files, form)
            route = media_route(self._live.table.route(asked.model), "image")
            if route.targets[0].target.side == "chat":
                await self._over_chat.answer(exchange, caller, asked, form, route, headers)
                return
            job = await self._begin(caller, asked, route, exchange.path, body.hash)
        except GatewayError as error:
            self._gate.refused(request_id, caller, exchange.path, error)
            respond_error(exchange, error, headers)
            return
        stream = asked.stream
        del body, asked  # the job has what it needs, and pictures are large
        await self._tell(exchange, job, headers, stream=stream)

    async def _begin(self, caller: Caller, asked: ImagesAsk, route: Route, path: str, body_hash: str) -> Job:
        """Begin the job, or join the one that this call repeats."""
        telling = Telling(
            form=FORMS[path],
            stream=asked.stream,
            given_as=asked.given_as,
            traceparent=caller.traceparent,
            trace=caller.trace,
        )
        ask = MediaAsk(
            read=asked.read,
            route=route,
            caller=caller,
            path=path,
            body_hash=body_hash,
            answer=Raw(msgspec.json.encode(telling)),
            media_style="",
            picture="image",
            callback_url=asked.callback_url,
        )
        return await self._calls.start(ask)

    async def _tell(self, exchange: Exchange, job: Job, headers: Told, *, stream: bool) -> None:
        """Stream the pictures, or wait for them."""
        if stream:
            events = self._answers.events(job, None)
            await self._answer.follow(exchange, job, events, self._answers.keepalive(job), headers)
            return
        finish = await self._answer.wait(exchange, job, headers)
        if finish is not None:
            body = await self._answers.body(finish)
            exchange.respond(200, [JSON, *headers, *self._answer.told(job), *cost_of(finish.job)], body)
