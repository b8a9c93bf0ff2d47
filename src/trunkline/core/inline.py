"""Bytes that come inside a text: data URLs and base64, decoded piece by piece."""

import binascii
from collections.abc import Iterator
from urllib.parse import unquote_to_bytes

PIECE = 1 << 18
_BLANK = str.maketrans("", "", " \t\r\n")
_URL_SAFE = str.maketrans("-_", "+/")


def pieces(data: bytes) -> Iterator[bytes]:
    """Cut bytes into views of a bounded size, without a copy."""
    view = memoryview(data)
    for start in range(0, len(view), PIECE):
        yield view[start : start + PIECE]  # type: ignore[misc]


def decode_base64(text: str, start: int = 0) -> Iterator[bytes]:
    """Decode base64 from `start` on: blanks, the URL-safe alphabet and missing padding are taken.

    Raises ValueError for anything else.
    """
    rest = ""
    for begin in range(start, len(text), PIECE):
        part = rest + text[begin : begin + PIECE].translate(_BLANK).translate(_URL_SAFE)
        whole = len(part) // 4 * 4
        rest = part[whole:]
        yield binascii.a2b_base64(part[:whole], strict_mode=True)
    yield binascii.a2b_base64(rest + "=" * (-len(rest) % 4), strict_mode=True)


def data_url(url: str) -> tuple[str, Iterator[bytes]]:
    """Give the MIME type that a data URL (RFC 2397) claims, and its bytes. Raises ValueError."""
    comma = url.find(",", 0, 256)
    if not url[:5].lower() == "data:" or comma < 0:
        raise ValueError("no data URL")
    mime_type, *parameters = url[5:comma].split(";")
    if "base64" in (parameter.strip().lower() for parameter in parameters):
        return mime_type.strip().lower(), decode_base64(url, comma + 1)
    return mime_type.strip().lower(), iter((unquote_to_bytes(url[comma + 1 :]),))
