"""Which proxy of the environment a request goes through, if any."""

import ipaddress
import re
from base64 import b64encode
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from trunkline.core.ports import HttpError
from trunkline.upstream.url import Place


class Proxy(NamedTuple):
    """A forward proxy; `authorization` is the value of `proxy-authorization`, or empty."""

    host: str
    port: int
    authorization: str

    def __repr__(self) -> str:
        """Never show the password."""
        return f"Proxy({self.host}:{self.port})"


class Proxies:
    """`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` (lower case wins), read once."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        def value(name: str) -> str:
            return environ.get(name.lower()) or environ.get(name) or ""

        self._by_scheme = {"http": value("HTTP_PROXY"), "https": value("HTTPS_PROXY")}
        self._all = value("ALL_PROXY")
        self._none = [entry.strip().lower() for entry in value("NO_PROXY").split(",") if entry.strip()]

    def find(self, place: Place) -> Proxy | None:
        """Give the proxy for an origin; raises HttpError when it is of a kind that is not spoken."""
        url = self._by_scheme[place.scheme] or self._all
        if not url or _is_loopback(place.host) or any(_excludes(entry, place) for entry in self._none):
            return None
        return _parse(url)


def _parse(url: str) -> Proxy:
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port or 80
    except ValueError as error:
        raise HttpError("connect", "the proxy of the environment is not a URL") from error
    if parts.scheme != "http" or not parts.hostname:
        raise HttpError("connect", f"a proxy by {parts.scheme}:// is not supported; allowed is http://HOST:PORT")
    authorization = ""
    if parts.username is not None:
        pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = f"Basic {b64encode(pair.encode()).decode()}"
    return Proxy(parts.hostname, port, authorization)


def _is_loopback(host: str) -> bool:
    name = host.rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):
        return True
    address = _number(name)
    return address is not None and address.is_loopback


def _number(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _excludes(entry: str, place: Place) -> bool:
    """Say whether an entry of NO_PROXY (`*`, a name or suffix, an address, a network; `:port`) means this origin."""
    if entry == "*":
        return True
    with_port = re.fullmatch(r"(\[[^\]]*\]|[^:]*):(\d+)", entry)
    if with_port:
        if int(with_port[2]) != place.port:
            return False
        entry = with_port[1]
    address = _number(place.host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            return False
    host, suffix = place.host.rstrip("."), entry.removeprefix("*").removeprefix(".").rstrip(".")
    return host == suffix or host.endswith(f".{suffix}")
