"""How many pages a PDF has, as far as its bytes tell without a library."""

import re
import zlib
from binascii import a2b_base64
from collections.abc import Iterator
from itertools import islice

PIECE_CHARS = 512 << 10
"""Of base64 that is looked at, at the beginning and at the end."""
_CHARS_OF_A_PAGE = 48_000  # where none is seen: 36 KB; ordinary ones have 50
_LEAST_CHARS_OF_A_PAGE = 200
_PAGE = re.compile(rb"/Type\s*/Page(?![A-Za-z])")
_PAGES = re.compile(rb"/Type\s*/Pages\b")
_COUNT = re.compile(rb"/Count\s+(\d{1,6})\b")
_PACKED = re.compile(rb"/Type\s*/ObjStm\b")
_LOOKED_AT = 100  # so many objects, and bytes of them: however a PDF is made, it takes some milliseconds
_NEAR = 4096
_UNPACKED = 1 << 16


def pages_of(chars: int) -> int:
    """Estimate the pages of a PDF of so many characters of base64."""
    return -(-chars // _CHARS_OF_A_PAGE)


def count_pages(coded: memoryview) -> int:
    """Count the pages of a PDF in base64; estimate them where they are packed otherwise, or it is large."""
    chars, by_length = len(coded), pages_of(len(coded))
    whole = chars <= 2 * PIECE_CHARS
    pieces = [coded] if whole else [coded[:PIECE_CHARS], coded[-PIECE_CHARS - chars % 4 :]]
    try:
        data = b"\n".join(map(_decoded, pieces))
    except ValueError:
        return by_length
    seen, told = 0, 0
    for part in (data, *_unpacked(data)):
        seen += len(_PAGE.findall(part))
        told = max(told, *_counts(part))
    if whole:
        return max(seen, min(told, chars // _LEAST_CHARS_OF_A_PAGE)) or by_length
    return min(told, chars // _LEAST_CHARS_OF_A_PAGE) or seen * chars // (2 * PIECE_CHARS) or by_length


def _decoded(piece: memoryview) -> bytes:
    coded = bytes(piece).replace(b"\\", b"")  # PHP writes `\\/`
    return a2b_base64(coded[: len(coded) // 4 * 4])


def _counts(data: bytes) -> Iterator[int]:
    """Give what nodes of the tree of pages say."""
    yield 0
    for node in islice(_PAGES.finditer(data), _LOOKED_AT):
        begin = max(data.rfind(b"<<", max(0, node.start() - _NEAR), node.start()), 0)
        end = data.find(b">>", node.end(), node.end() + _NEAR)
        count = _COUNT.search(data, begin, end if end >= 0 else node.end())
        yield int(count[1]) if count is not None else 0


def _unpacked(data: bytes) -> Iterator[bytes]:
    """Give what streams of objects hold."""
    for stream in islice(_PACKED.finditer(data), _LOOKED_AT):
        begin = data.find(b"stream", stream.end(), stream.end() + _NEAR)
        if begin >= 0:
            packed = data[begin + len(b"stream") : begin + _UNPACKED].lstrip(b"\r\n")
            try:
                yield zlib.decompressobj().decompress(packed, _UNPACKED)
            except zlib.error:  # encrypted, or cut off
                continue
