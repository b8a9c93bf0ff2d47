"""Reaching a target: its address and credential are put on a dialect's request here, and nowhere else."""

from collections.abc import Awaitable, Callable, Mapping
from urllib.parse import quote

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.ports import HttpClient, HttpRequest, HttpResponse
from trunkline.core.route import RouteTarget
from trunkline.core.secret import Secret
from trunkline.routing.order import Attempt
from trunkline.upstream.credentials import Credential

USER_AGENT = "trunkline"
Local = Callable[[], Awaitable[tuple[str, Secret]]]
"""Gives the base URL and the key of an embedded model once it answers; raises GatewayError when it cannot."""


class Door:
    """Implements `calls.upstreams.Upstreams`. `local` are embedded models, by provider and model."""

    def __init__(self, client: HttpClient, local: Mapping[tuple[str, str], Local]) -> None:
        self._client = client
        self._local = local
        self._credentials: dict[tuple[str, str, str, Secret | None], Credential] = {}

    async def open(self, asked: Attempt, request: UpstreamRequest, *, connect_s: float) -> HttpResponse:
        """Send a request to a target; see the port."""
        target = asked.item.target
        base_url = target.base_url
        local = self._local.get((target.provider, target.model))
        if local is not None:
            base_url, key = await local()
            credential = Credential("bearer", key)
        else:
            credential = self.credential(asked.item, asked.credential)
        response = await self._client.open(credential.authorize(_request(asked.item, request, base_url, connect_s)))
        return credential.unrepeated(response) if response.status >= 400 else response

    def renew(self) -> None:
        """Forget credentials: the configuration has changed."""
        self._credentials.clear()

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


def _request(item: RouteTarget, request: UpstreamRequest, base_url: str, connect_s: float) -> HttpRequest:
    if not base_url:
        raise GatewayError("upstream_unavailable", f"the provider `{item.target.provider}` has no `base_url`")
    headers = [*request.headers, ("user-agent", USER_AGENT)]
    if item.provider.headers:
        headers += [(name.lower(), value.reveal()) for name, value in item.provider.headers.items()]
    url = base_url.rstrip("/") + _path(request.path, item.target)
    return HttpRequest(request.method, url, tuple(headers), request.body, connect_s)


def _path(path: str, target: Target) -> str:
    return path.replace("{model}", quote(target.model, safe="")) if "{model}" in path else path
