"""Pages of PDFs are counted by their bytes, whatever these are."""

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.wire.pdf import PIECE_CHARS, count_pages, pages_of

PAGE = b"<</Type/Page/Parent 1 0 R>> "


def pages(data: bytes) -> int:
    return count_pages(memoryview(base64.b64encode(data)))


@pytest.mark.parametrize(
    ("data", "number"),
    [
        (PAGE * 7, 7),
        (b"<</Type /Page\n>><< /Type\n/Page/A 1>>", 2),
        (b"<</Type/Pages/Kids[]>><</Type/PageLabel>>" + PAGE, 1),
        (b"<< /Count 9 /Kids [] /Type /Pages >>" + b" " * 2000 + PAGE, 9),  # the others are packed
        (b"<</Type/Pages/Count 999999>>" + PAGE, 1),  # more than it has bytes for
        (b"<</Count 9>><</Type/Pages>>" + b" " * 2000 + PAGE, 1),  # of an outline
        (b"<</Type/ObjStm>>stream\nno stream" + PAGE, 1),
    ],
)
def test_what_stands_in_it(data: bytes, number: int) -> None:
    assert pages(data) == number


@pytest.mark.parametrize("end", [0, 1, 2, 3])
def test_of_a_large_one_the_beginning_and_the_end_are_looked_at(end: int) -> None:
    large = b"\x8a" * (PIECE_CHARS * 3 + end)
    tree = b"<</Type/Pages/Count 12>>"
    assert pages(tree + large) == pages(large + tree) == 12
    assert pages(large) == pages_of(4 * len(large) // 3)
    assert pages(PAGE * 100 + large) == 100 * (len(large) * 4 // 3) // (2 * PIECE_CHARS)


@given(
    st.binary(max_size=300), st.lists(st.sampled_from([PAGE, b"/Type/Pages", b"/Count 5", b"/ObjStm", b">>", b"<<"]))
)
def test_any_bytes_will_do(data: bytes, marks: list[bytes]) -> None:
    assert count_pages(memoryview(data)) >= 0
    assert pages(b"%PDF" + data.join(marks)) >= 1
