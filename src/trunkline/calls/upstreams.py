"""The port through which calls reach targets: addresses and credentials are put on behind it."""

from typing import Protocol

from trunkline.core.caller import Caller
from trunkline.core.chat import UpstreamRequest
from trunkline.core.ports import HttpResponse
from trunkline.routing.order import Attempt


class Upstreams(Protocol):
    """Sends a dialect's request to a target."""

    async def open(self, asked: Attempt, request: UpstreamRequest, *, connect_s: float) -> HttpResponse:
        """Send it and wait for the answer's head. Raises HttpError; GatewayError where a target cannot be reached."""


class Recorder(Protocol):
    """Keeps what upstreams really send, for those whose calls are to be recorded."""

    def over(self, upstreams: Upstreams, caller: Caller, model: str) -> Upstreams:
        """Give upstreams that are listened to; the same ones where nothing is to be kept. `model`: as asked for."""
