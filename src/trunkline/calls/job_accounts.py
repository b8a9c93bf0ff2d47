"""A job's money: set aside when it is made, priced and booked when it ends, whatever crashes in between."""

import time
from collections.abc import Callable, Sequence

import msgspec
from msgspec import Raw, Struct

from trunkline.calls.billing import Billing
from trunkline.calls.media_answer import telling_of
from trunkline.calls.pricing import MOST_IMAGE_TOKENS, ROOM_TOKENS, Pricing, unpriced
from trunkline.core.events import Usage
from trunkline.core.jobs import Job, Outcome
from trunkline.core.keys import Key
from trunkline.core.media import MediaRecord, MediaRequest
from trunkline.core.money import END_OF_CODE, EndReason, LedgerRow
from trunkline.core.provider import ModelFacts
from trunkline.core.route import RouteTarget
from trunkline.policy.made import asked_shape, made_of, price_of, usual_seconds
from trunkline.policy.price import Tariff
from trunkline.policy.tokens import count_tokens

JobWatcher = Callable[[LedgerRow, str], None]
"""Hears of a job that has ended, with the `traceparent` of who asked for it."""
INPUT_IMAGE_TOKENS = 1600
ENDS: dict[str, EndReason] = {"completed": "completed", "cancelled": "cancelled", "submit_unknown": "crashed"}
CUT_OFF = frozenset({
    "upstream_timeout", "media_gone", "media_unavailable", "media_refused", "media_damaged", "storage_unavailable",
})  # fmt: skip
"""Ends of jobs that say nothing against the provider's having made, and billing, what was asked for."""


class Account(Struct, frozen=True):
    """What a new job keeps of its money: members of `core.jobs.Job`."""

    reservation_id: str
    price: Raw
    price_version: str


class JobAccounts:
    """Reserves and settles jobs; `settle` is what the engine calls at a job's end."""

    def __init__(self, billing: Billing, pricing: Pricing, watchers: tuple[JobWatcher, ...] = ()) -> None:
        self._billing = billing
        self._pricing = pricing
        self._watchers = watchers

    async def open(self, key: Key, request: MediaRequest, item: RouteTarget, job_id: str) -> Account:
        """Bind a job to its price and set the most it may cost aside, before the job is stored.

        Raises GatewayError `budget_exceeded`, `storage_unavailable`, `model_not_allowed` (a budget, but no price).
        """
        now_ms = time.time_ns() // 1_000_000
        tariff = self._pricing.tariff(item, now_ms)
        most = None if tariff is None else most_of(tariff, request, item.facts)
        if most is None and key.budgeted:
            raise unpriced(request.model)
        reservation_id = await self._billing.reserve_job(key, most or 0, job_id, now_ms)
        price = Raw(msgspec.json.encode(tariff))
        return Account(reservation_id, price, tariff.version if tariff else "")

    async def drop(self, account: Account) -> None:
        """Give back the money of a job that was not made after all. Raises StorageError."""
        await self._billing.release_job(account.reservation_id)

    async def settle(self, job: Job, outcome: Outcome) -> int | None:
        """Book an ended job; gives its cost, None: no price is known. May be called again. Raises StorageError."""
        tariff = msgspec.json.decode(job.price, type=Tariff | None) if job.price_version else None
        request = msgspec.json.decode(job.request, type=MediaRequest)
        cost, estimated = _cost(tariff, request, outcome)
        usage, telling = outcome.usage or Usage(), telling_of(job)
        ended_ms = time.time_ns() // 1_000_000
        row = LedgerRow(
            id=job.id,
            key_id=job.key_id,
            group_id=job.group_id,
            request_id=job.request_id,
            job_id=job.id,
            route=job.route,
            kind=job.kind,
            model=job.model,
            provider=job.provider,
            upstream_model=job.upstream_model,
            credential_id=job.credential_id,
            prompt_tokens=usage.prompt_tokens,
            completion_tokens=usage.completion_tokens,
            cached_tokens=usage.cached_tokens,
            image_input_tokens=usage.image_input_tokens,
            image_output_tokens=usage.image_output_tokens,
            images=sum(medium.kind == "image" for medium in outcome.media),
            video_ms=round(1000 * sum(m.duration_s or 0.0 for m in outcome.media if m.kind == "video")),
            cost_microusd=cost,
            price_version=job.price_version,
            estimated=estimated,
            streamed=telling.stream,
            end_reason=ENDS.get(outcome.state) or END_OF_CODE.get(outcome.error_code, "failed"),
            error_code=outcome.error_code,
            status=200 if outcome.state == "completed" else 502,
            started_ms=job.created_ms,
            ended_ms=ended_ms,
        )
        if await self._billing.settle_job(job.reservation_id, row):
            for watch in self._watchers:
                watch(row, telling.traceparent)
        return cost


def most_of(tariff: Tariff, request: MediaRequest, facts: ModelFacts) -> int | None:
    """Give the most that a request may cost; None: its price is not known."""
    shape = asked_shape(request, facts.tier)
    if request.kind == "video":
        seconds = request.seconds or max(facts.seconds, default=usual_seconds(request))
        return tariff.of_film(request.n, seconds, shape)
    inputs = count_tokens(request.prompt) + ROOM_TOKENS + len(request.inputs) * INPUT_IMAGE_TOKENS
    drawn = request.n * MOST_IMAGE_TOKENS
    tokens = tariff.of_tokens(Usage(prompt_tokens=inputs, completion_tokens=drawn, image_output_tokens=drawn))
    pictures = tariff.of_images(request.n, shape)
    # Where a picture has a price of its own, its tokens come to about that, not to the most they could.
    return tokens if pictures is None else pictures


def _cost(tariff: Tariff | None, request: MediaRequest, outcome: Outcome) -> tuple[int | None, bool]:
    """Give a job's cost, and whether it is an estimate."""
    usage, media = outcome.usage or Usage(), [medium for medium in outcome.media if medium.kind != "cover"]
    if not outcome.submitted:
        return 0, False
    if usage.cost_microusd is not None and not (tariff and tariff.configured):
        return usage.cost_microusd, False
    if tariff is None:
        return None, False
    counted = tariff.of_tokens(usage) if usage.completion_tokens else None
    if counted is not None or not media:
        # Of a job that was cut off nobody says whether the provider bills it.
        ended_so = outcome.state in ("cancelled", "submit_unknown") or outcome.error_code in CUT_OFF
        cut_off = counted is None and ended_so
        return (most_of(tariff, request, ModelFacts()), True) if cut_off else (counted or 0, False)
    return _of_media(tariff, request, media)


def _of_media(tariff: Tariff, request: MediaRequest, media: Sequence[MediaRecord]) -> tuple[int | None, bool]:
    costs = [price_of(tariff, made_of(request, medium)) for medium in media]
    known = [cost for cost in costs if cost is not None]
    if len(known) == len(costs):
        return sum(known), False
    return most_of(tariff, request, ModelFacts()), True  # tokens have a price, and none were counted
