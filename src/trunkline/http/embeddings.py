"""`POST /v1/embeddings`: forwarded to OpenAI-compatible targets."""

import asyncio

import msgspec
from msgspec import Raw

from trunkline.calls.chat import Targets
from trunkline.calls.gate import Gate
from trunkline.calls.upstreams import Upstreams
from trunkline.core.chat import ChatRequest, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.ports import HttpError
from trunkline.core.route import Route
from trunkline.http.call_headers import read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import JSON, respond_error
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.ingress.request_body import read_fields, typed
from trunkline.routing.fallback import judge
from trunkline.routing.order import Attempt, following
from trunkline.wire.error_body import read_error_body

ANSWER_BYTES = 64 * 1024 * 1024


class Embeddings:
    """The endpoint's handler, behind the front door."""

    def __init__(self, live: Live, upstreams: Upstreams, targets: Targets, gate: Gate) -> None:
        self._live = live
        self._upstreams = upstreams
        self._targets = targets
        self._gate = gate

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        try:
            await self._gate.caller(exchange.header(b"authorization"), request_id)
            request = _parse(exchange.body)
            asked, body = await self._forward(self._live.table.route(request.model), request)
        except GatewayError as error:
            respond_error(exchange, error, headers)
            return
        headers += [
            ("x-trunkline-provider", asked.item.target.provider),
            ("x-trunkline-model", asked.item.target.model),
        ]
        exchange.respond(200, [JSON, *headers], body)

    async def _forward(self, route: Route, request: ChatRequest) -> tuple[Attempt, bytes]:
        """Ask the route's targets in turn. Raises GatewayError when none answers."""
        left = self._targets.plan(route)
        while True:
            asked = left.pop(0)
            try:
                return asked, await self._ask(asked, route, request)
            except GatewayError as error:
                left = following(left, asked, judge(error.code, error.status))
                if not left:
                    raise

    async def _ask(self, asked: Attempt, route: Route, request: ChatRequest) -> bytes:
        target = asked.item.target
        fields = {**request.fields, "model": Raw(msgspec.json.encode(target.model))}
        times = route.settings.timeouts
        try:
            async with asyncio.timeout(times.first_event_s):
                upstream = UpstreamRequest("/embeddings", msgspec.json.encode(fields))
                response = await self._upstreams.open(asked, upstream, connect_s=times.connect_s)
                try:
                    body = await response.body(ANSWER_BYTES)
                finally:
                    await response.aclose()
        except TimeoutError:
            told = f"the provider did not answer within {times.first_event_s:g} s"
            raise GatewayError("upstream_timeout", told) from None
        except HttpError as error:
            raise GatewayError("upstream_unavailable", f"the provider could not be reached: {error}") from None
        if response.status >= 400:
            read = read_error_body(response.status, body, response.headers.get("retry-after", ""))
            raise GatewayError(read.code, read.message, status=read.status, type=read.type, param=read.param)
        return _renamed(body, request.model)


def _parse(body: bytes) -> ChatRequest:
    fields = read_fields(body)
    model = typed(fields, "model", str, "a string")
    if not model or "input" not in fields:
        missing = "input" if model else "model"
        raise GatewayError("missing_required_parameter", f"`{missing}` is required.", param=missing)
    return ChatRequest(model, fields)


def _renamed(body: bytes, model: str) -> bytes:
    """Put the name that was asked for into the answer."""
    try:
        answer = msgspec.json.decode(body, type=dict[str, Raw])
    except msgspec.DecodeError:
        raise GatewayError("upstream_malformed", "the provider's answer is no JSON object") from None
    answer["model"] = Raw(msgspec.json.encode(model))
    return msgspec.json.encode(answer)
