"""Wrappings of text: gzip, UTF-16, terminal colours, Markdown fences, mail quotes, what logs put before each line."""

import re
import zlib
from collections import Counter
from collections.abc import Iterator

from trunkline.inspection.paste.spans import Unwrapped

LINE = re.compile(rb"[^\r\n]*(?:\r\n|\n|\r|\Z)")
STREAM = re.compile(rb'data:|"choices"|"error"|\[DONE\]|^HTTP/|^event:|"candidates"|"message"', re.MULTILINE)
"""What streams are made of."""
_COLOUR = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_FENCE = re.compile(rb"^[ \t>]*(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_QUOTE = re.compile(rb"[ \t]*(?:>[ \t]?|\+(?=[^+]|\Z))")  # `+`: of a patch
_TOKEN = re.compile(rb'(?<![\w"\'])(?:data:|\{"|\{\s*$|\[DONE\])')
_LOOKS_LIKE_LOG = re.compile(rb"(?!data[ \t]*\Z)[^{}\"'`]{1,200}?(?:[ \t]|[|:\])>])\Z")
_BLANKS = re.compile(rb"[ \t]+")
_DIGITS = re.compile(rb"\d+")
_LEVEL = re.compile(rb"\b(?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL|NOTICE)\b", re.IGNORECASE)
_OTHER_WORDS = re.compile(rb"(?!(?:data|event|id|retry|error)[ \t]*:)(?!true|false|null)[A-Za-z]")
_MOST_UNPACKED_BYTES = 256 * 1024 * 1024
_MOST = 0.6  # of the lines that look like a stream's have the same prefix


def lines_of(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Give each line's start, the end of its text, and the start of the next."""
    position = 0
    while position < len(data):
        found = LINE.match(data, position)
        assert found is not None  # noqa: S101 - matches anything
        text = found.group().rstrip(b"\r\n")
        yield position, position + len(text), found.end()
        position = found.end()


def packed(data: bytes) -> Unwrapped | None:
    """Unpack what gzip has packed, as far as it goes."""
    if not data.startswith(b"\x1f\x8b"):
        return None
    try:
        text = zlib.decompressobj(wbits=31).decompress(data, _MOST_UNPACKED_BYTES)
    except zlib.error:
        return None
    out = Unwrapped(data)
    out.put(text, 0, len(data))
    return out if text else None


def utf16(data: bytes) -> Unwrapped | None:
    """UTF-16 with a byte order mark, as PowerShell's `>` writes it."""
    encoding = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}.get(data[:2])
    if encoding is None:
        return None
    out = Unwrapped(data)
    position = 2
    for run in re.findall(r"[\x00-\x7f]+|[^\x00-\x7f]", data[2:].decode(encoding, "replace")):
        end = min(position + len(run.encode(encoding)), len(data))  # half a character may end it
        out.put(run.encode(), position, end)
        position = end
    return out


def colours(data: bytes) -> Unwrapped | None:
    """Leave out a terminal's colours and cursor movements."""
    return cut_out(data, _COLOUR) if b"\x1b[" in data else None


def cut_out(data: bytes, pattern: re.Pattern[bytes]) -> Unwrapped | None:
    """Leave out what matches; None where nothing does."""
    out = Unwrapped(data)
    position = 0
    for found in pattern.finditer(data):
        out.keep(position, found.start())
        position = found.end()
    if not position:
        return None
    out.keep(position, len(data))
    return out


def fences(data: bytes) -> Unwrapped | None:
    """Take the fenced block of a Markdown text that has most of a stream in it."""
    marks = list(_FENCE.finditer(data))
    best: tuple[int, int, int] | None = None
    while marks:
        opening = marks.pop(0)
        sign = opening.group(1)
        closing = next((mark for mark in marks if mark.group(1).startswith(sign)), None)
        while marks and closing is not None and marks[0].start() <= closing.start():
            marks.pop(0)
        start, end = opening.end() + 1, closing.start() if closing else len(data)
        score = len(STREAM.findall(data[start:end]))
        if best is None or score > best[0]:
            best = score, start, end
    if best is None or not best[0]:
        return None
    out = Unwrapped(data)
    out.keep(best[1], best[2])
    return out


def quoted_lines(data: bytes) -> Unwrapped | None:
    """Lines that all begin with `>`, as mails and Markdown quote, or with `+`, as patches do."""
    lines = list(lines_of(data))
    told = [data[start:end] for start, end, _ in lines if data[start:end].strip()]
    signs = {text.lstrip()[:1] for text in told if _QUOTE.match(text)}
    if len(told) < 2 or len(signs) != 1 or not all(_QUOTE.match(text) for text in told):
        return None
    out = Unwrapped(data)
    for start, _, following in lines:
        mark = _QUOTE.match(data, start)
        out.keep(min(mark.end() if mark else start, following), following)
    return out


def log_prefixes(data: bytes) -> Unwrapped | None:
    """Leave out what loggers, containers and editors put before each line: times, levels, names, numbers.

    The prefix is learnt: what stands before `data:` or `{` in most lines, digits, blanks and levels being equal.
    """
    lines = list(lines_of(data))
    shapes = Counter(
        _shape(data[start : start + found.start()])
        for start, end, _ in lines
        if (found := _TOKEN.search(data[start:end])) is not None
    )
    total = sum(shapes.values())
    bare = sum(count for shape, count in shapes.items() if not shape.strip())
    learnt = [shape for shape, count in shapes.items() if count > 1 and _LOOKS_LIKE_LOG.match(_sample(shape))]
    if not learnt or bare > (1 - _MOST) * total or sum(shapes[shape] for shape in learnt) < _MOST * (total - bare):
        return None
    patterns = [_pattern(shape) for shape in learnt]
    patterns.sort(key=lambda each: -len(each))
    pattern = re.compile(b"|".join(patterns), re.IGNORECASE)
    out = Unwrapped(data)
    head = False
    for start, end, following in lines:
        text = data[start:end]
        begin = _begin(text, pattern)
        head = text[begin : begin + 5] == b"HTTP/" or (head and text[begin:].strip() != b"")
        words = _OTHER_WORDS.match(text, begin) is not None
        if head or (not words and (begin or not text.strip() or text.lstrip()[:1] in b'{}[]":')):
            out.keep(start + begin, following)
    return out


def _begin(text: bytes, pattern: re.Pattern[bytes]) -> int:
    """Say where a line's own text begins."""
    found = pattern.match(text)
    if found is not None:
        return found.end()
    token = _TOKEN.search(text)
    return token.start() if token is not None and _LOOKS_LIKE_LOG.match(text[: token.start()]) else 0


def _shape(prefix: bytes) -> bytes:
    """Give a prefix with what changes from line to line made equal."""
    return _LEVEL.sub(b"\x02", _DIGITS.sub(b"\x01", _BLANKS.sub(b" ", prefix)))


def _sample(shape: bytes) -> bytes:
    return shape.replace(b"\x01", b"0").replace(b"\x02", b"INFO")


def _pattern(shape: bytes) -> bytes:
    """Make the expression that matches a prefix of this shape; the blanks at its end may be gone on empty lines."""
    body = re.escape(shape.rstrip(b" ")).replace(b"\\ ", b"[ \\t]+")
    body = body.replace(b"\x01", rb"\d+").replace(b"\x02", b"(?:" + _LEVEL.pattern[2:-2] + b")")
    return body + (rb"(?:[ \t]+|\Z)" if shape.endswith(b" ") else b"")
