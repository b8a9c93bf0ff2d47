"""Models, health, metrics, and what is not served: the plain ASGI side."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from trunkline.calls.gate import Gate
from trunkline.core.errors import GatewayError
from trunkline.core.keys import ANONYMOUS, Key
from trunkline.core.route import ListedModel
from trunkline.http.live import Live
from trunkline.policy.key_rules import check_model, may_use

SERVED = (
    "POST /v1/chat/completions",
    "POST /v1/embeddings",
    "POST /v1/images/generations",
    "POST /v1/images/edits",
    "POST /v1/videos",
    "GET /v1/videos",
    "GET /v1/videos/{id}",
    "DELETE /v1/videos/{id}",
    "GET /v1/videos/{id}/content",
    "POST /v1/files",
    "GET /v1/models",
    "GET /v1/models/{id}",
    "GET /v1/media/{id}",
    "GET /v1/streams/{id}",
    "DELETE /v1/streams/{id}",
)


def system_routes(
    live: Live, gate: Gate, metrics: Callable[[], Awaitable[bytes]], names: Mapping[str, str], *, started_s: int
) -> list[Route]:
    """Give the routes.

    `metrics` writes the metrics page; `names` says what really answers behind an embedded model; `started_s` (Unix)
    stands in for models' creation.
    """

    def listed(model: ListedModel) -> dict[str, object]:
        return {
            "id": model.id,
            "object": "model",
            "created": started_s,
            "owned_by": model.owner,
            "trunkline": model_facts(model, names.get(model.id)),
        }

    async def asker(request: Request) -> Key:
        """Say whose key was sent: whoever sends none may look too, as pages and clients do before they have one."""
        sent = request.headers.get("authorization", "")
        return (await gate.caller(sent, "")).key if sent else ANONYMOUS

    async def models(request: Request) -> Response:
        key = await asker(request)
        seen = [listed(model) for model in live.table.models() if may_use(key, model.id)]
        return JSONResponse({"object": "list", "data": seen})

    async def model(request: Request) -> Response:
        name = request.path_params["name"]
        check_model(await asker(request), name)
        found = next((item for item in live.table.models() if item.id == name), None)
        if found is None:
            route = live.table.route(name)
            found = ListedModel(name, route.kind, route.targets[0].target.provider, route.targets[0].facts)
        return JSONResponse(listed(found))

    async def alive(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_request: Request) -> Response:
        if live.going_down:
            return JSONResponse({"status": "shutting_down"}, status_code=503)
        return JSONResponse({"status": "ok"})

    async def metrics_page(_request: Request) -> Response:
        return Response(await metrics(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return [
        Route("/v1/models", models),
        Route("/v1/models/", models),
        Route("/v1/models/{name:path}", model),
        Route("/health", ready),
        Route("/health/live", alive),
        Route("/health/ready", ready),
        Route("/metrics", metrics_page),
    ]


def model_facts(model: ListedModel, name: str | None) -> dict[str, object]:
    """Give what pages show of a model (docs/admin-api.md section 11)."""
    facts = model.facts
    return {
        "kind": model.kind,
        "provider": model.owner,
        "name": name or facts.id or None,
        "ratios": facts.ratios,
        "tiers": facts.tiers,
        "sizes": facts.sizes,
        "formats": facts.formats,
        "qualities": facts.qualities,
        "seconds": facts.seconds,
        "usual_seconds": facts.usual_seconds,
        "usual_size": facts.usual_size,
        "fps": facts.fps,
        "max_n": facts.max_n,
        "max_inputs": facts.max_inputs,
    }


async def unknown_endpoint(request: Request) -> Response:
    """Answer every other path, also what lacks `/v1`: an address that was typed wrong is told the right ones."""
    told = f"{request.method} {request.url.path} is not served here. Served: {'; '.join(SERVED)}."
    raise GatewayError("unknown_endpoint", told)
