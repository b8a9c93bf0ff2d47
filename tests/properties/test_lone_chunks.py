"""A chunk that comes alone is read in one step; that step says what the long way says, whatever comes around it."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.events import TextDelta
from trunkline.core.notes import Notes
from trunkline.dialects.openai_chat import DIALECT
from trunkline.pipeline import ChatLine

HEAD = '"id":"c1","object":"chat.completion.chunk","created":1790000000,"model":"m"'
LONG_WAY = DIALECT._replace(lone=None)


def _event(delta: str, rest: str = "", *, index: int = 0, tail: str = "") -> bytes:
    return f'data: {{{HEAD},"choices":[{{"index":{index},"delta":{delta}{rest}}}]{tail}}}\n\n'.encode()


def _text(text: str, tail: str = "") -> bytes:
    return _event(f'{{"content":{msgspec.json.encode(text).decode()}}}', tail=tail)


def _reason(text: str) -> bytes:
    return _event(f'{{"reasoning_content":{msgspec.json.encode(text).decode()}}}')


WORDS = st.sampled_from(["a", "ab", "ab cd", " the", "the", "them ", "1", "10", "é", "漢字", '"', "\n", "", "x" * 9000])
TEXTS = st.one_of(
    WORDS.map(_text),
    st.text(max_size=5).map(_text),
    WORDS.map(_reason),
    st.tuples(WORDS, st.sampled_from(["x", "yz", 'q"'])).map(
        lambda pair: _text(pair[0], f',"obfuscation":{msgspec.json.encode(pair[1]).decode()}')
    ),
)
ODD = st.sampled_from(
    [
        _event('{"content":"\\ud83d"}'),  # half a character, and its other half
        _event('{"content":"\\ude00"}'),
        _event('{"content":"x"}', ',"logprobs":null'),
        _event('{"role":"assistant","content":"r"}'),
        _event('{"content":"two"}', index=1),
        _event('{"tool_calls":[{"index":0,"id":"t","function":{"name":"f","arguments":"{}"}}]}'),
        _event("{}", ',"finish_reason":"stop"'),
        _event('{"content":"last"}', ',"finish_reason":"length"'),
        _event('{"images":[{"url":"https://pictures.test/1.png"}]}'),
        b'data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}\n\n',
        b"data: [DONE]\n\n",
        b": keep-alive\n\n",
        b"event: error\n",
        b"\n",
        b"data: {\n",
        b'data: {"error":{"message":"no","code":"x"}}\n\n',
        _text("crlf").replace(b"\n", b"\r\n"),
        _text("no blank").replace(b"data: ", b"data:"),
        _text("a line").replace(b"a line", b"a\nline"),
        _text("one") + _text("read"),
        _text("cut")[:-1],
        _text("cut")[:60],
        _text("cut")[60:],
    ]
)
READS = st.lists(st.one_of(TEXTS, TEXTS, TEXTS, ODD), max_size=12)


def _line(*, long_way: bool) -> ChatLine:
    return ChatLine(LONG_WAY if long_way else DIALECT, Notes(), salt="s")


@given(READS, st.booleans())
def test_the_short_way_says_what_the_long_way_says(reads: list[bytes], labelled: bool) -> None:  # noqa: FBT001
    short, long = _line(long_way=False), _line(long_way=True)
    for data in (_text("The"), _text(" answer"), *reads):
        assert short.feed(data) == long.feed(data), data
        assert (short.ending, short.finished, short.over) == (long.ending, long.finished, long.over)
    assert short.close(labelled=labelled) == long.close(labelled=labelled)
    assert short.notes.counts == long.notes.counts


def test_usual_chunks_go_the_short_way() -> None:
    for tail in ("", ',"obfuscation":"x"'):
        line = _line(long_way=False)
        for word in ("The", " answer", " is"):
            line.feed(_text(word, tail))
        line._run = None  # type: ignore[assignment,method-assign]  # the long way is closed
        assert line.lone(_text(" 42", tail)) == " 42"
        assert line.feed(_text(" – 漢", tail)) == [TextDelta(" – 漢")]
