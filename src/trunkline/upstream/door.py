"""Reaching a target: its address and credential are put on a dialect's request here, and nowhere else."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.ports import HttpRequest, HttpResponse
from trunkline.core.provider import Provider
from trunkline.core.route import RouteTarget
from trunkline.core.secret import Secret
from trunkline.routing.health import Key
from trunkline.routing.order import Attempt
from trunkline.upstream.client import Client, Way
from trunkline.upstream.credentials import Credential

USER_AGENT = "trunkline"
READY = 1024
"""How many requests' ways are remembered."""
Headers = tuple[tuple[str, str], ...]
Local = Callable[[], Awaitable[tuple[str, Secret]]]
"""Gives the base URL and the key of an embedded model once it answers; raises GatewayError when it cannot."""


class Door:
    """Implements `calls.upstreams.Upstreams`. `local` are embedded models, by provider and model."""

    def __init__(self, client: Client, local: Mapping[tuple[str, str], Local]) -> None:
        self._client = client
        self._local = local
        self._credentials: dict[tuple[str, str, str, Secret | None], Credential] = {}
        self._ready: dict[tuple[Key, str, str, Headers], tuple[Provider, Credential, Way]] = {}
        """The ways of requests that are signed alike each time."""

    async def open(self, asked: Attempt, request: UpstreamRequest, *, connect_s: float) -> HttpResponse:
        """Send a request to a target; see the port."""
        ready = self._ready.get((asked.key, request.method, request.path, request.headers))
        if ready is not None and ready[0] is asked.item.provider:
            _, credential, way = ready
            response: HttpResponse = await self._client.exchange(way, request.body, connect_s)
        else:
            credential, made = await self._prepare(asked, request, connect_s)
            response = await self._client.open(made)
        return response if response.status < 400 else credential.unrepeated(response)

    async def _prepare(
        self, asked: Attempt, request: UpstreamRequest, connect_s: float
    ) -> tuple[Credential, HttpRequest]:
        """Give the request as it is sent; where it is the same for the next one, its way is kept."""
        item = asked.item
        local = self._local.get((item.target.provider, item.target.model))
        if local is not None:
            base_url, key = await local()
            credential = Credential("bearer", key)
        else:
            base_url, credential = item.target.base_url, self.credential(item, asked.credential)
        if not base_url:
            raise GatewayError("upstream_unavailable", f"the provider `{item.target.provider}` has no `base_url`")
        own = [(name.lower(), value.reveal()) for name, value in item.provider.headers.items()]
        headers = (*request.headers, ("user-agent", USER_AGENT), *own)
        url = base_url.rstrip("/") + _path(request.path, item.target)
        made = credential.authorize(HttpRequest(request.method, url, headers, request.body, connect_s))
        if local is None and credential.fixed is not None:
            if len(self._ready) >= READY:
                self._ready.clear()
            way = self._client.way(made)
            self._ready[asked.key, request.method, request.path, request.headers] = (item.provider, credential, way)
        return credential, made

    def renew(self) -> None:
        """Forget credentials: the configuration has changed."""
        self._credentials.clear()
        self._ready.clear()

    def credential(self, item: RouteTarget, key: Secret | None) -> Credential:
        """Give the credential that a target's requests carry. Raises GatewayError where the key cannot be sent."""
        place = (item.target.provider, item.target.side, item.auth, key)
        known = self._credentials.get(place)
        if known is None:
            try:
                known = Credential(item.auth, key, item.provider.options)
            except ValueError as error:
                told = f"the api_key of the provider `{item.target.provider}` cannot be used: {error}"
                raise GatewayError("upstream_auth", told) from None
            self._credentials[place] = known
        return known


def _path(path: str, target: Target) -> str:
    return path.replace("{model}", quote(target.model, safe="")) if "{model}" in path else path
