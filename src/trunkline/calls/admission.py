"""Letting calls in: the key, what it may, what its budget still holds; and the ledger row when a call has ended."""

import itertools
import secrets
import time
from collections.abc import Callable

import msgspec
from msgspec import Struct

from trunkline.calls.billing import Billing, Hold
from trunkline.calls.gate import Admitted
from trunkline.calls.keys import Keys
from trunkline.calls.meter import Settlement, Tally
from trunkline.calls.pricing import Cost, Prices, Pricing
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.keys import ANONYMOUS, Key
from trunkline.core.money import LedgerRow
from trunkline.core.rates import Passed, RateLimiter
from trunkline.core.route import Route, RouteTarget
from trunkline.policy.key_rules import check_model
from trunkline.policy.rate import headers as rate_headers
from trunkline.policy.rate import refusal

Headers = tuple[tuple[str, str], ...]
Watcher = Callable[[Settlement, LedgerRow], None]


class Refusal(Struct, frozen=True):
    """A call that was not let in: for its key, its rates or budget, or for what it says."""

    call: str
    key: str
    route: str
    error: str
    status: int


class Admission:
    """Implements `calls.gate.Gate` over virtual keys, budgets and the ledger.

    `required` says whether a key is needed now; without that, unknown keys count as none at all.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what letting in is made of
        self,
        keys: Keys,
        billing: Billing,
        pricing: Pricing,
        rates: RateLimiter,
        required: Callable[[], bool],
        watchers: tuple[Watcher, ...],
    ) -> None:
        self._keys = keys
        self.billing = billing
        self.pricing = pricing
        self.rates = rates
        self._required = required
        self.watchers = watchers
        self.refusals: tuple[Callable[[Refusal], None], ...] = ()
        """Who hears of calls that are not let in; set by the composition root."""
        self.open = 0
        """Calls that were let in and have not ended."""
        self.open_streams = 0
        """Those of them that are streamed."""
        self.name = f"call_{secrets.token_hex(8)}"
        self.numbers = itertools.count()

    async def caller(self, authorization: str, request_id: str) -> Caller:
        """Say who asks. Raises GatewayError `invalid_api_key`, `storage_unavailable`."""
        key = self._keys.known(authorization[7:]) if authorization.startswith("Bearer ") else None  # nearly always
        return Caller(request_id, key or await self._key(authorization))

    async def _key(self, authorization: str) -> Key:
        scheme, _, token = authorization.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        required = self._required()
        if not token:
            if required:
                raise GatewayError("invalid_api_key", "A key is needed: send `Authorization: Bearer sk-…`.")
            return ANONYMOUS
        try:
            return await self._keys.authenticate(token)
        except GatewayError:
            if required:
                raise
            return ANONYMOUS

    async def admit(self, caller: Caller, request: ChatRequest, route: Route) -> Admitted:
        """Let a call in; see the port."""
        key = caller.key
        if key.models:
            check_model(key, request.model)
        now_ms = time.time_ns() // 1_000_000
        prices = self.pricing.prices(route, now_ms)
        amount = self.pricing.most(request, prices, budgeted=key.budgeted)
        if route.settings.hedge_s is not None and len(route.targets) > 1:
            amount *= 2  # two may be asked
        passed: Passed | None = None
        shown: Headers = ()
        if key.limited:
            passed, shown = await self._take(key, request, route)
        elif key.budgeted:
            self.rates.check(key)
        try:
            hold = self.billing.try_reserve(key, amount, now_ms) or await self.billing.reserve(key, amount, now_ms)
        except BaseException:
            if passed is not None:
                self.rates.end(passed, 0)
            raise
        self.open += 1
        if request.stream:
            self.open_streams += 1
        return _Admitted(self, hold, prices, passed, shown)

    async def _take(self, key: Key, request: ChatRequest, route: Route) -> tuple[Passed, Headers]:
        """Count a call in its key's rates, and say what is left. Raises GatewayError `rate_limit_exceeded`."""
        tokens = self.pricing.tokens(request) if key.rates.tokens is not None else 0
        images = request.n if route.kind != "text" else 0
        verdict, passed = await self.rates.take(key, tokens=tokens, images=images, streams=int(request.stream))
        if verdict.short is not None:
            raise refusal(verdict, tokens=tokens, images=images)
        return passed, rate_headers(verdict)

    def refused(self, request_id: str, caller: Caller | None, path: str, error: GatewayError) -> None:
        """Note a call that was not let in; see the port."""
        refusal = Refusal(request_id, caller.key.id if caller else "", path, error.code, error.status)
        for watch in self.refusals:
            watch(refusal)


class _Admitted(Struct, eq=False):
    """One call that was let in, see the port; and what was set aside and counted for it."""

    gate: Admission
    hold: Hold
    prices: Prices
    passed: Passed | None
    headers: Headers
    priced: tuple[RouteTarget, Usage, Cost] | None = None
    """The answer, if its cost is known already: it is told before the call is settled."""

    def settle(self, settlement: Settlement) -> None:
        gate = self.gate
        gate.open -= 1
        if settlement.request.stream:
            gate.open_streams -= 1
        row = self._row(settlement)
        gate.billing.settle(self.hold, row)
        if self.passed is not None:
            gate.rates.end(self.passed, settlement.usage.total_tokens if settlement.cache != "hit" else 0)
        for watch in gate.watchers:
            watch(settlement, row)

    def lose(self, settlement: Settlement) -> None:  # the call goes on with what is left of the hold
        self.gate.billing.book_beside(self.hold, self._row(settlement))

    def cost(self, target: RouteTarget, usage: Usage, tally: Tally) -> int | None:
        cost = self.gate.pricing.of(self.prices, target, usage, tally)
        if not tally.media:
            self.priced = (target, usage, cost)
        return cost[0]

    def _row(self, settlement: Settlement) -> LedgerRow:
        gate, request, caller, usage = self.gate, settlement.request, settlement.caller, settlement.usage
        item, priced, key = settlement.target, self.priced, caller.key
        if item is not None:
            provider, model = item.target.provider, item.target.model
            if priced is not None and priced[0] is item and priced[1] is usage and not settlement.media:
                cost = priced[2]
            else:
                cost = gate.pricing.of(self.prices, item, usage, settlement)
        else:
            provider, model, cost = "", "", (0, "")
        images, video_ms = _media(settlement) if settlement.media else (0, 0)
        return LedgerRow(  # in the order of its fields: 36 names cost several times the row
            f"{gate.name}{next(gate.numbers):x}",  # a request id may be anything, and be sent twice
            key.id,
            settlement.started_ms,
            settlement.ended_ms,
            key.group_id,
            caller.request_id,
            "",  # no job
            settlement.path,
            settlement.kind,
            request.model,
            provider,
            model,
            settlement.credential,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.reasoning_tokens,
            usage.audio_input_tokens,
            usage.audio_output_tokens,
            usage.image_input_tokens,
            usage.image_output_tokens,
            images,
            video_ms,
            cost[0],
            cost[1],
            settlement.estimated or usage.estimated,
            request.stream,
            settlement.end_reason,
            settlement.error_code,
            settlement.status,
            settlement.attempts,
            settlement.first_event_ms,
            msgspec.json.encode(settlement.repairs).decode() if settlement.repairs else "{}",
            "{}",
            settlement.cache == "hit",
        )


def _media(settlement: Settlement) -> tuple[int, int]:
    """Give how many pictures were made, and how many milliseconds of film."""
    if settlement.error_code:  # what was made, and lost, is billed alone
        return 0, 0
    films = [one.film_s for one in settlement.made if one.film_s is not None]
    return max(0, settlement.media - len(films)), round(1000 * sum(films))
