"""`/metrics` and `/admin` are for operators: the admin key, or a listener that only this machine reaches."""

from starlette.types import ASGIApp, Receive, Scope, Send

from trunkline.core.errors import GatewayError
from trunkline.core.secret import Secret
from trunkline.http.error_response import error_response

GUARDED = ("/metrics",)


class OperatorOnly:
    """Plain ASGI middleware."""

    def __init__(self, app: ASGIApp, *, admin_key: Secret | None, loopback: bool) -> None:
        self._app = app
        self._admin_key = admin_key
        self._loopback = loopback

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] == "http" and scope["path"].startswith(GUARDED) and not self._allowed(scope):
            refused = GatewayError("invalid_api_key", "This page needs the admin key: send `Authorization: Bearer …`.")
            await error_response(refused)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allowed(self, scope: Scope) -> bool:
        if self._loopback:
            return True
        sent = dict(scope["headers"]).get(b"authorization", b"").decode("latin-1")
        return self._admin_key is not None and self._admin_key == Secret(sent.removeprefix("Bearer ").strip())
