"""How bytes are cut changes nothing, also where a line is read before its newline has come."""

import msgspec
import pytest

from trunkline.core.notes import Notes
from trunkline.wire.frame import Frame
from trunkline.wire.reader import EventReader

A, B = '{"a":1}', '{"b":"}"}'
STREAMS = (
    f"data: {A}\n\ndata: {B}\n\ndata: [DONE]\n\n",
    f'data: {A}data: {{"a":"cut}}data: [DONE]\n\ndata: {B}\n',
    f"data: {A}{B}[DONE]\n",
    f"data: {A}[DO\nNE]",
    f"data: {A}[DO\ndata: {B}\n\nNE]\n",
    f"data: {A}\\n\\ndata: {B}\\n\\ndata: [DONE]\\n\\n",
    f"data: {A}\\tdata: {B}\n",
    f"data: {A} then words\ndata: {B}",
    f"data: {A}event: error\ndata: words\n\n",
    f"data: [DONE]{A}\n{B}[DONE",
    f"[{A},{B}]\n[{A}\n,\n{B}\n]",
    f"[[{A}],{B}]]]{A}",
    "[\n",
    f"[D[{A}]",
    f"[[D \0\n[[D     x\n[{A} [DO      \nNE] {A}",
    f'{{\n "a": [\n  1\n ]\n}}{B}\n{{"a":\n{A}\n}}\n[DONE]',
    f'data: {{"a":\ndata: 1}} {B}\n\n: word\n{A}: word\n',
    f"\ufeff{A}\ufeff{B}\n\u00a0data: {A}",
    f'data: "{{\\"a\\":1}}"\n"{{\\"a\\":1}}" {A}\n',
    f"data: {A}\r\n\r\ndata: {B}\r\rdata: [DONE]\r",
    '{\0\0\n"a":1}\n{"a":\0]\0\n1}\n{"b":"cut\0\\ \n[{"a":\0\n1}]\n{ \0',
)


def read(pieces: list[bytes]) -> list[tuple[str, bytes, str, int]]:
    reader = EventReader(msgspec.json.decode, Notes())
    frames: list[Frame] = []
    for piece in pieces:
        frames += reader.feed(piece)
    frames += reader.close()
    return [(frame.kind, b"".join(bytes(frame.data).split()), frame.event, frame.line) for frame in frames]


@pytest.mark.parametrize("text", STREAMS)
def test_any_cut_gives_the_same_frames(text: str) -> None:
    stream = text.encode()
    whole = read([stream])
    assert read([stream[at : at + 1] for at in range(len(stream))]) == whole
    for at in range(len(stream)):
        assert read([stream[:at], stream[at:]]) == whole


def test_a_value_is_given_when_it_is_whole() -> None:
    for line in (f"data: {A}", A, f"{A}{B}"[: len(A)], f"[{A}", '{\n "a": 1\n}'):
        assert [frame.kind for frame in EventReader(msgspec.json.decode, Notes()).feed(line.encode())] == ["json"]


def test_the_blanks_that_end_a_line_are_no_part_of_a_value() -> None:
    assert read([b'{"a":\0', b'\0\n1,\0\n"b":', b" " * 5000, b"\0\n2}\n"]) == [("json", b'{"a":1,"b":2}', "", 1)]


def test_much_text_behind_a_value_takes_linear_time() -> None:
    reader = EventReader(msgspec.json.decode, Notes(), max_bytes=8_000_000)
    reader.feed(f"data: {A}".encode())
    for _ in range(70_000):
        assert not reader.feed(b"words " * 10)
    kinds = [frame.kind for frame in reader.feed(b"\n")]
    assert kinds == ["text"]
    reader.feed(f"data: {A}".encode())
    assert [frame.kind for _ in range(9_000) for frame in reader.feed(b"words " * 200)] == ["too_large"]
