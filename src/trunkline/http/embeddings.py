"""`POST /v1/embeddings`: forwarded to OpenAI-compatible targets."""

from trunkline.calls.chat import Targets
from trunkline.calls.embedding import EmbeddingCall
from trunkline.calls.gate import Gate
from trunkline.calls.upstreams import Upstreams
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.money import EndReason
from trunkline.core.route import Route
from trunkline.http.call_headers import read_headers, read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import JSON, respond_error
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.http.media_body import ELSEWHERE
from trunkline.ingress.request_body import STRING, read_fields, typed


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
        caller = None
        try:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
            caller = read_headers(exchange, caller, self._live.settings)
            request = _parse(exchange.body)
            route = _embedding(self._live.table.route(request.model))
            admitted = await self._gate.admit(caller, request, route)
        except GatewayError as error:
            self._gate.refused(request_id, caller, exchange.path, error)
            respond_error(exchange, error, headers)
            return
        call = EmbeddingCall(self._upstreams, self._targets, route, request, caller, admitted)
        end: EndReason = "cancelled"
        failed: GatewayError | None = None
        try:
            body = await call.answer()
            end = "completed"
        except GatewayError as error:
            end, failed = "timeout" if error.code == "upstream_timeout" else "failed", error
        finally:
            call.settle(end, failed)
        headers += [*admitted.headers, *_told(call)]
        if failed is not None:
            respond_error(exchange, failed, headers)
        else:
            exchange.respond(200, [JSON, *headers], body)


def _embedding(route: Route) -> Route:
    """Let a model pass that may know of embeddings. Raises GatewayError `invalid_value`."""
    told = ELSEWHERE[route.kind] if route.kind != "text" else "is embedded and gives no embeddings; ask a provider's"
    if route.kind != "text" or not any(item.target.base_url for item in route.targets):
        raise GatewayError("invalid_value", f"The model {route.name!r} {told}.", param="model")
    return route


def _told(call: EmbeddingCall) -> list[tuple[str, str]]:
    """Say in headers what was done."""
    told = [("x-trunkline-attempts", str(call.attempts))]
    if call.asked is not None:
        target = call.asked.item.target
        told += [("x-trunkline-provider", target.provider), ("x-trunkline-model", target.model)]
    if (cost := call.cost_usd()) is not None:
        told.append(("x-trunkline-cost", f"{cost:.6f}"))
    return told


def _parse(body: bytes) -> ChatRequest:
    fields = read_fields(body)
    model = typed(fields, "model", STRING, "a string")
    if not model or "input" not in fields:
        missing = "input" if model else "model"
        raise GatewayError("missing_required_parameter", f"`{missing}` is required.", param=missing)
    return ChatRequest(model, fields)
