"""Reading a client's JSON body member by member, with errors that name the member."""

import codecs
import re
from typing import TypeVar

import msgspec
from msgspec import Raw

from trunkline.core.errors import GatewayError
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.pdf import PIECE_CHARS, count_pages, pages_of

T = TypeVar("T")
_fields = msgspec.json.Decoder(dict[str, Raw])
PIECE_BYTES = 1 << 20
MOST_CUT = 1000
_MOST_LOOKED_AT = 4 << 20  # of PDFs in base64: it takes some 20 ms
_DATA = b'"data:'
_CUT = re.compile(rb'"data:(?:image\\?/|(?P<pdf>application\\?/pdf))')  # PHP writes `\/`
_TEXT = re.compile(rb'"(?:content|text)"\s*:\s*$')
_NAME_BYTES = 32
_BACKSLASH = 0x5C
_NOT_UTF8 = {
    codecs.BOM_UTF16_LE: "it is UTF-16; send UTF-8",
    codecs.BOM_UTF16_BE: "it is UTF-16; send UTF-8",
    b"\x1f\x8b": "it is compressed (gzip); send it as it is",
    b"\x28\xb5\x2f\xfd": "it is compressed (zstd); send it as it is",
}
STRING = msgspec.json.Decoder(str)


def read_fields(body: bytes) -> dict[str, Raw]:
    """Split a body into its top-level members, each as it was sent. Raises GatewayError `invalid_json` (400).

    What is in the members is looked at later, or by the upstream only; but it is UTF-8 (RFC 8259, section 8.1).
    """
    if not body.isascii() and not is_utf8(body):
        why = next((words for mark, words in _NOT_UTF8.items() if body.startswith(mark)), "it is not UTF-8")
        raise GatewayError("invalid_json", f"The body is not valid JSON: {why}.")
    try:
        return _fields.decode(body)
    except msgspec.ValidationError:
        raise GatewayError("invalid_json", "The body must be a JSON object.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        marked = body.startswith(codecs.BOM_UTF8)
        why = "it begins with a byte order mark; leave that out" if marked else str(error)
        told = f"The body is not valid JSON: {why}." if body.strip() else "The body is empty; send a JSON object."
        raise GatewayError("invalid_json", told) from None
    except RecursionError:
        raise GatewayError("invalid_json", "The body is nested too deeply.") from None


def without_data(body: bytes) -> tuple[bytes, int]:
    """Cut data URLs of pictures and PDFs, MOST_CUT at most, to their beginnings: JSON of the same form, but small.

    Gives how many pages of PDFs are gone, too. What stands where a text belongs is text, whatever it looks like.
    """
    pieces, start, end, pdf_pages, looked_at = [], 0, 0, 0, 0
    for _ in range(MOST_CUT):
        at = body.find(_DATA, end)
        end = body.find(b'"', at + len(_DATA))
        if at < 0 or end < 0:
            break
        url = _CUT.match(body, at)
        if url is None or body[at - 1] == _BACKSLASH or body[end - 1] == _BACKSLASH:
            continue  # of another kind, or said in a text
        if _TEXT.search(body, max(0, at - _NAME_BYTES), at):
            continue
        pieces.append(body[start : url.end()])
        start = end
        if url["pdf"]:
            data = memoryview(body)[body.find(b",", url.end(), end) + 1 or url.end() : end]
            pdf_pages += count_pages(data) if looked_at < _MOST_LOOKED_AT else pages_of(len(data))
            looked_at += min(len(data), 2 * PIECE_CHARS)
    return (b"".join((*pieces, body[start:])) if pieces else body), pdf_pages


def is_utf8(body: bytes) -> bool:
    """Say whether bytes are UTF-8, without a second copy of them all."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        for start in range(0, len(body), PIECE_BYTES):
            decoder.decode(body[start : start + PIECE_BYTES])
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def typed(fields: dict[str, Raw], name: str, kind: "msgspec.json.Decoder[T]", allowed: str) -> T | None:
    """Read one member, None when it is absent. Raises GatewayError `invalid_value` (400) that says what is allowed."""
    raw = fields.get(name)
    if raw is None:
        return None
    try:
        return kind.decode(raw)
    except UNREADABLE:
        raise wrong(name, allowed) from None


def wrong(name: str, allowed: str) -> GatewayError:
    """Give the error of a member that is of a wrong kind."""
    return GatewayError("invalid_value", f"`{name}` must be {allowed}.", param=name)
