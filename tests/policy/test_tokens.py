"""Our own count of tokens beside a real tokenizer's: as far off as the documentation says."""

import base64
import itertools
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from counted_texts import TEXTS
from hypothesis import given
from hypothesis import strategies as st

from trunkline.calls.pricing import Pricing
from trunkline.config.prices import read_price_table
from trunkline.ingress.openai_chat import parse
from trunkline.policy.price import PriceBook
from trunkline.policy.tokens import TokenCount, count_prompt, count_tokens

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


def counted(*parts: Any) -> int:
    """How many tokens the parts of one message count for."""
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": parts}]}).encode()
    return count_prompt(parse(body)) - 4


def coded(data: bytes, kind: str = "") -> str:
    """Base64, as a data URL where a type is given."""
    head = f"data:{kind};base64," if kind else ""
    return head + base64.b64encode(data).decode()


SPELLINGS: list[Callable[[str], dict[str, Any]]] = [
    lambda data: {"type": "file", "file": {"filename": "a", "file_data": data}},
    lambda data: {"type": "input_file", "file_data": data},
    lambda data: {"type": "document", "source": {"type": "base64", "data": data}},
    lambda data: {"inlineData": {"data": data}},
]


@pytest.mark.parametrize("kilobytes", [20, 3000])
@pytest.mark.parametrize("kind", ["application/pdf", "Application/PDF", ""])
@pytest.mark.parametrize("part", SPELLINGS)
def test_twelve_bytes_of_a_pdf_are_a_token(part: Callable[[str], dict[str, Any]], kind: str, kilobytes: int) -> None:
    data = b"%PDF-1.7\n" + b"\x8a" * (kilobytes * 1000)
    assert counted(part(coded(data, kind))) == pytest.approx(len(data) / 12, abs=10)


@pytest.mark.parametrize("times", [1, 2000])
@pytest.mark.parametrize(
    "kind",
    [
        "text/plain",
        "text/csv;charset=utf-8",
        "application/json",
        "application/octet-stream",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ],
)
def test_other_files_count_as_much_as_their_bytes_as_text(kind: str, times: int) -> None:
    said = "name,amount\nfirst,1.25\n" * times
    files = counted(SPELLINGS[0](coded(said.encode(), kind)))
    assert count_tokens(said) <= files <= count_tokens(said) + 25


def test_what_only_looks_like_a_file_is_text() -> None:
    said = "data: the base64, of it; and more. " * 20
    assert counted({"type": "text", "text": said}) == count_tokens(said)


@pytest.mark.parametrize("times", [1, 5, 40])
@pytest.mark.parametrize("language", TEXTS)
def test_what_is_set_aside_is_enough(language: str, times: int) -> None:
    text = "".join(TEXTS[language]) * times
    request = parse(json.dumps({"model": "m", "messages": [{"role": "user", "content": text}]}).encode())
    bound = Pricing(100, PriceBook(read_price_table))._bound(request)
    assert bound.prompt_tokens >= times * len(TEXTS[language])
