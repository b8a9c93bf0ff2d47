"""The port through which calls reach targets: addresses and credentials are put on behind it."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Protocol

from trunkline.core.caller import Caller
from trunkline.core.chat import UpstreamRequest
from trunkline.core.ports import HttpResponse
from trunkline.routing.order import Attempt
from trunkline.wire.read import as_number


class Upstreams(Protocol):
    """Sends a dialect's request to a target."""

    async def open(self, asked: Attempt, request: UpstreamRequest, *, connect_s: float) -> HttpResponse:
        """Send it and wait for the answer's head. Raises HttpError; GatewayError where a target cannot be reached."""


class Recorder(Protocol):
    """Keeps what upstreams really send, for those whose calls are to be recorded."""

    def over(self, upstreams: Upstreams, caller: Caller, model: str) -> Upstreams:
        """Give upstreams that are listened to; the same ones where nothing is to be kept. `model`: as asked for."""


def retry_after(headers: Mapping[str, str]) -> str:
    """Give how many seconds an answer asks to wait, blank: it does not say.

    Read are `retry-after`, in seconds or as a date (RFC 9110, 10.2.3), and the finer `retry-after-ms` of some.
    """
    if (ms := as_number(headers.get("retry-after-ms", ""))) is not None:
        return f"{ms / 1000:g}"
    sent = headers.get("retry-after", "")
    if as_number(sent) is not None:
        return sent
    try:
        return f"{parsedate_to_datetime(sent).timestamp() - time.time_ns() / 1e9:.0f}"
    except (ValueError, OverflowError):
        return ""
