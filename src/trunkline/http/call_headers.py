"""What a client says of a call in its headers, and where it called (contract sections 4 and 5)."""

import ipaddress
import itertools
import re
import secrets
from typing import Protocol, get_args

from msgspec.structs import replace

from trunkline.core.caller import Caller
from trunkline.core.errors import GatewayError
from trunkline.core.keys import Key
from trunkline.core.route import MediaStyle
from trunkline.http.exchange import Exchange
from trunkline.http.live import Settings

WISHES = frozenset((b"traceparent", b"x-trunkline-resume", b"x-trunkline-cache", b"x-trunkline-trace"))
"""Headers that say something of a chat, beside who asks; most requests have none of them."""
STYLES = get_args(MediaStyle)
TRUE = frozenset({"true", "1", "yes"})
_HOST = re.compile(r"[\w.\-]+(:\d{1,5})?\Z|\[[0-9a-fA-F:.]+\](:\d{1,5})?\Z", re.ASCII)
_PREFIX = re.compile(r"(/[\w.~%\-]+)*/?\Z", re.ASCII)
_KEY_CHARS = 255
_ID_CHARS = 128
_PROCESS = secrets.token_hex(8)  # ids are told apart by this, and counted: they are names, not secrets
_NUMBERS = itertools.count(secrets.randbelow(1 << 24))


def read_request_id(exchange: Exchange) -> str:
    """Take over the client's `x-request-id`, or make one."""
    sent = exchange.header(b"x-request-id") if b"x-request-id" in exchange.headers else ""
    if sent and len(sent) <= _ID_CHARS and sent.isascii() and sent.isprintable():
        return sent
    return f"req_{next_name()}"


def next_name() -> str:
    """Make the changing part of an id."""
    return f"{_PROCESS}{next(_NUMBERS):08x}"


def read_headers(exchange: Exchange, caller: Caller, settings: Settings) -> Caller:
    """Give the caller with what its headers say. Raises GatewayError `invalid_value`."""
    key = exchange.header(b"idempotency-key")
    if len(key) > _KEY_CHARS:
        raise GatewayError("invalid_value", f"It has more than {_KEY_CHARS} characters.", param="Idempotency-Key")
    retries = exchange.header(b"x-stainless-retry-count")
    return replace(
        caller,
        link_base=link_base(exchange, settings),
        idempotency_key=key,
        media_style=one_of(exchange, "X-Trunkline-Media-Style", STYLES),
        on_disconnect=one_of(exchange, "X-Trunkline-On-Disconnect", ("cancel", "continue")),
        resume=wants_resume(exchange),
        traceparent=exchange.header(b"traceparent")[:_ID_CHARS],
        trace=wants_trace(exchange),
        retry_count=int(retries) if retries.isascii() and retries.isdecimal() and len(retries) < 6 else 0,
    )


def wants_trace(exchange: Exchange) -> bool:
    """Tell whether what the provider sends is to be kept for a while."""
    return exchange.header(b"x-trunkline-trace").strip().lower() in TRUE


def wants_resume(exchange: Exchange) -> bool:
    """Tell whether the client wants a stream that can be taken up again."""
    return exchange.header(b"x-trunkline-resume").strip().lower() in TRUE


def wants_cache(exchange: Exchange, key: Key) -> bool:
    """Tell whether the answer may come from the response cache: as the header says, else as the key is marked.

    Raises GatewayError `invalid_value`.
    """
    said = one_of(exchange, "X-Trunkline-Cache", ("true", "false"))
    return said == "true" if said else key.cache


def one_of(exchange: Exchange, name: str, allowed: tuple[str, ...]) -> str:
    """Read a header that is one of some words, or absent."""
    word = exchange.header(name.lower().encode()).strip().lower()
    if word and word not in allowed:
        raise GatewayError("invalid_value", f"{name} is {word!r}; allowed are {', '.join(allowed)}.", param=name)
    return word


class Asked(Protocol):
    """A request, as far as it says where it was sent."""

    @property
    def peer(self) -> str:
        """The address that it came from."""

    def header(self, name: bytes) -> str:
        """Give a header (name in lower case), `""` if it is absent."""


def link_base(asked: Asked, settings: Settings) -> str:
    """Give what links of this call begin with: as configured, else as a trusted proxy says, else what was called."""
    if settings.public_url:
        return settings.public_url
    scheme, host, prefix = "http", asked.header(b"host"), ""
    if _trusted(asked.peer, settings.trusted_proxies):
        forwarded = _last(asked.header(b"x-forwarded-host"))
        host = forwarded if _HOST.match(forwarded) else host
        scheme = "https" if _last(asked.header(b"x-forwarded-proto")).lower() == "https" else "http"
        prefix = asked.header(b"x-forwarded-prefix").strip()
    if not _HOST.match(host):
        return ""
    return f"{scheme}://{host}{prefix if _PREFIX.match(prefix) else ''}".rstrip("/")


def _trusted(peer: str, proxies: tuple[str, ...]) -> bool:
    try:
        address = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return any(address in ipaddress.ip_network(proxy, strict=False) for proxy in proxies)


def _last(header: str) -> str:
    """Give what the nearest proxy said."""
    return header.rpartition(",")[2].strip()
