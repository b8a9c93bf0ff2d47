"""Wrappings of HTTP: `curl -v` and `-i`, dumps with heads, the sizes of the chunked transfer coding."""

import re

from msgspec import Struct

from trunkline.inspection.paste.spans import Unwrapped
from trunkline.inspection.paste.text import cut_out

_STATUS = re.compile(rb"^HTTP/\d(?:\.\d)? (\d{3})[^\r\n]*(?:\r?\n|\Z)", re.MULTILINE)
_REQUEST = re.compile(rb"\s*(?:[A-Z]{3,7} \S+ HTTP/\d|[a-zA-Z]*\$? ?curl |fetch\()")
_BODY = re.compile(rb"^[ \t]*(?:data:|\{)", re.MULTILINE)
_HEADER = re.compile(rb"([\w!#$%&'*+.^`|~-]+):[ \t]*([^\r\n]*)(?:\r?\n|\Z)")
_BLANK = re.compile(rb"[ \t]*(?:\r?\n|\Z)")
_CURL = re.compile(
    rb"^(?:[*<>] [^\r\n]*|[<>]|[{}] \[[^\r\n]*)(?:\r\n|\n|\r|\Z)"
    rb"|^[ \t]*% Total[^\r\n]*[\r\n]+|^[ \t]*Dload[^\r\n]*[\r\n]+"
    rb"|^[ \t]*\d+(?:[ \t]+[\d.]+[kMG]?){2,}[^{}\r\n]*--:--:--[^{}\r\n]*(?:[\r\n]+|\Z)"
    rb"|\* Connection #\d+ to host [^\r\n]* left intact[\r\n]*|^\* Closing connection[^\r\n]*[\r\n]*",
    re.MULTILINE,
)
_CURL_SAYS = re.compile(rb"^< (HTTP/\d[^\r\n]*|[\w-]+:[^\r\n]*)", re.MULTILINE)
_COMMAND = re.compile(
    rb"\s*(?:\$ ?)?curl (?:[^\r\n]*\\\r?\n)*[^\r\n]*\r?\n|\s*(?:await )?fetch\([\s\S]*?^\}\);?[ \t]*\r?\n", re.MULTILINE
)
_SIZE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_SIZE_BETWEEN = re.compile(rb"(?:\A|\r?\n)[0-9a-fA-F]{1,8}[ \t]*\r?(?:\n|\Z)")


class Head(Struct):
    """What a capture tells of the response's head."""

    status: int = 200
    headers: list[tuple[str, str]] = []


def command(data: bytes) -> Unwrapped | None:
    """Leave out the `curl` or `fetch` command above an answer."""
    found = _COMMAND.match(data)
    if found is None or not data[found.end() :].strip():
        return None
    out = Unwrapped(data)
    out.keep(found.end(), len(data))
    return out


def curl(data: bytes, head: Head) -> Unwrapped | None:
    """`curl -v`: what it says of the connection, the request and the head goes; the body stays."""
    says = list(_CURL_SAYS.finditer(data))
    start = next((place for place in range(len(says) - 1, -1, -1) if says[place].group(1).startswith(b"HTTP/")), None)
    if start is None:
        return None
    _take_head(b"\n".join(found.group(1).strip() for found in says[start:]), 0, head)
    return cut_out(data, _CURL)


def dump(data: bytes, head: Head) -> Unwrapped | None:
    """Heads before the body, with the request's or without: the last response's body stays."""
    found = _STATUS.search(data)
    if found is None or (_BODY.search(data, 0, found.start()) and not _REQUEST.match(data)):
        return None
    body = found.start()
    while (status := _STATUS.match(data, body)) is not None:
        body = _take_head(data, status.start(), head)
    out = Unwrapped(data)
    out.keep(body, len(data))
    return out


def _take_head(data: bytes, position: int, head: Head) -> int:
    """Read a head; give the place behind its empty line."""
    status = _STATUS.match(data, position)
    assert status is not None  # noqa: S101 - the caller has seen it
    head.status = int(status.group(1))
    head.headers = []
    position = status.end()
    while (line := _HEADER.match(data, position)) is not None and line.group(1).lower() != b"data":
        head.headers.append((line.group(1).decode().lower(), line.group(2).strip().decode("utf-8", "replace")))
        position = line.end()
    blank = _BLANK.match(data, position)
    return blank.end() if blank is not None else position


def chunked(data: bytes, *, told: bool, reads: list[int]) -> Unwrapped | None:
    """Take the sizes of the chunked transfer coding out of a body; `reads`: where each chunk ends inside.

    `told`: the head says that the body is chunked; then sizes that do not fit any more are taken out by their looks.
    """
    out = Unwrapped(data)
    position = len(data) - len(data.lstrip(b"\r\n"))
    while position < len(data):
        size = _SIZE.match(data, position)
        if size is None:
            return _by_looks(data) if told and out.size else None
        length = int(size.group(1), 16)
        end = min(size.end() + length, len(data))
        out.keep(size.end(), end)
        if length:
            reads.append(out.size)
        following = _BLANK.match(data, end)
        if following is None:
            reads.clear()
            return _by_looks(data) if told else None
        if not length:
            break
        position = following.end()
    return out if out.size else None


def _by_looks(data: bytes) -> Unwrapped | None:
    return cut_out(data, _SIZE_BETWEEN)
