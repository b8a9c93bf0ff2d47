"""Wrappings of program output: string literals, one JSON object a log line, HAR as browsers save it."""

import binascii
import re

import msgspec
from msgspec import Raw, Struct

from trunkline.inspection.paste.http import Head
from trunkline.inspection.paste.spans import Unwrapped
from trunkline.inspection.paste.text import STREAM, lines_of

_LITERAL = re.compile(
    rb"(?<![\w'\"])[a-zA-Z]{0,2}('(?:[^'\\\n]|\\.)*'|\"(?:[^\"\\\n]|\\.)*\"|`(?:[^`\\]|\\.)*`)", re.DOTALL
)
_BETWEEN = re.compile(rb"[^'\"`{}]{0,200}")
_ESCAPE = re.compile(
    rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{2})|u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    rb"|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))",
    re.DOTALL,
)
_PLAIN = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"f": b"\f", b"v": b"\v", b"a": b"\a", b"\n": b""}
_BARE = re.compile(rb"\s*data: ?\{[^\r\n]*?\\n(?:\\n)?(?:data:|\s*\Z)")
_STREAM_STRING = re.compile(rb'\s*(?:(?:data|event|id):|HTTP/\d|\{[^{}]*"choices"|\[DONE\]|:|\Z)')
_MOST = 0.6  # of the lines have what all should have


def literals(data: bytes) -> Unwrapped | None:
    """Read string literals of Python or JavaScript, one or many, as `repr`, logs and debuggers show bytes."""
    if data.lstrip()[:5] == b"data:":
        return None  # an event stream whose values are strings: the reader knows them
    found: list[re.Match[bytes]] = []
    end = 0
    for literal in _LITERAL.finditer(data):
        if not _BETWEEN.fullmatch(data, end, literal.start()):
            return None
        found.append(literal)
        end = literal.end()
    if not found or not _BETWEEN.fullmatch(data, end):
        return None
    lines = len(found) > 1 and not any(literal.group(1)[:-1].endswith((rb"\n", rb"\r", b"\n")) for literal in found)
    out = Unwrapped(data)
    for literal in found:
        _decode(data, literal.start(1) + 1, literal.end() - 1, out, as_bytes=b"b" in literal.group()[:2].lower())
        if lines:
            out.put(b"\n", literal.end() - 1, literal.end())
    return out if out.size and STREAM.search(out.data) and _STREAM_STRING.match(out.data) else None


def bare_escapes(data: bytes) -> Unwrapped | None:
    r"""One line with `\n` written out, the quotes around it lost."""
    text = data.strip()
    if b"\n" in text or not _BARE.match(text) or _is_json(text.partition(b":")[2]):
        return None
    out = Unwrapped(data)
    _decode(data, 0, len(data), out, as_bytes=False)
    return out


def json_lines(data: bytes) -> Unwrapped | None:
    """Log records: JSON objects, one a line or one for all, with the stream's text in one of their strings."""
    records = [(0, data)] if _members(data) else [(start, data[start:end]) for start, end, _ in lines_of(data)]
    told = [(start, text, _members(text)) for start, text in records if text.strip()]
    objects = [(start, text, members) for start, text, members in told if members and "choices" not in members]
    if not objects or len(objects) < _MOST * len(told):
        return None
    names = [name for _, _, members in objects for name, value in members.items() if _is_stream(value)]
    if not names:
        return None
    name = max(set(names), key=names.count)
    out = Unwrapped(data)
    for start, text, members in objects:
        value = bytes(members.get(name, b""))
        if value[:1] != b'"' or not _STREAM_STRING.match(_text(value).encode("utf-8", "replace")):
            continue
        at = start + text.index(value)
        _decode(data, at + 1, at + len(value) - 1, out, as_bytes=False)
        if not value.endswith((rb'\n"', rb'\r"')):
            out.put(b"\n", at + len(value) - 1, at + len(value))
    return out


def _members(text: bytes) -> dict[str, Raw]:
    if text.lstrip()[:1] != b"{":
        return {}
    try:
        return msgspec.json.decode(text, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return {}


def _is_stream(value: Raw) -> bool:
    """Say whether a member is a string with an event, or a whole stream, in it."""
    text = bytes(value)
    return re.match(rb'"\s*(?:data: ?[\[{]|HTTP/\d|\{\s*\\"id\\"|event: ?\w)', text) is not None


def _text(literal: bytes) -> str:
    """Give what a JSON string says; its bytes may be no UTF-8, for nobody has looked at them."""
    return msgspec.json.decode(literal.decode("utf-8", "replace"), type=str)


def _is_json(text: bytes) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return False
    return True


def _decode(data: bytes, start: int, end: int, out: Unwrapped, *, as_bytes: bool) -> None:
    r"""Take a literal's text, its escapes read; `as_bytes`: `\xNN` is a byte, not a character."""
    position = start
    for found in _ESCAPE.finditer(data, start, end):
        out.keep(position, found.start())
        position = found.end()
        octal, byte, first, second, unit, point, other = found.groups()
        if octal is not None or byte is not None:
            number = int(octal, 8) if octal is not None else int(byte, 16)
            text = bytes((number & 255,)) if as_bytes else chr(number).encode()
        elif first is not None:
            text = bytes.fromhex((first + second).decode()).decode("utf-16-be").encode()
        elif unit is not None or point is not None:
            text = _character(int(unit or point, 16))
        else:
            text = _PLAIN.get(other, other)
        out.put(text, found.start(), found.end())
    out.keep(position, end)


def _character(number: int) -> bytes:
    """Write a code point; half a surrogate pair stays an escape, for the reader to see."""
    if 0xD800 <= number <= 0xDFFF:
        return b"\\u%04x" % number
    return chr(min(number, 0x10FFFF)).encode()


class _Header(Struct):
    name: str
    value: str


class _Content(Struct):
    text: str = ""
    encoding: str = ""


class _Response(Struct):
    content: _Content
    status: int = 200
    headers: list[_Header] = []


class _Entry(Struct):
    response: _Response


class _Log(Struct):
    entries: list[_Entry]


class _Saved(Struct):
    """A HAR file, or one entry of it."""

    log: _Log | None = None
    response: _Response | None = None


_TEXT = re.compile(rb'"text"\s*:\s*("(?:[^"\\]|\\.)*")', re.DOTALL)


def har(data: bytes, head: Head) -> Unwrapped | None:
    """HAR, whole or one entry of it: the answer that has most of a stream in it."""
    answers = _har_answers(data)
    if not answers:
        return None
    best = max(answers, key=lambda answer: len(STREAM.findall(_har_body(answer.content))))
    content = best.content
    text = next((found for found in _TEXT.finditer(data) if _text(found.group(1)) == content.text), None)
    if text is None:
        return None
    head.status = best.status
    head.headers = [(header.name.lower(), header.value) for header in best.headers]
    out = Unwrapped(data)
    if content.encoding == "base64":
        out.put(_har_body(content), text.start(1) + 1, text.end(1) - 1)
    else:
        _decode(data, text.start(1) + 1, text.end(1) - 1, out, as_bytes=False)
    return out


def _har_answers(data: bytes) -> list[_Response]:
    if data.lstrip()[:1] not in (b"{", b"[") or b'"response"' not in data:
        return []
    try:
        read = msgspec.json.decode(data, type=_Saved | list[_Entry])
    except (msgspec.DecodeError, UnicodeDecodeError):
        return []
    if isinstance(read, list):
        return [entry.response for entry in read]
    entries = [entry.response for entry in read.log.entries] if read.log else []
    return [*entries, read.response] if read.response else entries


def _har_body(content: _Content) -> bytes:
    if content.encoding != "base64":
        return content.text.encode("utf-8", "replace")
    try:
        return binascii.a2b_base64(content.text)
    except binascii.Error:
        return b""
