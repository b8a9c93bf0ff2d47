"""Damaging streams at random, reproducibly."""

import random
import re

_VALUE = re.compile(rb'(?<=":)("[^"\\]*"|-?[0-9.]+|null|true|false|\{\}|\[\])')
_OTHERS = (b"{}", b"[]", b'{"a":1}', b"[{}]", b"[1]", b'"word"', b'""', b"7", b"-1", b"0.5", b"1e300", b"true", b"null")
_SPICE = (
    b"\x00", b"\xff", b"{", b"}", b"[", b"]", b'"', b"\\", b"\n", b"\r", b"\r\n\r\n", b"data: ", b"data:", b": c\n",
    b"[DONE]", b"[DO", b"null", b"1e999", b"9" * 400, b"\\ud800", b"\xf0\x9f\xa4\xab", b"\xe2\x80\xa8", b"{" * 300,
    b"[" * 300, b"\xef\xbb\xbf", b'{"error":{}}', b'{"error":"x"}', b'"index":-1', b'"index":99999', b'"delta":null',
    b'"choices":{}', b'"tool_calls":[{}]', b'"content":[{}]', b'"usage":[]', b'"finish_reason":7', b"event: error\n",
    b"id: 1\n\n", b"<html>",
)  # fmt: skip


def damage(data: bytes, chance: random.Random) -> bytes:
    """Change a stream in one to four places: bits, cuts, insertions, doublings, swaps, values of another type."""
    broken = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        if not broken:
            break
        at = chance.randrange(len(broken))
        length = chance.choice((1, 2, 5, 20, 100))
        match chance.randrange(7):
            case 0:
                broken[at] ^= 1 << chance.randrange(8)
            case 1:
                del broken[at : at + length]
            case 2:
                broken[at:at] = chance.choice(_SPICE)
            case 3:
                broken[at:at] = broken[at : at + length]
            case 4:
                other = chance.randrange(len(broken))
                broken[at : at + length] = broken[other : other + length]
            case 5:
                found = _VALUE.search(broken, at) or _VALUE.search(broken)
                if found:
                    broken[found.start() : found.end()] = chance.choice(_OTHERS)
            case _:
                del broken[at:]
    return bytes(broken)


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    """Cut a stream into a few reads."""
    cuts = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 1, 3))))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
