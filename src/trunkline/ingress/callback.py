"""`callback_url`: where a client of media wants to be told that its job has ended."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec
from msgspec import Raw

from trunkline.core.errors import GatewayError
from trunkline.ingress.request_body import typed

NAME = "callback_url"
_URL = msgspec.json.Decoder(str | None)
LONGEST = 2048


def read_callback(fields: Mapping[str, Raw]) -> str:
    """Read the member of a body, empty when it is absent. Raises GatewayError `invalid_value`."""
    return check_callback(typed(dict(fields), NAME, _URL, "a URL") or "")


def check_callback(url: str) -> str:
    """Let a URL pass that can be called. Raises GatewayError `invalid_value`."""
    if not url:
        return ""
    try:
        parts = urlsplit(url)
        good = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.username is None
    except ValueError:
        good = False
    if not good or len(url) > LONGEST or not url.isascii() or not url.isprintable():
        raise GatewayError(
            "invalid_value", f"`{NAME}` must be an http or https URL of at most {LONGEST} characters.", param=NAME
        )
    return url
