"""Our own count of tokens beside a real tokenizer's: as far off as the documentation says."""

import base64
import itertools
import json
import random
import re
import zlib
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


def pdf(pages: int, page_bytes: int, *, packed: bool = False) -> bytes:
    """A PDF of so many pages, as their objects stand in one, or in streams of objects."""
    objects = [b"<</Type /Pages/Kids[%b]/Count %d>>" % (b"7 0 R " * pages, pages)]
    objects += [b"<</Type /Page/Parent 1 0 R>>"] * pages
    if packed:
        stream = zlib.compress(b" ".join(objects))
        objects = [b"<</Type /ObjStm/N 9/Filter/FlateDecode>>\nstream\r\n%b\nendstream" % stream]
    filling = random.Random(3).randbytes(pages * page_bytes)
    return b"%PDF-1.7\n" + b"\n".join(b"1 0 obj\n%b\nendobj" % each for each in (*objects, filling))


@pytest.mark.parametrize("kind", ["application/pdf", "Application/PDF", ""])
@pytest.mark.parametrize("part", SPELLINGS)
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(("pages", "page_bytes"), [(3, 100), (30, 5000), (4, 900_000)])
def test_a_page_of_a_pdf_is_3000_tokens_however_large_it_is(
    part: Callable[[str], dict[str, Any]], kind: str, pages: int, page_bytes: int, *, packed: bool
) -> None:
    assert counted(part(coded(pdf(pages, page_bytes, packed=packed), kind))) == pytest.approx(pages * 3000, abs=10)


@pytest.mark.parametrize("kilobytes", [20, 3000])
@pytest.mark.parametrize("kind", ["application/pdf", ""])
@pytest.mark.parametrize("part", SPELLINGS)
def test_where_no_page_is_seen_36_kilobytes_are_one(
    part: Callable[[str], dict[str, Any]], kind: str, kilobytes: int
) -> None:
    data = b"%PDF-1.7\n" + b"\x8a" * (kilobytes * 1000)
    assert counted(part(coded(data, kind))) == pytest.approx(-(-len(data) // 36_000) * 3000, abs=10)


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
