"""Prices: as the library genai-prices says, in whole micro-dollars, rounded up; our own for pictures and films."""

import random
import runpy
from datetime import UTC, datetime
from decimal import ROUND_CEILING, Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from genai_prices import Usage as TheirUsage
from genai_prices import calc_price
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given, settings
from hypothesis import strategies as st

from trunkline.config.prices import read_price_table
from trunkline.core.chat import Target
from trunkline.core.events import Usage
from trunkline.core.money import microusd
from trunkline.core.provider import Price
from trunkline.policy.price import PriceBook, Shape, Tariff, _token_prices, of_media
from trunkline.policy.price_table import PriceTable, tiers_of

NOON = 1_795_003_200_000  # 2026-11-18 12:00 UTC
OPENAI, ANTHROPIC = "https://api.openai.com/v1", "https://api.anthropic.com"


def tariff(base_url: str, model: str, price: Price | None = None, now_ms: int = NOON) -> Tariff | None:
    target = Target(provider="p", model=model, base_url=base_url, dialect="openai_chat")
    return PriceBook(read_price_table).tariff(target, price, now_ms)


def test_the_shipped_table_is_what_the_library_says(tmp_path: Path) -> None:
    made = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "make_prices.py"))
    out = tmp_path / "prices.jsonl"
    made["main"].__globals__["OUT"] = out
    made["main"]()
    assert out.read_bytes() == read_price_table(), "renew it: make prices"


@pytest.mark.parametrize(
    ("base_url", "model"),
    [
        (OPENAI, "gpt-4o-mini"),
        (OPENAI, "gpt-4o-mini-2024-07-18"),
        (OPENAI, "GPT-4o"),
        (OPENAI, "gpt-5"),
        (ANTHROPIC, "claude-sonnet-4-5-20250929"),
        (ANTHROPIC, "claude-opus-4-6"),
        ("https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-pro"),
        ("https://generativelanguage.googleapis.com/v1beta", "gemini-2.5-flash-image"),
        ("https://api.x.ai/v1", "grok-4"),
        ("https://api.deepseek.com", "deepseek-chat"),
        ("https://openrouter.ai/api/v1", "openai/gpt-4o-mini"),
        ("https://api.groq.com/openai/v1", "llama-3.3-70b-versatile"),
        ("https://mine.openai.azure.com/openai/v1", "gpt-4o"),
        ("https://open.bigmodel.cn/api/paas/v4", "glm-4-air"),
    ],
)
@settings(max_examples=20)
@given(prompt=st.integers(1, 300_000), completion=st.integers(0, 9_000), part=st.floats(0, 1))
def test_tokens_cost_what_the_library_says(
    base_url: str, model: str, prompt: int, completion: int, part: float
) -> None:
    cached = int(prompt * part)
    usage = TheirUsage(input_tokens=prompt, output_tokens=completion, cache_read_tokens=cached)
    moment = datetime.fromtimestamp(NOON / 1000, UTC)
    theirs = calc_price(usage, model, provider_api_url=base_url, genai_request_timestamp=moment)
    ours = known(base_url, model).of_tokens(
        Usage(prompt_tokens=prompt, completion_tokens=completion, cached_tokens=cached)
    )
    assert ours == int((theirs.total_price * 1_000_000).to_integral_value(rounding=ROUND_CEILING))


PARTS = {
    "cached_tokens": "cache_read_tokens",
    "cached_audio_tokens": "cache_audio_read_tokens",
    "cache_write_tokens": "cache_write_tokens",
    "cache_write_1h_tokens": "cache_write_1h_tokens",
    "audio_input_tokens": "input_audio_tokens",
    "image_input_tokens": "input_image_tokens",
    "reasoning_tokens": "output_reasoning_tokens",
    "audio_output_tokens": "output_audio_tokens",
    "image_output_tokens": "output_image_tokens",
}
KINDS: tuple[tuple[str, ...], ...] = (
    (),
    ("cached_tokens", "cache_write_tokens", "reasoning_tokens"),
    ("cache_write_1h_tokens", "audio_output_tokens"),
    ("audio_input_tokens", "reasoning_tokens", "image_output_tokens"),
    ("image_input_tokens", "audio_output_tokens"),
    ("cached_tokens", "audio_input_tokens"),
)
"""Parts that are counted in one call."""


def parts_of(chance: random.Random, kinds: tuple[str, ...], prompt: int, completion: int) -> dict[str, Any]:
    """Cut the prompt's and the completion's tokens at random."""
    found: dict[str, Any] = {}
    for kind in kinds:
        if "reasoning" in kind or "output" in kind:
            found[kind] = chance.randint(0, completion)
            completion -= found[kind]
        else:
            found[kind] = chance.randint(0, prompt)
            prompt -= found[kind]
    return found


def test_every_model_costs_what_the_library_says() -> None:
    chance = random.Random(20261128)
    table = PriceTable(read_price_table())
    seen = 0
    for provider in get_snapshot().providers:
        entries = {entry.id: entry for entry in table._models(provider.id)}
        for model in provider.models:
            current = (
                [price for price in entries[model.id].prices if price.in_force("2026-11-18", "12:00")]
                if (model.id in entries)
                else []
            )
            if not current or current[-1].input is None:
                continue
            tariff = Tariff("", tuple((start, _token_prices(usd)) for start, usd in tiers_of(current[-1])))
            library = model.get_prices(datetime.fromtimestamp(NOON / 1000, UTC))
            for kinds in KINDS:
                prompt, completion = chance.randint(1, chance.choice((9, 9_000, 400_000))), chance.randint(0, 9_000)
                parts = parts_of(chance, kinds, prompt, completion)
                theirs = {PARTS[kind]: number for kind, number in parts.items()}
                if longer := parts.get("cache_write_1h_tokens"):
                    theirs["cache_write_tokens"] = parts["cache_write_tokens"] = longer
                if heard := min(parts.get("cached_tokens", 0), parts.get("audio_input_tokens", 0)):
                    parts["cached_audio_tokens"] = theirs["cache_audio_read_tokens"] = heard
                cost = library.calc_price(TheirUsage(input_tokens=prompt, output_tokens=completion, **theirs))
                wanted = cost["total_price"] * 1_000_000
                ours = tariff.of_tokens(Usage(prompt_tokens=prompt, completion_tokens=completion, **parts))
                assert ours is not None
                assert 0 <= ours - wanted < Decimal("1.01"), (
                    provider.id,
                    model.id,
                    parts,
                )  # one of their prices is 0.18000000000000002
                seen += 1
    assert seen > 10_000


BOOK = PriceBook(read_price_table)


def known(base_url: str, model: str, price: Price | None = None, now_ms: int = NOON) -> Tariff:
    found = BOOK.tariff(Target(provider=base_url, model=model, base_url=base_url, dialect="x"), price, now_ms)
    assert found is not None
    return found


def test_a_price_by_the_time_of_day() -> None:
    cheap, dear = NOON - 12 * 3_600_000, NOON  # 00:00 and 12:00 UTC
    usage = Usage(prompt_tokens=1_000_000)
    prices = {known("https://api.deepseek.com", "deepseek-chat", None, now).of_tokens(usage) for now in (cheap, dear)}
    assert prices == {135_000, 270_000}


def test_unknown_models_and_addresses_have_no_price() -> None:
    assert tariff(OPENAI, "no-such-model") is None
    assert tariff("https://relay.example.com/v1", "gpt-4o-mini") is None
    assert tariff("https://api.openai.com.evil.example/v1", "no-such") is None


def test_what_is_configured_wins() -> None:
    usage = Usage(prompt_tokens=3, completion_tokens=2, cached_tokens=1)
    free = known(OPENAI, "gpt-4o", Price(input_per_mtok=0, output_per_mtok=0))
    assert (free.of_tokens(usage), free.version) == (0, "configuration")
    own = known("https://relay.example.com/v1", "x", Price(input_per_mtok=2, output_per_mtok=10, cached_per_mtok=0.5))
    assert own.of_tokens(usage) == 25  # 2 x 2 + 0.5 + 2 x 10, rounded up
    assert "genai-prices" in known(OPENAI, "gpt-4o", Price(per_image=0.04)).version


def test_a_changed_price_is_taken_up_at_once() -> None:
    first, second = Price(input_per_mtok=1), Price(input_per_mtok=2)
    usage = Usage(prompt_tokens=10)
    assert [known("https://a.example", "m", price).of_tokens(usage) for price in (first, second, first)] == [10, 20, 10]


def test_kinds_of_tokens_have_their_own_prices() -> None:
    price = Price(input_per_mtok=5, image_input_per_mtok=8, image_output_per_mtok=30)
    drawn = known("https://a.example", "draw", price)
    usage = Usage(prompt_tokens=10, image_input_tokens=4, completion_tokens=100, image_output_tokens=90)
    assert drawn.of_tokens(usage) == 6 * 5 + 4 * 8 + 90 * 30 + 10 * 30


TOLD_TWICE = [
    (Usage(prompt_tokens=100, cached_tokens=60, audio_input_tokens=60), 60 * 1 + 40 * 20),
    (Usage(prompt_tokens=100, cached_tokens=100, audio_input_tokens=100), 100 * 1),
    (Usage(prompt_tokens=100, cached_tokens=100, image_input_tokens=30), 100 * 1),
    (Usage(prompt_tokens=100, cached_tokens=60, audio_input_tokens=60, image_input_tokens=40), 60 * 1 + 40 * 20),
    (Usage(prompt_tokens=100, cached_tokens=60, cached_audio_tokens=60, audio_input_tokens=60), 60 * 1 + 40 * 4),
    (Usage(prompt_tokens=100, cached_tokens=60, cached_audio_tokens=50, audio_input_tokens=60), 60 + 10 * 20 + 30 * 4),
    (Usage(completion_tokens=100, reasoning_tokens=60, audio_output_tokens=60), 60 * 8 + 40 * 30),
    (Usage(completion_tokens=100, audio_output_tokens=60, image_output_tokens=60), 60 * 30 + 40 * 8),
    (Usage(prompt_tokens=10, completion_tokens=5, reasoning_tokens=50, total_tokens=65), 10 * 4 + 55 * 8),
    (Usage(prompt_tokens=10, completion_tokens=50, reasoning_tokens=50, total_tokens=60), 10 * 4 + 50 * 8),
]


@pytest.mark.parametrize(("usage", "cost"), TOLD_TWICE)
def test_a_token_that_is_told_under_two_names_is_paid_once(usage: Usage, cost: int) -> None:
    price = Price(
        input_per_mtok=4, output_per_mtok=8, cached_per_mtok=1, audio_input_per_mtok=20, audio_output_per_mtok=30
    )
    assert known("https://twice.example", "x", price).of_tokens(usage) == cost


@pytest.mark.parametrize(
    ("shape", "price"),
    [
        (Shape(quality="high", size="1024x1024"), 3),
        (Shape(quality="low", size="1024x1024"), 2),
        (Shape(size="512x512"), 9),
        (Shape(tier="2K"), 4),
        (Shape(quality="HD"), 5),
        (Shape(tier="8K"), 9),
    ],
)
def test_pictures_by_the_most_exact_name_else_the_dearest(shape: Shape, price: int) -> None:
    table = {"high 1024x1024": 3, "1024x1024": 2, "2k": 4, "hd": 5, "x": 9}
    assert of_media(table, shape) == price


def test_pictures_and_films() -> None:
    media = known("https://a.example", "m", Price(per_image={"2K": 0.134, "4K": 0.24}, per_second={"720p": 0.1}))
    assert media.of_tokens(Usage(prompt_tokens=1)) is None
    assert media.of_images(2, Shape(tier="2K")) == 268_000
    assert media.of_film(1, 4.5, Shape(tier="720p")) == 450_000
    whole = known("https://b.example", "m", Price(per_video=0.2))
    assert whole.of_film(3, 5, Shape()) == 600_000
    assert whole.of_images(1, Shape()) is None


def test_the_table_is_read_when_it_is_needed() -> None:
    def read() -> bytes:
        raise AssertionError

    target = Target(provider="p", model="m", base_url="https://a.example", dialect="x")
    assert PriceBook(read).tariff(target, Price(input_per_mtok=1), NOON)


def test_every_line_of_the_table_can_be_used() -> None:
    table = PriceTable(read_price_table())
    for name in table._providers:
        for entry in table._models(name):
            target = Target(provider=name, model=entry.id, base_url=f"x:{name}", dialect="x")
            assert entry.prices, target
            for price in entry.prices:
                assert all(start >= 0 and usd for start, usd in tiers_of(price))


@pytest.mark.parametrize(("usd", "micro"), [(0.000001, 1), (0.0000011, 2), (1, 1_000_000), ("0.134", 134_000), (0, 0)])
def test_dollars_become_micro_dollars_rounded_up(usd: float | str, micro: int) -> None:
    assert microusd(usd) == micro


def test_a_job_of_an_older_version_keeps_its_price() -> None:
    price = msgspec.json.decode(msgspec.json.encode(known(OPENAI, "gpt-image-1")))
    for _, kinds in price["tokens"]:
        del kinds["cached_audio"]
    old = msgspec.json.decode(msgspec.json.encode(price), type=Tariff)
    usage = Usage(prompt_tokens=1_000_000, completion_tokens=1_000_000)
    assert old.of_tokens(usage) == known(OPENAI, "gpt-image-1").of_tokens(usage)
