"""What calls cost: the most a call may cost before it, what it did cost after it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.calls.meter import Settlement
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.route import Route, RouteTarget
from trunkline.policy.made import Made, price_of
from trunkline.policy.price import CONFIGURED, PriceBook, Shape, Tariff
from trunkline.policy.tokens import count_request
from trunkline.wire.read import as_count

SHORT_BYTES = 4096
BYTES_PER_TOKEN = 3
"""For a quick bound of a short input: fewer bytes a token than our own count assumes."""
ROOM_TOKENS = 16
"""What providers add to an input."""
MOST_IMAGE_TOKENS = 8192
"""More than any provider counts for one picture that it makes."""
LONGEST_FILM_S = 15.0
"""As long as films over chat usually are, at most."""
THEIR_OWN = "the provider's own count"
PAID = 1
"""Set aside for a call that costs something, where nobody counts how much."""


class Cost(Struct, frozen=True):
    """What a call cost, None: nobody knows; and where the price is from."""

    microusd: int | None
    version: str = ""


class Pricing:
    """Prices of calls by the targets of their routes."""

    def __init__(self, reserve_output_tokens: int, book: PriceBook) -> None:
        self._reserve_output_tokens = reserve_output_tokens
        self._book = book

    def most(self, request: ChatRequest, route: Route, now_ms: int, *, budgeted: bool) -> int:
        """Give the upper bound of a call's cost, in micro-dollars, over all targets that may answer; 0: it is free.

        Without a budget only whether it is free matters. Raises GatewayError (403) when a key with a budget asks for a
        model whose price is not known.
        """
        tariffs = [self.tariff(item, now_ms) for item in route.targets]
        if not budgeted:
            return 0 if all(tariff is not None and tariff.free for tariff in tariffs) else PAID
        known = [tariff for tariff in tariffs if tariff is not None]
        if len(known) < len(tariffs):
            raise unpriced(request.model)
        if all(tariff.free for tariff in known):
            return 0
        bound = self._bound(request)
        return max(self._most(tariff, bound, request.n, route) for tariff in known)

    def tariff(self, item: RouteTarget, now_ms: int) -> Tariff | None:
        """Give what a target costs; None: no price is known."""
        known = item.price is not None and item.price is item.facts.price
        source = item.provider.prices_from or "catalogue" if known else CONFIGURED
        return self._book.tariff(item.target, item.price, now_ms, source)

    def tokens(self, request: ChatRequest) -> int:
        """Give how many tokens a request counts for in rates before its answer: its input, and the most it asks for."""
        messages = request.fields.get("messages")
        inputs = count_request(msgspec.json.decode(messages)) if messages is not None else 0
        return inputs + request.n * self._asked_outputs(request)

    def cost(self, settlement: Settlement) -> Cost:
        """Give what a call cost."""
        item = settlement.target
        if item is None:
            return Cost(0)
        return self.of(
            item,
            settlement.usage,
            settlement.started_ms,
            settlement.media,
            estimated=settlement.estimated,
            made=settlement.made,
        )

    def of(  # noqa: PLR0913 - what was done
        self,
        item: RouteTarget,
        usage: Usage,
        now_ms: int,
        media: int = 0,
        *,
        estimated: bool = False,
        made: Sequence[Made] = (),
    ) -> Cost:
        """Price what a target did: as it says itself, unless the operator set a price; else by media or tokens.

        `media` counts pictures in a chat; `made` says more of what a model of pictures or films made.
        """
        tariff = self.tariff(item, now_ms)
        if usage.cost_microusd is not None and not (tariff and tariff.configured):
            return Cost(usage.cost_microusd, THEIR_OWN)
        if tariff is None:
            return Cost(None)
        if not tariff.tokens and not media:
            return Cost(0, tariff.version)
        if media and (estimated or not tariff.tokens):
            shape = Shape(tier=item.facts.tier)
            prices = [price_of(tariff, one) for one in made] if made else [tariff.of_images(media, shape)]
            known = [price for price in prices if price is not None]
            if len(known) == len(prices):
                return Cost(sum(known), tariff.version)
        return Cost(tariff.of_tokens(usage), tariff.version)

    def _most(self, tariff: Tariff, bound: Usage, n: int, route: Route) -> int:
        if route.kind == "text":
            return tariff.of_tokens(bound) or 0
        drawn = Usage(
            prompt_tokens=bound.prompt_tokens,
            completion_tokens=n * MOST_IMAGE_TOKENS,
            image_output_tokens=n * MOST_IMAGE_TOKENS,
        )
        made = tariff.of_film(n, LONGEST_FILM_S, Shape()) if route.kind == "video" else tariff.of_images(n, Shape())
        return max(tariff.of_tokens(drawn) or 0, made or 0)

    def _bound(self, request: ChatRequest) -> Usage:
        """Give the most tokens that a request may come to."""
        size = sum(map(len, map(bytes, request.fields.values())))
        if size <= SHORT_BYTES:
            inputs = size // BYTES_PER_TOKEN
        else:  # perhaps for its pictures, which are not text
            messages = request.fields.get("messages")
            inputs = count_request(msgspec.json.decode(messages)) if messages is not None else 0
            inputs += inputs // 2  # our own count may be too low: JSON has 2.9 bytes a token
            inputs += (
                sum(len(bytes(raw)) for name, raw in request.fields.items() if name != "messages") // BYTES_PER_TOKEN
            )
        outputs = (self._asked_outputs(request) or self._reserve_output_tokens) * request.n
        inputs += ROOM_TOKENS
        written = inputs if _holds(request, "messages", b'"cache_control"') else 0
        return Usage(
            prompt_tokens=inputs,
            completion_tokens=outputs,
            total_tokens=inputs + outputs,
            cache_write_tokens=written,
            cache_write_1h_tokens=written,
            audio_output_tokens=outputs if _holds(request, "modalities", b'"audio"') else 0,
        )

    def _asked_outputs(self, request: ChatRequest) -> int:
        for name in ("max_completion_tokens", "max_tokens"):
            raw = request.fields.get(name)
            asked: Any = msgspec.json.decode(raw) if raw is not None else None
            if as_count(asked):
                return as_count(asked)
        return 0


def _holds(request: ChatRequest, member: str, what: bytes) -> bool:
    raw = request.fields.get(member)
    return raw is not None and what in bytes(raw)


def unpriced(model: str) -> GatewayError:
    """Give the error for a model without a price, asked for with a key that has a budget."""
    told = f"the price of {model!r} is not known, so a key with a budget may not use it; an operator can set `price`"
    return GatewayError("model_not_allowed", told, param="model")
