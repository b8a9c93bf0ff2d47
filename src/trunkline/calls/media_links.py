"""Links to kept media: made for clients, and recognised when they come back."""

import hmac
import re
from urllib.parse import parse_qs, urlsplit

from msgspec import Struct

from trunkline.core.errors import GatewayError
from trunkline.core.links import link, verify
from trunkline.core.media import MediaRecord

_PATH = re.compile(r"/v1/media/([a-z]+_[0-9a-f]{24})\Z")


class Seen(Struct, frozen=True):
    """A link of ours, as it came. `signed`: by us, so that whoever has it may see the medium."""

    media_id: str
    signed: bool


class MediaLinks:
    """Signs links with a key of its own, made of the server's secret."""

    def __init__(self, secret: bytes, link_ttl_s: int) -> None:
        """`link_ttl_s`: how long links work from the medium's making on; 0: as long as it is kept."""
        self._secret = hmac.digest(secret, b"media links", "sha256")
        self._link_ttl_s = link_ttl_s

    def expires_at(self, record: MediaRecord) -> int | None:
        """Say until when the medium's link works, in Unix seconds; None: for ever. The same whenever it is asked."""
        ends = [record.expires_ms // 1000] if record.expires_ms is not None else []
        if self._link_ttl_s:
            ends.append(record.created_ms // 1000 + self._link_ttl_s)
        return min(ends, default=None)

    def url(self, base: str, record: MediaRecord) -> str:
        """Give the medium's link. `base` is what was fixed when the call was admitted."""
        return link(self._secret, base, record.id, self.expires_at(record))

    def check(self, media_id: str, exp: str, sig: str, now_s: int) -> None:
        """Let a link pass. Raises GatewayError `invalid_signature`, `link_expired`."""
        verdict = verify(self._secret, media_id, exp, sig, now_s)
        if verdict == "wrong":
            raise GatewayError("invalid_signature", "The link's signature is wrong.")
        if verdict == "expired":
            raise GatewayError("link_expired", "The link has expired.")

    def recognise(self, url: str, base: str) -> Seen | None:
        """Tell whether a URL is a link of ours; one that has expired still names its medium. None: another's."""
        try:
            parts = urlsplit(url)
        except ValueError:
            return None
        found = _PATH.search(parts.path)
        if found is None or parts.scheme not in {"http", "https"}:
            return None
        query = parse_qs(parts.query)
        exp, sig = query.get("exp", [""])[0], query.get("sig", [""])[0]
        if verify(self._secret, found[1], exp, sig, 0) == "ok":
            return Seen(found[1], signed=True)
        return Seen(found[1], signed=False) if url.startswith(f"{base.rstrip('/')}/v1/media/") else None
