"""The port that lets calls in: who asks, may they, what is set aside, and how it is settled."""

from typing import Protocol

from trunkline.calls.meter import Account, Tally
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.route import Route, RouteTarget


class Admitted(Account, Protocol):
    """A call that may go on. `settle` must be called once, at its end, whatever happens."""

    @property
    def headers(self) -> tuple[tuple[str, str], ...]:
        """Give `x-ratelimit-*` for the answer."""

    def cost(self, target: RouteTarget, usage: Usage, tally: Tally) -> int | None:
        """Give what the call costs when its usage is known, in micro-dollars; None: no price is known."""


class Gate(Protocol):
    """Keys, rates and budgets."""

    async def caller(self, authorization: str, request_id: str) -> Caller:
        """Say who asks. Raises GatewayError `invalid_api_key`."""

    async def admit(self, caller: Caller, request: ChatRequest, route: Route) -> Admitted:
        """Let a call in. Raises GatewayError: `model_not_allowed`, `rate_limit_exceeded`, `budget_exceeded`."""

    def refused(self, request_id: str, caller: Caller | None, path: str, error: GatewayError) -> None:
        """Note a call that was not let in; `caller` None: nobody knows whose it is."""
