"""Large requests are read and counted without the data of their pictures and PDFs, and say the same."""

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.ingress.chat_size import check_size
from trunkline.ingress.openai_chat import LARGE_BYTES, parse
from trunkline.ingress.request_body import MOST_CUT, without_data
from trunkline.policy.tokens import count_prompt, count_tokens

DATA = "data:image/png;base64," + "QUJD" * 30_000
AT_ONCE = {"type": "image_url", "image_url": {"url": DATA}}
PDF = {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64," + "JVBE" * 30_000}}
ODD = 'He said "data:image/png;base64,QUJD" and \\"data:image/\\" \\'


def of(*parts: Any, **members: Any) -> bytes:
    return json.dumps({"model": "m", "messages": [{"role": "user", "content": list(parts)}], **members}).encode()


def text(said: str) -> dict[str, Any]:
    return {"type": "text", "text": said}


def test_no_byte_of_a_picture_is_left() -> None:
    body = of(text("What is it?"), AT_ONCE, AT_ONCE, user="u")
    small, _ = without_data(body)
    assert len(small) < 400
    assert json.loads(small) == json.loads(body.replace(DATA.encode(), b"data:image/"))


def test_of_a_pdf_the_pages_are_left() -> None:
    body = of(text("What is it?"), PDF, AT_ONCE, PDF)
    small, pdf_pages = without_data(body)
    assert pdf_pages == 2 * 3
    read = json.loads(small)["messages"][0]["content"]
    assert read[1] == read[3] == {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf"}}
    assert read[2] == {"type": "image_url", "image_url": {"url": "data:image/"}}


def test_php_writes_slashes_with_a_backslash() -> None:
    body = of(text("What is it?"), PDF, AT_ONCE)
    escaped = body.replace(b"/", b"\\/")
    assert json.loads(without_data(escaped)[0]) == json.loads(without_data(body)[0])
    assert count_prompt(parse(escaped)) == count_prompt(parse(body))


@pytest.mark.parametrize("kind", ["text/csv", "application/json", "audio/wav", "application/zip"])
def test_data_of_other_kinds_stays(kind: str) -> None:
    other = {"type": "file", "file": {"file_data": f"data:{kind};base64," + "QUJD" * 30_000}}
    small, pdf_pages = without_data(of(other, PDF, other))
    assert pdf_pages
    assert json.loads(small)["messages"][0]["content"][::2] == [other, other]


def test_of_a_thousand_pictures_and_more_the_rest_stays() -> None:
    small = {"type": "image_url", "image_url": {"url": "data:image/png,x"}}
    read = json.loads(without_data(of(*[small] * (MOST_CUT + 5)))[0])
    urls = [part["image_url"]["url"] for part in read["messages"][0]["content"]]
    assert urls == ["data:image/"] * MOST_CUT + ["data:image/png,x"] * 5


@pytest.mark.parametrize("said", [ODD, ODD * 2, "\\" + ODD, "data:image/png", '"data:image/'])
def test_what_is_said_in_a_text_stays_as_it_is(said: str) -> None:
    small = json.loads(without_data(of(text(said + "!"), AT_ONCE, text("x" + said)))[0])
    first, _, last = small["messages"][0]["content"]
    assert last == text("x" + said)
    assert first == text(said + "!")


@pytest.mark.parametrize("begin", ["data:image/png;base64,", "data:application/pdf;base64,", "JVBERi0"])
@pytest.mark.parametrize("blank", ["", " ", "\n  "])
def test_a_text_that_begins_like_a_file_is_counted_as_text(begin: str, blank: str) -> None:
    said = begin + " is what such a link begins with. " * 4000
    for content in (said, [text(said)]):
        body = json.dumps(
            {"model": "m", "messages": [{"role": "user", "content": content}]}, separators=(",", ":" + blank)
        )
        assert count_prompt(parse(body.encode())) == 4 + count_tokens(said)


def test_many_pdfs_are_looked_at_no_longer_than_a_few() -> None:
    page = base64.b64encode(b"%PDF-1.7\n" + b"/Type /Page " * 10 + b"\x8a" * 700_000).decode()
    pdf = {"type": "file", "file": {"file_data": "data:application/pdf;base64," + page}}
    assert without_data(of(pdf))[1] == 10
    assert without_data(of(*[pdf] * 9))[1] == 5 * 10 + 4 * 20


@given(st.lists(st.text('"\\dat:image/,x', max_size=30), max_size=4))
def test_it_counts_the_same(texts: list[str]) -> None:
    body = of(*map(text, texts), AT_ONCE, PDF, *map(text, texts))
    request = parse(body)
    assert request.said is not None
    assert count_prompt(request) == count_prompt(ChatRequest("m", request.fields))
    assert bytes(request.fields["messages"]) in body


def test_errors_are_the_same() -> None:
    with pytest.raises(GatewayError, match="`n` is 0; it must be from 1 to 128"):
        parse(of(AT_ONCE, n=0))
    with pytest.raises(GatewayError, match="`stream_options` is only allowed with `stream`: true"):
        parse(of(AT_ONCE, stream_options={}))
    with pytest.raises(GatewayError, match="not valid JSON"):
        parse(of(AT_ONCE)[:-9])
    with pytest.raises(GatewayError, match="hold 3 pictures; at most 2"):
        check_size(parse(of(AT_ONCE, AT_ONCE, AT_ONCE)), 10, 2)
    check_size(parse(of(AT_ONCE, AT_ONCE)), 10, 2)


def test_a_large_text_is_not_read_twice() -> None:
    body = of(text("word " * LARGE_BYTES))
    assert without_data(body)[0] is body
    assert parse(body).said is None


@pytest.mark.parametrize(
    "part",
    [
        {"type": "input_audio", "input_audio": {"data": "A" * 640_000, "format": "mp3"}},
        {"type": "video_url", "video_url": {"url": "data:video/mp4;base64," + "A" * 639_978}},
    ],
)
def test_sound_and_film_are_not_counted_as_text(part: dict[str, Any]) -> None:
    assert count_prompt(parse(of(part))) == 4 + 10_000


def test_a_request_keeps_no_words_whose_members_are_gone() -> None:
    request = parse(of(text("hi")))
    assert request.words == request.fields["messages"]
    request.fields.clear()
    assert request.words is None
    assert (
        msgspec.json.encode(parse(of(AT_ONCE)).words) == without_data(bytes(parse(of(AT_ONCE)).fields["messages"]))[0]
    )
