"""An answer that was asked for whole, and came as something else."""

from pathlib import Path

from trunkline.core.events import Ended, Failed, Finished, ToolCallDelta
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine

CHUNK = b'{"id":"c","choices":[{"index":0,"delta":{"content":"Half"},"finish_reason":null}]}'


FINISH = b'{"id":"c","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
CORPUS = Path(__file__).parent.parent / "corpus"


def last(body: bytes) -> object:
    return ChatLine(CHAT_DIALECTS["openai_chat"], Notes()).whole(body)[-1]


def test_a_stream_that_is_cut_is_no_answer() -> None:
    assert isinstance(last(b"data: " + CHUNK + b"\n\n"), Failed)
    assert isinstance(last(CHUNK + b"\n" + CHUNK + b"\n"), Failed)
    assert isinstance(last(b"data: " + CHUNK + b"\n\ndata: [DONE]\n\n"), Ended)


def test_one_value_is_complete_by_its_own_shape() -> None:
    assert isinstance(last(CHUNK), Ended)
    assert isinstance(last(CHUNK.replace(b"Half", b"H\xe9")), Ended)
    assert isinstance(last(CHUNK.replace(b"Half", b"Half\nof it")), Ended)


def closed(body: bytes, *, labelled: bool) -> object:
    line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes())
    return (line.feed(body) + line.close(labelled=labelled))[-1]


def test_an_object_with_a_text_is_whole_where_it_is_all_of_a_json_body() -> None:
    for body in (b'{"response":"Half"}', b'[{"generated_text":"Half"}]', b'{"content":"Half"}\n'):
        assert isinstance(closed(body, labelled=True), Ended)
        assert isinstance(closed(body, labelled=False), Failed)
    for body in (
        b'[{"generated_text":"Half"}',
        b'{"content":"Half"}{"content":',
        b'{"content":"Half"}\n{"content":" a"}\n',
    ):
        assert isinstance(closed(body, labelled=True), Failed)


def test_the_first_event_of_a_stream_under_a_wrong_label_is_not_all_of_it() -> None:
    assert isinstance(closed(b"data: " + CHUNK + b"\n\n", labelled=True), Failed)
    assert isinstance(closed(b"data: " + CHUNK + b"\n\ndata: [DONE]\n\n", labelled=True), Ended)


def fed(*pieces: bytes) -> ChatLine:
    line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes())
    for piece in pieces:
        line.feed(piece)
    return line


def test_a_body_that_is_one_array_is_whole_when_that_has_closed() -> None:
    gemini = next((CORPUS / "gemini_chat/array").glob("upstream.*")).read_bytes()
    for body in (gemini, b"[" + CHUNK + b"," + FINISH + b"]", b"\n [" + CHUNK + b"\n,\n" + FINISH + b"\n]\n"):
        end = body.rindex(b"]")
        assert not fed(body[:end]).marked
        assert fed(body).marked
        assert fed(*(body[at : at + 1] for at in range(len(body)))).marked


def test_arrays_that_are_events_are_no_end() -> None:
    assert not fed(b"data: [" + CHUNK + b"]\n\ndata: [" + FINISH + b"]\n\n").marked
    assert not fed(b"[" + CHUNK + b"]").marked


def test_what_bedrock_counted_is_the_last_it_says() -> None:
    body = next((CORPUS / "bedrock_converse/text").glob("upstream.*")).read_bytes()
    line = fed(body)
    assert line.marked
    assert isinstance(line.close()[-1], Ended)


def test_a_whole_answer_without_a_finish_gives_its_last_call_arguments() -> None:
    calls = b'[{"id":"c","type":"function","function":{"name":"now","arguments":"%b"}}]'
    for body in (b'{"choices":[{"message":{"tool_calls":%b}}]}', b'{"choices":[{"delta":{"tool_calls":%b}}]}'):
        for arguments in (b"{}", b""):
            line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes())
            events = line.whole(body % (calls % arguments))
            assert events[-3:] == [ToolCallDelta(0, "{}"), Finished("tool_calls"), Ended()]
        assert isinstance(last(body % (calls % b"{")), Failed)
