"""A job's money, on a real database: bound to its price, reserved, booked once at what was made."""

from pathlib import Path

import msgspec
import pytest

from trunkline.calls.billing import Billing
from trunkline.calls.inbox import Inbox
from trunkline.calls.job_accounts import JobAccounts
from trunkline.calls.life import Life
from trunkline.calls.pricing import Pricing
from trunkline.config.prices import read_price_table
from trunkline.core.chat import Target
from trunkline.core.errors import GatewayError
from trunkline.core.events import Usage
from trunkline.core.jobs import Job, Outcome
from trunkline.core.keys import Key
from trunkline.core.media import MediaKind, MediaRecord, MediaRequest
from trunkline.core.money import Budget
from trunkline.core.provider import ModelFacts, Price, Provider
from trunkline.core.route import RouteTarget
from trunkline.policy.price import PriceBook
from trunkline.storage.journal import FileJournal
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.leases import SqlLeases, SqlSignals
from trunkline.storage.sql.money import SqlMoney

PICTURES = Price(per_image={"1K": 0.02, "2K": 0.04, "high 1024x1024": 0.1})
TOKENS = Price(input_per_mtok=5, image_output_per_mtok=30)
FILMS = Price(per_second={"720p": 0.1, "1080p": 0.3})
KEY = Key(id="key_1", name="a", budget=Budget(total=10**7))


class Rig:
    def __init__(self, database: Database, journal: Path) -> None:
        self.jobs, self.money = SqlJobs(database), SqlMoney(database)
        billing = Billing(self.money, Life(SqlLeases(database), "a"), FileJournal(journal), Inbox(SqlSignals(database)))
        self.accounts = JobAccounts(billing, Pricing(4096, PriceBook(read_price_table)))

    async def start(self, request: MediaRequest, price: Price | None, key: Key = KEY) -> Job:
        target = Target(provider="p", model="m", base_url="https://a.example", dialect="x", side=request.kind)
        facts = ModelFacts(kind=request.kind, price=price, seconds=(4, 8))
        item = RouteTarget(target, Provider(prices_from="a list of prices"), "none", facts, price)
        account = await self.accounts.open(key, request, item, "job_1")
        job = Job(
            id="job_1", kind=request.kind, key_id=key.id, request=msgspec.Raw(msgspec.json.encode(request)),
            reservation_id=account.reservation_id, price=account.price, price_version=account.price_version,
        )  # fmt: skip
        return (await self.jobs.add(job))[0]

    async def reserved(self) -> int:
        return (await self.money.spend("key_1", ["total"]))[0].reserved

    async def end(self, job: Job, outcome: Outcome) -> int | None:
        """Settle, three times; what is booked is booked once."""
        costs = [await self.accounts.settle(job, outcome) for _ in range(3)]
        assert costs == costs[:1] * 3
        (row,) = await self.money.rows()
        (spend,) = await self.money.spend("key_1", ["total"])
        assert (spend.spent, spend.reserved, spend.calls) == (costs[0] or 0, 0, 1)
        assert (row.id, row.job_id, row.cost_microusd) == ("job_1", "job_1", costs[0])
        stored = await self.jobs.get("job_1")
        assert stored is not None
        assert (stored.billed, stored.cost_microusd) == (True, costs[0])
        return costs[0]


@pytest.fixture
def rig(database: Database, tmp_path: Path) -> Rig:
    return Rig(database, tmp_path / "journal")


def drawing(**changes: object) -> MediaRequest:
    return MediaRequest(kind="image", prompt="a cat", model="m", **changes)  # type: ignore[arg-type]


def filming(**changes: object) -> MediaRequest:
    return MediaRequest(kind="video", prompt="a cat", model="m", **changes)  # type: ignore[arg-type]


def medium(
    kind: MediaKind = "image", width: int = 1024, height: int = 1024, seconds: float | None = None
) -> MediaRecord:
    facts = {"sha256": "s", "storage_key": "s", "mime_type": "x", "bytes": 1}
    return MediaRecord(id="img_1", kind=kind, width=width, height=height, duration_s=seconds, **facts)  # type: ignore[arg-type]


def done(*media: MediaRecord, usage: Usage | None = None) -> Outcome:
    return Outcome(state="completed", submitted=True, media=media, usage=usage)


async def test_pictures_cost_what_was_made(rig: Rig) -> None:
    job = await rig.start(drawing(n=3, tier="2K"), PICTURES)
    assert (await rig.reserved(), job.price_version) == (120_000, "a list of prices")
    assert await rig.end(job, done(medium(), medium(), medium("cover"))) == 80_000


async def test_a_picture_asked_for_without_a_tier_is_priced_as_it_is(rig: Rig) -> None:
    job = await rig.start(drawing(), PICTURES)
    assert await rig.reserved() == 100_000
    assert await rig.end(job, done(medium(width=1376, height=768))) == 20_000


async def test_quality_and_size(rig: Rig) -> None:
    job = await rig.start(drawing(quality="high", width=1024, height=1024), PICTURES)
    assert await rig.end(job, done(medium())) == 100_000


async def test_tokens_are_the_price_where_they_are_counted(rig: Rig) -> None:
    job = await rig.start(drawing(), TOKENS)
    assert await rig.reserved() > 8192 * 30
    usage = Usage(prompt_tokens=10, completion_tokens=1000, image_output_tokens=1000)
    assert await rig.end(job, done(medium(), usage=usage)) == 50 + 30_000


async def test_films_cost_their_seconds(rig: Rig) -> None:
    job = await rig.start(filming(tier="720p"), FILMS)
    assert await rig.reserved() == 800_000
    assert await rig.end(job, done(medium("video", 1280, 720, 4.5))) == 450_000


async def test_what_the_provider_says_counts(rig: Rig) -> None:
    job = await rig.start(drawing(), PICTURES)
    assert await rig.end(job, done(medium(), usage=Usage(cost_microusd=33_000))) == 33_000


@pytest.mark.parametrize("code", ["media_gone", "media_unavailable", "upstream_timeout"])
async def test_a_film_that_was_made_and_cannot_be_fetched_costs_what_was_asked_for(rig: Rig, code: str) -> None:
    job = await rig.start(filming(tier="720p", seconds=4.0), FILMS)
    assert await rig.end(job, Outcome(state="failed", error_code=code, submitted=True)) == 400_000
    (row,) = await rig.money.rows()
    assert (row.estimated, row.error_code, row.video_ms) == (True, code, 0)


@pytest.mark.parametrize(
    ("state", "submitted", "cost", "estimated"),
    [
        ("failed", True, 0, False),
        ("failed", False, 0, False),
        ("cancelled", False, 0, False),
        ("cancelled", True, 100_000, True),
        ("submit_unknown", True, 100_000, True),
    ],
)
async def test_a_job_that_made_nothing(rig: Rig, state: str, submitted: bool, cost: int, estimated: bool) -> None:  # noqa: FBT001
    job = await rig.start(drawing(), PICTURES)
    assert await rig.end(job, Outcome(state=state, submitted=submitted)) == cost  # type: ignore[arg-type]
    assert (await rig.money.rows())[0].estimated is estimated


async def test_a_job_without_a_price(rig: Rig) -> None:
    with pytest.raises(GatewayError, match="price of 'm' is not known"):
        await rig.start(drawing(), None)
    job = await rig.start(drawing(), None, Key(id="key_1", name="a"))
    assert await rig.end(job, done(medium())) is None


async def test_a_job_that_the_budget_does_not_allow(rig: Rig) -> None:
    with pytest.raises(GatewayError) as error:
        await rig.start(filming(), FILMS, Key(id="key_1", name="a", budget=Budget(day=100)))
    assert (error.value.status, error.value.code) == (402, "budget_exceeded")
    assert await rig.reserved() == 0


async def test_a_job_that_was_not_made_after_all(rig: Rig) -> None:
    target = Target(provider="p", model="m", base_url="https://a.example", dialect="x", side="image")
    item = RouteTarget(target, Provider(), "none", price=PICTURES)
    account = await rig.accounts.open(KEY, drawing(), item, "job_1")
    assert await rig.reserved() > 0
    await rig.accounts.drop(account)
    assert await rig.reserved() == 0
