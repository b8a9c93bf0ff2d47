"""Forms as client libraries send them, and broken ones."""

import pytest

from trunkline.core.errors import GatewayError
from trunkline.http.multipart import MOST_PARTS, hash_of, is_form, read_form

TYPE = 'multipart/form-data; boundary="b-1"'


def form(*parts: tuple[str, bytes], boundary: str = "b-1") -> bytes:
    pieces = [f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n" for head, data in parts]
    return b"".join(pieces) + f"--{boundary}--\r\n".encode()


TEXT = ('Content-Disposition: form-data; name="prompt"', "ein Höhle".encode())
FILE = (
    'content-disposition: form-data; name="image[]"; filename="a \\"b\\".png"\r\nContent-Type: image/png; x=y',
    b"\r\n--b-2\x00\r\n-",
)


def test_texts_and_files_come_whole_and_in_order() -> None:
    text, file = read_form(TYPE, form(TEXT, FILE))
    assert (text.name, text.filename, text.data.decode()) == ("prompt", None, "ein Höhle")
    assert (file.name, file.mime_type, file.data) == ("image[]", "image/png", FILE[1])
    assert file.filename == 'a "b".png'


def test_an_empty_form_is_one() -> None:
    assert read_form(TYPE, form()) == []


def test_the_hash_does_not_depend_on_the_boundary() -> None:
    again = read_form("multipart/form-data; boundary=other", form(TEXT, FILE, boundary="other"))
    assert hash_of(read_form(TYPE, form(TEXT, FILE))) == hash_of(again)
    assert hash_of(again) != hash_of(again[:1])


@pytest.mark.parametrize(
    ("content_type", "body", "message"),
    [
        ("multipart/form-data", b"", "no boundary"),
        (TYPE, b"", "cut"),
        (TYPE, b"no form", "cannot be read"),
        (TYPE, form(TEXT, FILE)[:-10], "cut"),
        (TYPE, form(("content-disposition: form-data; name=" + "x" * 9000, b"")), "cannot be read"),
        (TYPE, form(*[TEXT] * (MOST_PARTS + 1)), "more than"),
    ],
)
def test_what_is_no_form_is_refused(content_type: str, body: bytes, message: str) -> None:
    with pytest.raises(GatewayError, match=message):
        read_form(content_type, body)


def test_forms_are_known_by_their_type() -> None:
    assert is_form("Multipart/Form-Data; boundary=x")
    assert not is_form("application/json")
