"""Chunks that are compared in place of being read: what comes out is the same."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.events import Event
from trunkline.core.notes import Notes
from trunkline.dialects.openai_chat import ChatDecoder
from trunkline.wire.openai_chunk import Chunk, parse_chunk
from trunkline.wire.reader import EventReader
from trunkline.wire.repeated import ReasoningText, Repeated

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)


@st.composite
def chunks(draw: st.DrawFn) -> dict[str, Any]:
    said = draw(texts)
    member = draw(st.sampled_from(["content", "reasoning_content", "refusal", "thinking"]))
    more: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {}, {"role": "assistant"}, {"content": "more"}])
    delta = {member: said, **draw(more)}
    choice = {"index": draw(st.sampled_from([0, 0, 0, 1])), "delta": delta, "finish_reason": None}
    beside: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
        [{}, {}, {}, {"id": "other"}, {"obfuscation": said}, {"usage": {"total_tokens": 3}}, {"content": said}]
    )
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice], **draw(beside)}


def events(parse: Any, body: bytes) -> list[Event]:
    decoder = ChatDecoder(Notes(), 2, "s")
    out: list[Event] = []
    reader = EventReader(parse, Notes())
    for line in body.splitlines(keepends=True):
        out += decoder.feed(reader.feed(line))
    return out + decoder.feed(reader.close()) + decoder.close()


@given(stream=st.lists(chunks(), max_size=12), repeat=st.integers(1, 3), ascii_only=st.booleans())
def test_nothing_is_read_otherwise(stream: list[dict[str, Any]], repeat: int, *, ascii_only: bool) -> None:
    lines = [f"data: {json.dumps(chunk, ensure_ascii=ascii_only)}\n\n" for chunk in stream for _ in range(repeat)]
    body = "".join(line.replace("\u0085", "?").replace("\u2028", "?") for line in lines).encode()
    assert events(Repeated().parse, body) == events(parse_chunk, body)


def chunk(delta: str, **members: Any) -> bytes:
    more = "".join(f',"{name}":{json.dumps(value)}' for name, value in members.items())
    return f'{{"id":"c","choices":[{{"index":0,"delta":{delta},"finish_reason":null}}]{more}}}'.encode()


def begun() -> Callable[[bytes], Any]:
    """Give the parser of a stream whose first words have gone by: they wait for nothing to be learned."""
    parse = Repeated().parse
    assert isinstance(parse(chunk('{"role":"assistant","content":""}')), Chunk)
    assert isinstance(parse(chunk('{"content":"first"}')), Chunk)
    return parse


def test_what_differs_only_in_its_text_is_compared() -> None:
    parse = begun()
    assert isinstance(parse(chunk('{"content":"a"}')), Chunk)
    assert parse(chunk(r'{"content":"b \"\u00e9\ud83d\ude00"}')) == 'b "é😀'
    assert isinstance(parse(chunk('{"content":5}')), Chunk)
    assert isinstance(parse(chunk('{"content":"a"},"x":{"y":"b"}')), Chunk)
    assert isinstance(parse(chunk('{"content":"c"}', usage={"total_tokens": 1})), Chunk)
    assert isinstance(parse(chunk('{"content":"d"}')), Chunk)  # other bytes around it: learned anew
    assert parse(chunk('{"content":"e"}')) == "e"
    assert isinstance(parse(chunk('{"reasoning_content":"r"}')), Chunk)
    assert isinstance(parse(chunk('{"reasoning_content":"s"}')), ReasoningText)
    assert parse(chunk('{"content":"f"}')) == "f"


def test_padding_of_any_length_is_no_difference() -> None:
    parse = begun()
    assert isinstance(parse(chunk('{"content":"a"}', obfuscation="xx")), Chunk)
    assert parse(chunk('{"content":"b"}', obfuscation="xxxxx")) == "b"
    trap = chunk(json.dumps({"content": '"},"finish_reason":null}],"obfuscation":"y'}), obfuscation="z")
    assert parse(trap) == '"},"finish_reason":null}],"obfuscation":"y'


def test_a_member_of_the_same_name_elsewhere_is_not_the_text() -> None:
    parse = begun()
    for text in "abc":
        found = parse(chunk(f'{{"content":"{text}"}}', content="whole answer"))
        assert found == text or found.choices[0].delta.content == text
    other = parse(b'{"content":"x","id":"c","choices":[{"index":0,"delta":{"content":"y"},"finish_reason":null}]}')
    assert other.choices[0].delta.content == "y"
