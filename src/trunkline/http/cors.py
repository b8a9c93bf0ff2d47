"""Cross-origin calls from browsers, for `/v1` only."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trunkline.http.exchange import Exchange
from trunkline.http.live import Live, Settings

_EXPOSED = (
    "x-request-id, x-trunkline-provider, x-trunkline-model, x-trunkline-stream-id, x-trunkline-job-id, "
    "x-trunkline-cost, x-trunkline-cache, x-trunkline-attempts, x-trunkline-fallback-from, "
    "x-trunkline-callback-secret, retry-after, openai-poll-after-ms"
)


def allowed_origin(origin: str, settings: Settings) -> str:
    """Give the value of `access-control-allow-origin`, `""` where the origin may not call."""
    if not origin:
        return ""
    if "*" in settings.cors_origins:
        return "*"
    return origin if origin in settings.cors_origins else ""


def cors_headers(exchange: Exchange, settings: Settings) -> list[tuple[str, str]]:
    """Give the headers for a hot exchange."""
    if b"origin" not in exchange.headers:
        return []
    origin = allowed_origin(exchange.header(b"origin"), settings)
    if not origin:
        return []
    return [("access-control-allow-origin", origin), ("access-control-expose-headers", _EXPOSED), ("vary", "origin")]


class Cors:
    """Plain ASGI middleware: preflights on `/v1`, and the headers on what it answers."""

    def __init__(self, app: ASGIApp, live: Live) -> None:
        self._app = app
        self._live = live

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a preflight, or pass the request on."""
        if scope["type"] != "http" or not scope["path"].startswith("/v1"):
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        origin = allowed_origin(headers.get(b"origin", b"").decode("latin-1"), self._live.settings)
        extra: list[tuple[bytes, bytes]] = []
        if origin:
            extra = [(b"access-control-allow-origin", origin.encode("latin-1")), (b"vary", b"origin")]
            extra.append((b"access-control-expose-headers", _EXPOSED.encode()))
        if scope["method"] == "OPTIONS" and b"access-control-request-method" in headers:
            asked = headers.get(b"access-control-request-headers", b"authorization, content-type")
            extra += [
                (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
                (b"access-control-allow-headers", asked),
                (b"access-control-max-age", b"86400"),
            ]
            await send({"type": "http.response.start", "status": 204, "headers": extra})
            await send({"type": "http.response.body", "body": b""})
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *extra]
            await send(message)

        await self._app(scope, receive, with_headers)
