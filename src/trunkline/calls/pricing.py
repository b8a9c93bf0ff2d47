"""What calls cost: the most a call may cost before it, what it did cost after it."""

from collections.abc import Callable, Mapping

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from trunkline.calls.meter import Settlement, Tally
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.provider import ModelKind
from trunkline.core.route import Route, RouteTarget
from trunkline.policy.made import price_of
from trunkline.policy.price import CONFIGURED, SLOT_MS, PriceBook, Shape, Tariff, TokenPrices
from trunkline.policy.tokens import count_prompt
from trunkline.wire.read import as_count

SHORT_BYTES = 4096
BYTES_PER_TOKEN = 3
"""For a quick bound of a short input: fewer bytes a token than our own count assumes."""
ROOM_TOKENS = 16
"""What providers add to an input."""
MOST_IMAGE_TOKENS = 8192
"""More than any provider counts for one picture that it makes."""
LONGEST_FILM_S = 15.0
"""As long as films over chat usually are, at most, where neither the client says it nor the catalogue."""
THEIR_OWN = "the provider's own count"
MOST_ROUTES = 4096
"""Of so many routes prices are remembered."""
PAID = 1
"""Set aside for a call that costs something, where nobody counts how much."""
_VIEW: Callable[[Raw], memoryview] = memoryview


Cost = tuple[int | None, str]
"""What a call cost, None: nobody knows; and where the price is from."""


class Prices(Struct, frozen=True, eq=False):
    """What the targets of a route cost in one half hour."""

    route: Route
    slot: int
    tariffs: tuple[tuple[RouteTarget, Tariff | None], ...]
    """None: no price is known."""
    known: bool
    """All prices are."""
    free: bool
    """All are known, and nothing costs anything."""
    plain: tuple[TokenPrices, ...]
    """What the most that a call may cost is made out by, for each target; empty: it takes more."""


class Pricing:
    """Prices of calls by the targets of their routes."""

    def __init__(self, reserve_output_tokens: int, book: PriceBook) -> None:
        self._reserve_output_tokens = reserve_output_tokens
        self._book = book
        self._known: dict[str, Prices] = {}

    def prices(self, route: Route, now_ms: int) -> Prices:
        """Give what a route's targets cost now."""
        prices = self._known.get(route.name)
        if prices is not None and prices.route is route and prices.slot == now_ms // SLOT_MS:
            return prices
        if len(self._known) >= MOST_ROUTES:
            self._known.clear()
        tariffs = [self.tariff(item, now_ms) for item in route.targets]
        plain = [tariff.plain if tariff is not None and route.kind == "text" else None for tariff in tariffs]
        prices = self._known[route.name] = Prices(
            route,
            now_ms // SLOT_MS,
            tuple(zip(route.targets, tariffs, strict=True)),
            known=None not in tariffs,
            free=all(tariff is not None and tariff.free for tariff in tariffs),
            plain=() if None in plain else tuple(price for price in plain if price is not None),
        )
        return prices

    def most(self, request: ChatRequest, prices: Prices, *, budgeted: bool) -> int:
        """Give the upper bound of a call's cost, in micro-dollars, over all targets that may answer; 0: it is free.

        Without a budget only whether it is free matters. Raises GatewayError (403) when a key with a budget asks for a
        model whose price is not known.
        """
        if not budgeted:
            return 0 if prices.free else PAID
        if not prices.known:
            raise unpriced(request.model)
        if prices.free:
            return 0
        most = 0
        if prices.plain:
            inputs, outputs = self._most_tokens(request)
            for price in prices.plain:
                most = max(most, price.of(inputs, outputs))
            return most
        bound = self._bound(request)
        for item, tariff in prices.tariffs:
            if tariff is not None:
                film_s = request.film_s or max(item.facts.seconds, default=LONGEST_FILM_S)
                most = max(most, self._most(tariff, bound, request.n, prices.route.kind, film_s))
        return most

    def tariff(self, item: RouteTarget, now_ms: int) -> Tariff | None:
        """Give what a target costs; None: no price is known."""
        known = item.price is not None and item.price is item.facts.price
        source = item.provider.prices_from or "catalogue" if known else CONFIGURED
        return self._book.tariff(item.target, item.price, now_ms, source)

    def tokens(self, request: ChatRequest) -> int:
        """Give how many tokens a request counts for in rates before its answer: its input, and the most it asks for."""
        return count_prompt(request) + request.n * _asked_outputs(request.fields)

    def of(self, prices: Prices, item: RouteTarget, usage: Usage, tally: Tally | Settlement) -> Cost:
        """Price what a target did: as it says itself, unless the operator set a price; else by media or tokens.

        The prices of the half hour count in which the call began.
        """
        if tally.started_ms // SLOT_MS != prices.slot:
            prices = self.prices(prices.route, tally.started_ms)
        for priced, known in prices.tariffs:
            if priced is item:
                tariff = known
                break
        else:
            tariff = self.tariff(item, tally.started_ms)
        if usage.cost_microusd is not None and not (tariff and tariff.configured):
            return usage.cost_microusd, THEIR_OWN
        if tariff is None:
            return None, ""
        if tally.media:
            cost = _of_media(tariff, item, tally)
            if cost is not None:
                return cost, tariff.version
        elif not tariff.tokens:
            return 0, tariff.version
        return tariff.of_tokens(usage), tariff.version

    def _most(self, tariff: Tariff, bound: Usage, n: int, kind: ModelKind, film_s: float) -> int:
        if kind == "text":
            thought = replace(bound, reasoning_tokens=bound.completion_tokens, audio_output_tokens=0)
            return max(tariff.of_tokens(bound) or 0, tariff.of_tokens(thought) or 0)
        drawn = Usage(
            prompt_tokens=bound.prompt_tokens,
            completion_tokens=n * MOST_IMAGE_TOKENS,
            image_output_tokens=n * MOST_IMAGE_TOKENS,
        )
        made = tariff.of_film(n, film_s, Shape()) if kind == "video" else tariff.of_images(n, Shape())
        return max(tariff.of_tokens(drawn) or 0, made or 0)

    def _most_tokens(self, request: ChatRequest) -> tuple[int, int]:
        """Give the most tokens that a request may have, and its answer."""
        fields = request.fields
        size = sum(map(len, map(_VIEW, fields.values())))
        if size <= SHORT_BYTES:
            inputs = size // BYTES_PER_TOKEN
        else:  # perhaps for its pictures, which are not text
            messages = fields.get("messages")
            inputs = count_prompt(request)
            inputs += inputs // 2  # our own count may be too low: JSON has 2.9 bytes a token
            inputs += (size - (len(memoryview(messages)) if messages is not None else 0)) // BYTES_PER_TOKEN
        return inputs + ROOM_TOKENS, (_asked_outputs(fields) or self._reserve_output_tokens) * request.n

    def _bound(self, request: ChatRequest) -> Usage:
        """Give the most tokens that a request may come to, by kind."""
        fields = request.fields
        inputs, outputs = self._most_tokens(request)
        written = inputs if b'"cache_control"' in bytes(request.words or b"") else 0
        modalities = fields.get("modalities")
        spoken = outputs if modalities is not None and b'"audio"' in bytes(modalities) else 0
        return Usage(
            prompt_tokens=inputs,
            completion_tokens=outputs,
            total_tokens=inputs + outputs,
            cache_write_tokens=written,
            cache_write_1h_tokens=written,
            audio_output_tokens=spoken,
        )


def _of_media(tariff: Tariff, item: RouteTarget, tally: Tally | Settlement) -> int | None:
    """Price what was made by the picture or film; None: its tokens are what counts."""
    if tariff.tokens and not tally.estimated:
        return None
    if not tally.made:
        return tariff.of_images(tally.media, Shape(tier=item.facts.tier))
    prices = [price_of(tariff, one) for one in tally.made]
    known = [price for price in prices if price is not None]
    return sum(known) if len(known) == len(prices) else None


def _asked_outputs(fields: Mapping[str, Raw]) -> int:
    """Give the most tokens that an answer may have, as far as the request says; 0: it does not.

    Of two that it says the larger one counts: not every provider reads both.
    """
    if "max_tokens" not in fields and "max_completion_tokens" not in fields:
        return 0
    said = (fields.get("max_completion_tokens"), fields.get("max_tokens"))
    return max(as_count(msgspec.json.decode(raw)) for raw in said if raw is not None)


def unpriced(model: str) -> GatewayError:
    """Give the error for a model without a price, asked for with a key that has a budget."""
    told = f"the price of {model!r} is not known, so a key with a budget may not use it; an operator can set `price`"
    return GatewayError("model_not_allowed", told, param="model")
