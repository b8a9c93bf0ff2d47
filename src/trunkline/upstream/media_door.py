"""Providers as the job engine sees them: requests with a bound credential, and the files that they link to."""

import asyncio
import copy
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from urllib.parse import quote

from msgspec.structs import replace

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.errors import GatewayError
from trunkline.core.ports import HttpClient, HttpError, HttpRequest, HttpResponse
from trunkline.core.provider import Provider
from trunkline.core.secret import Secret
from trunkline.upstream.credentials import Credential
from trunkline.upstream.door import USER_AGENT, Local
from trunkline.upstream.download import DownloadError, download
from trunkline.upstream.url import split

DOWNLOAD_S = 900.0
LATER = frozenset({408, 425, 429})
"""Statuses of a server that has the file, and gives it another time."""
NO_HEADERS: tuple[tuple[str, str], ...] = ()
NEVER = frozenset({"too_large", "address_refused"})
"""What breaks a download in the same way whenever it is tried."""
SCHEMES = ("http://", "https://")


class _Known:
    """What the configuration says, the same for a door and those that are listened to."""

    def __init__(self, providers: Mapping[str, Provider]) -> None:
        self.providers = providers
        self.credentials: dict[tuple[str, str, Secret | None], Credential] = {}


class MediaDoor:
    """Implements `core.ports.Upstream`. A credential's id is the name of its secret, so that a rotated key is used."""

    def __init__(  # noqa: PLR0913 - what the configuration says of media
        self,
        client: HttpClient,
        providers: Mapping[str, Provider],
        local: Mapping[tuple[str, str], Local],
        *,
        media_client: HttpClient | None = None,
        allow_private: bool = False,
        idle_s: float = 60.0,
    ) -> None:
        """`media_client` fetches media, by another proxy perhaps; `allow_private`: from any address."""
        self._idle_s = idle_s
        self._client = client
        self._known = _Known(providers)
        self._local = local
        self._media_client = media_client or client
        self._public_only = not allow_private

    def renew(self, providers: Mapping[str, Provider]) -> None:
        """Go on with changed providers."""
        self._known.providers = providers
        self._known.credentials.clear()

    def over(self, listen: Callable[[HttpClient], HttpClient]) -> "MediaDoor":
        """Give the same door, whose exchanges are listened to."""
        door = copy.copy(self)
        door._client = listen(self._client)  # noqa: SLF001 - of a copy of ours
        door._media_client = listen(self._media_client)  # noqa: SLF001
        return door

    async def open(
        self, request: UpstreamRequest, target: Target, credential_id: str, *, fresh: bool = False
    ) -> HttpResponse:
        """See the port."""
        base_url, credential = await self._reach(target, credential_id)
        path = request.path.replace("{model}", quote(target.model, safe=""))
        asked = HttpRequest(request.method, base_url + path, self._headers(target, request), request.body, fresh=fresh)
        return credential.unrepeated(await self._client.open(credential.authorize(asked)))

    async def download(
        self,
        url: str,
        *,
        max_bytes: int,
        target: Target | None = None,
        credential_id: str = "",
        authorized: bool = False,
    ) -> AsyncIterator[bytes]:
        """See the port."""
        client, headers = self._media_client, NO_HEADERS
        try:
            if target is not None:
                base_url, credential = await self._reach(target, credential_id)
                url = base_url + url if url.startswith("/") else url
                own = split(base_url)[0]
                client = _Trusting(client, base_url)
                if authorized and split(url)[0] == own:
                    headers = credential.authorize(HttpRequest("GET", url)).headers
            if not url.lower().startswith(SCHEMES):
                raise GatewayError("media_refused", f"The provider's link is none to http(s): {url[:80]!r}.")
            pieces = download(
                client, url, max_bytes=max_bytes, total_s=DOWNLOAD_S, headers=headers, public_only=self._public_only
            )
            async with aclosing(pieces):
                while piece := await self._next(pieces):
                    yield piece
        except TimeoutError:
            raise GatewayError("media_unavailable", f"The provider's file stopped for {self._idle_s:g} s.") from None
        except DownloadError as error:
            raise GatewayError(_meaning(error.status), f"The provider's file was not given: {error}.") from error
        except HttpError as error:
            code = "media_refused" if error.kind in NEVER else "media_unavailable"
            raise GatewayError(code, f"The provider's file was not given: {error}.") from error

    async def _next(self, pieces: AsyncIterator[bytes]) -> bytes:
        """Give the next piece, empty at the end. Raises TimeoutError."""
        async with asyncio.timeout(self._idle_s):
            return await anext(pieces, b"")

    async def _reach(self, target: Target, credential_id: str) -> tuple[str, Credential]:
        """Give a target's address as it is now, and the credential as it was bound."""
        if local := self._local.get((target.provider, target.model)):
            base_url, secret = await local()
            return base_url.rstrip("/"), Credential("bearer", secret)
        provider = self._known.providers.get(target.provider)
        if provider is None:
            raise GatewayError("upstream_unavailable", f"There is no provider {target.provider} any more.")
        side = {"chat": provider.chat, "image": provider.image, "video": provider.video}[target.side]
        auth = (side and side.auth) or provider.auth
        secret_by_name = {secret.name: secret for secret in provider.api_key}
        if credential_id and credential_id not in secret_by_name:
            raise GatewayError("upstream_auth", f"The provider {target.provider} has lost the key {credential_id}.")
        key = secret_by_name.get(credential_id)
        place = (target.provider, auth, key)
        if place not in self._known.credentials:
            self._known.credentials[place] = Credential(auth, key, provider.options)
        return target.base_url.rstrip("/"), self._known.credentials[place]

    def _headers(self, target: Target, request: UpstreamRequest) -> tuple[tuple[str, str], ...]:
        provider = self._known.providers.get(target.provider)
        further = provider.headers if provider else {}
        return (
            *request.headers,
            ("user-agent", USER_AGENT),
            *((name.lower(), value.reveal()) for name, value in further.items()),
        )


def _meaning(status: int) -> str:
    """Say what it means that a file was not given."""
    if 300 <= status < 400:
        return "media_refused"
    return "media_gone" if 400 <= status < 500 and status not in LATER else "media_unavailable"


class _Trusting:
    """A client that fetches from a provider's own origin wherever that is: the operator named it, not an answer."""

    def __init__(self, client: HttpClient, base_url: str) -> None:
        self._client = client
        self._own = split(base_url)[0]

    async def open(self, request: HttpRequest) -> HttpResponse:
        own = split(request.url)[0] == self._own
        return await self._client.open(replace(request, public_only=False) if own else request)

    async def aclose(self) -> None:
        """Not ours to close."""
