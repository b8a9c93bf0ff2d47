"""What calls cost: the most a call may cost before it, what it did cost after it."""

import math
from typing import Any

import msgspec

from trunkline.calls.meter import Settlement
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.provider import Price
from trunkline.core.route import Route
from trunkline.wire.read import as_count

_BYTES_PER_TOKEN = 3
"""For the upper bound of an input: fewer bytes a token than our own count assumes."""


class Pricing:
    """Prices of tokens, as the routes' targets carry them. USD for a million tokens are micro-dollars for one."""

    def __init__(self, reserve_output_tokens: int) -> None:
        self._reserve_output_tokens = reserve_output_tokens

    def most(self, request: ChatRequest, route: Route, *, budgeted: bool) -> int:
        """Give the upper bound of a call's cost, in micro-dollars, over all targets that may answer.

        Raises GatewayError (403) when a key with a budget asks for a model whose price is not known.
        """
        prices = [item.price for item in route.targets]
        if not budgeted:
            return 0
        if any(price is None or price.output_per_mtok is None for price in prices):
            told = f"the price of {request.model!r} is not known, so a key with a budget may not use it"
            raise GatewayError("model_not_allowed", told, param="model")
        outputs = self._most_outputs(request) * request.n
        inputs = sum(len(raw) for raw in map(bytes, request.fields.values())) // _BYTES_PER_TOKEN + 16
        bound = Usage(prompt_tokens=inputs, completion_tokens=outputs, total_tokens=inputs + outputs)
        return max(cost_of(bound, price) for price in prices if price is not None)

    def cost(self, settlement: Settlement) -> int | None:
        """Give what a call cost; None: no price is known."""
        target = settlement.target
        if target is None:
            return 0
        if settlement.usage.cost_microusd is not None and target.price is None:
            return settlement.usage.cost_microusd
        if target.price is None or target.price.output_per_mtok is None:
            return None
        return cost_of(settlement.usage, target.price)

    def version(self, settlement: Settlement) -> str:
        """Name the price that was used."""
        if settlement.target is None or settlement.target.price is None:
            return ""
        return settlement.target.provider.prices_from or "configuration"

    def _most_outputs(self, request: ChatRequest) -> int:
        for name in ("max_completion_tokens", "max_tokens"):
            raw = request.fields.get(name)
            asked: Any = msgspec.json.decode(raw) if raw is not None else None
            if as_count(asked):
                return as_count(asked)
        return self._reserve_output_tokens


def cost_of(usage: Usage, price: Price) -> int:
    """Price a usage in whole micro-dollars, rounded up; cached tokens are part of the prompt."""
    per_input = price.input_per_mtok or 0.0
    per_cached = price.cached_per_mtok if price.cached_per_mtok is not None else per_input
    plain = max(0, usage.prompt_tokens - usage.cached_tokens)
    total = (
        plain * per_input + usage.cached_tokens * per_cached + usage.completion_tokens * (price.output_per_mtok or 0.0)
    )
    return math.ceil(total - 1e-9)
