"""Our own count of tokens beside a real tokenizer's: as far off as the documentation says."""

import itertools
import json
import re
from pathlib import Path

import pytest
from counted_texts import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from trunkline.calls.pricing import Pricing
from trunkline.config.prices import read_price_table
from trunkline.ingress.openai_chat import parse
from trunkline.policy.price import PriceBook
from trunkline.policy.tokens import TokenCount, count_tokens

PAGE = Path(__file__).parents[2] / "docs" / "operations.md"


def off(language: str) -> float:
    """How many percent our count is above the tokenizer's."""
    tokens = TEXTS[language]
    return 100 * (count_tokens("".join(tokens)) - len(tokens)) / len(tokens)


def test_it_is_as_far_off_as_documented() -> None:
    told = dict(re.findall(r"(\w+) ([+−]\d+) %", PAGE.read_text().replace("\n", " ")))
    assert {name.lower(): number for name, number in told.items()} == {
        language: f"{off(language):+.0f}".replace("-", "−") for language in TEXTS
    }


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcde", 2), ("日本語", 3), ("日 b", 2), ("é" * 4, 2)]
)
def test_four_bytes_are_a_token_and_so_is_an_ideograph(text: str, tokens: int) -> None:
    assert count_tokens(text) == tokens


@given(st.text(), st.lists(st.integers(0, 200)))
def test_where_a_text_is_cut_does_not_matter(text: str, cuts: list[int]) -> None:
    count = TokenCount()
    places = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    for begin, end in itertools.pairwise(places):
        count.add(text[begin:end])
    assert count.tokens == count_tokens(text)


@pytest.mark.parametrize("times", [1, 5, 40])
@pytest.mark.parametrize("language", TEXTS)
def test_what_is_set_aside_is_enough(language: str, times: int) -> None:
    text = "".join(TEXTS[language]) * times
    request = parse(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode())
    bound = Pricing(100, PriceBook(read_price_table))._bound(request)
    assert bound.prompt_tokens >= times * len(TEXTS[language])
