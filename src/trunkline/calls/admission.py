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
from trunkline.calls.pricing import Pricing
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.keys import ANONYMOUS, Key
from trunkline.core.money import LedgerRow
from trunkline.core.rates import Passed, RateLimiter, Verdict
from trunkline.core.route import Route, RouteTarget
from trunkline.policy.key_rules import check_model
from trunkline.policy.rate import headers as rate_headers
from trunkline.policy.rate import refusal

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
        self._billing = billing
        self._pricing = pricing
        self._rates = rates
        self._required = required
        self._watchers = watchers
        self.refusals: tuple[Callable[[Refusal], None], ...] = ()
        """Who hears of calls that are not let in; set by the composition root."""
        self.open = 0
        """Calls that were let in and have not ended."""
        self.open_streams = 0
        """Those of them that are streamed."""
        self._name = secrets.token_hex(8)
        self._numbers = itertools.count()

    async def caller(self, authorization: str, request_id: str) -> Caller:
        """Say who asks. Raises GatewayError `invalid_api_key`, `storage_unavailable`."""
        scheme, _, token = authorization.partition(" ")
        token = token.strip() if scheme.lower() == "bearer" else ""
        return Caller(request_id, await self._key(token))

    async def _key(self, token: str) -> Key:
        if token:
            key = self._keys.known(token)
            if key is not None:
                return key
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
        check_model(key, request.model)
        now_ms = time.time_ns() // 1_000_000
        amount = self._pricing.most(request, route, now_ms, budgeted=key.budgeted)
        if route.settings.hedge_s is not None and len(route.targets) > 1:
            amount *= 2  # two may be asked
        verdict, passed = None, None
        if key.rates:
            verdict, passed = await self._take(key, request, route)
        elif key.budgeted:
            self._rates.check(key)
        try:
            hold = self._billing.try_reserve(key, amount, now_ms) or await self._billing.reserve(key, amount, now_ms)
        except BaseException:
            if passed is not None:
                self._rates.end(passed, 0)
            raise
        self.open += 1
        self.open_streams += request.stream
        shown = rate_headers(verdict) if verdict is not None else ()
        ending = _Ending(self, hold, passed)
        return Admitted(ending, ending.lose, shown, self._cost)

    async def _take(self, key: Key, request: ChatRequest, route: Route) -> tuple[Verdict, Passed]:
        """Count a call in its key's rates. Raises GatewayError `rate_limit_exceeded`."""
        tokens = self._pricing.tokens(request) if key.rates.tokens is not None else 0
        images = request.n if route.kind != "text" else 0
        verdict, passed = await self._rates.take(key, tokens=tokens, images=images, streams=int(request.stream))
        if verdict.short is not None:
            raise refusal(verdict, tokens=tokens, images=images)
        return verdict, passed

    def refused(self, request_id: str, caller: Caller | None, path: str, error: GatewayError) -> None:
        """Note a call that was not let in; see the port."""
        refusal = Refusal(request_id, caller.key.id if caller else "", path, error.code, error.status)
        for watch in self.refusals:
            watch(refusal)

    def _cost(self, target: RouteTarget, usage: Usage, tally: Tally) -> int | None:
        cost = self._pricing.of(
            target, usage, tally.started_ms, tally.media, estimated=tally.estimated, made=tally.made
        )
        return cost.microusd

    def settle(self, hold: Hold, passed: Passed | None, settlement: Settlement) -> None:
        """End a call: its row goes to the ledger, its money is settled."""
        self.open -= 1
        self.open_streams -= settlement.request.stream
        row = self._row(settlement)
        self._billing.settle(hold, row)
        if passed is not None:
            self._rates.end(passed, settlement.usage.total_tokens if settlement.cache != "hit" else 0)
        for watch in self._watchers:
            watch(settlement, row)

    def lose(self, hold: Hold, settlement: Settlement) -> None:
        """Book a target that was broken off; its call goes on with what is left of the hold."""
        self._billing.book_beside(hold, self._row(settlement))

    def _row(self, settlement: Settlement) -> LedgerRow:
        usage, caller, target = settlement.usage, settlement.caller, settlement.target
        cost = self._pricing.cost(settlement)
        films = [one.film_s for one in settlement.made if one.film_s is not None]
        media = settlement.media if not settlement.error_code else 0  # what was made, and lost, is billed alone
        return LedgerRow(
            id=f"call_{self._name}{next(self._numbers):x}",  # a request id may be anything, and be sent twice
            key_id=caller.key.id,
            group_id=caller.key.group_id,
            started_ms=settlement.started_ms,
            ended_ms=settlement.ended_ms,
            request_id=caller.request_id,
            route=settlement.path,
            kind=settlement.kind,
            model=settlement.request.model,
            provider=target.target.provider if target else "",
            upstream_model=target.target.model if target else "",
            credential_id=settlement.credential,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            audio_input_tokens=usage.audio_input_tokens,
            audio_output_tokens=usage.audio_output_tokens,
            image_input_tokens=usage.image_input_tokens,
            image_output_tokens=usage.image_output_tokens,
            images=max(0, media - len(films)),
            video_ms=round(1000 * sum(films)) if media else 0,
            cost_microusd=cost.microusd,
            price_version=cost.version,
            estimated=settlement.estimated,
            streamed=settlement.request.stream,
            end_reason=settlement.end_reason,
            error_code=settlement.error_code,
            status=settlement.status,
            attempts=settlement.attempts,
            first_event_ms=settlement.first_event_ms,
            cache_hit=settlement.cache == "hit",
            repairs=msgspec.json.encode(settlement.repairs).decode() if settlement.repairs else "{}",
        )


class _Ending:
    """Settles one call; what `Admitted` carries."""

    __slots__ = ("_admission", "_hold", "_passed")

    def __init__(self, admission: Admission, hold: Hold, passed: Passed | None) -> None:
        self._admission = admission
        self._hold = hold
        self._passed = passed

    def __call__(self, settlement: Settlement) -> None:
        self._admission.settle(self._hold, self._passed, settlement)

    def lose(self, settlement: Settlement) -> None:
        """Book a target that was broken off."""
        self._admission.lose(self._hold, settlement)
