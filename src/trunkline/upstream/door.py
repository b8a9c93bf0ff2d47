"""Reaching a target: its address and credential are put on a dialect's request here, and nowhere else."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from trunkline.core.chat import UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.ports import HttpClient, HttpRequest, HttpResponse
from trunkline.core.secret import Secret
from trunkline.routing.order import Attempt

USER_AGENT = "trunkline"


Local = Callable[[], Awaitable[tuple[str, Secret]]]
"""Gives the base URL and the key of an embedded model once it answers; raises GatewayError when it cannot."""


class Door:
    """Implements `calls.upstreams.Upstreams`. `locals` are embedded models, by provider and model."""

    def __init__(self, client: HttpClient, local: Mapping[tuple[str, str], Local]) -> None:
        self._client = client
        self._local = local

    async def open(self, asked: Attempt, request: UpstreamRequest, *, connect_s: float) -> HttpResponse:
        """Send a request to a target; see the port."""
        target = asked.item.target
        base_url, credential = target.base_url, asked.credential
        local = self._local.get((target.provider, target.model))
        if local is not None:
            base_url, credential = await local()
        if not base_url:
            raise GatewayError("upstream_unavailable", f"the provider `{target.provider}` has no `base_url`")
        path = (
            request.path.replace("{model}", quote(target.model, safe="")) if "{model}" in request.path else request.path
        )
        headers = [
            *request.headers,
            ("user-agent", USER_AGENT),
            *((name, value.reveal()) for name, value in asked.item.provider.headers.items()),
        ]
        if credential is not None:
            headers.append(("authorization", f"Bearer {credential.reveal()}"))
        return await self._client.open(
            HttpRequest(request.method, base_url.rstrip("/") + path, tuple(headers), request.body, connect_s)
        )
