"""URLs of upstreams: cut into what a connection and a request line need."""

import re
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from trunkline.core.ports import HttpError

URL_CHARS = 16 * 1024
"""The longest URL that is asked for."""

_PORTS = {"http": 80, "https": 443}
_UNSAFE = re.compile(r"[^!-~]")  # whatever is not visible ASCII


class Place(NamedTuple):
    """What an origin is (RFC 6454): scheme, host in lower case and ASCII, port."""

    scheme: str
    host: str
    port: int

    @property
    def authority(self) -> str:
        """As `host` header: the port only where it is not the scheme's own."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return name if self.port == _PORTS[self.scheme] else f"{name}:{self.port}"

    @property
    def endpoint(self) -> str:
        """As CONNECT wants it: always with the port."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def split(url: str) -> tuple[Place, str]:
    """Cut a URL into its origin and the request target; raises HttpError `protocol` when it is no http(s) URL."""
    if len(url) > URL_CHARS:
        raise HttpError("protocol", f"the URL is longer than {URL_CHARS} characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
        host = host if host.isascii() else host.encode("idna").decode()
    except (ValueError, UnicodeError) as error:
        raise HttpError("protocol", f"this is not a URL: {url[:200]!r}") from error
    if parts.scheme not in _PORTS or not host or _UNSAFE.search(host):
        raise HttpError("protocol", f"this is not an http:// or https:// URL: {url[:200]!r}")
    if "@" in parts.netloc:
        raise HttpError("protocol", "a URL with a user or a password in it is not asked for; give the credential apart")
    path = parts.path if parts.path.startswith("/") else f"/{parts.path}"
    target = f"{path}?{parts.query}" if parts.query else path
    if _UNSAFE.search(target):
        target = quote(target, safe="!#$%&'()*+,/:;=?@[]~")
    return Place(parts.scheme, host, port or _PORTS[parts.scheme]), target
