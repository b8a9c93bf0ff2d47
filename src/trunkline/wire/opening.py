"""How a stream opens: framings that are told by their first bytes, before any JSON."""

import re
from typing import Literal

from trunkline.wire.aws_events import PRELUDE_BYTES, is_prelude

Framing = Literal["usual", "aws", "texts", "codes"]
_LEAD = re.compile(rb"(?:\xef\xbb\xbf)?(?:[ \t]{0,32}(?::[^\r\n]{0,900})?(?:\r\n|\n|\r))*")  # empty lines, comments
_LEAD_BEGUN = re.compile(rb"\xef\xbb?|[ \t]{0,32}(?::[^\r\n]{0,900})?")
_ID = re.compile(rb"(?:id:[^\r\n]{0,32}(?:\r\n|\n|\r))?")
_ID_BEGUN = re.compile(rb"i|id|id:[^\r\n]{0,32}\r?")
_TEXTS = re.compile(rb"event: ?(?:output|logs)[ \t]{0,32}[\r\n]")
_TEXTS_BEGUN = (b"event: output", b"event:output", b"event: logs", b"event:logs")
_CODES = re.compile(rb"[0-9a-k]:[\"\[{]")
_CODES_BEGUN = re.compile(rb"[0-9a-k]:?")
_MOST_BYTES = 64


def lead(data: bytes) -> int:
    """Say how many bytes of a mark, empty lines and comments come before anything else."""
    found = _LEAD.match(data)
    return found.end() if found else 0


def opening(data: bytes) -> Framing | None:
    """Tell the framing by the first bytes behind `lead`; None: more bytes must tell."""
    head = data[:_MOST_BYTES]
    if head[:5] == b"data:":  # nearly all
        return "usual"
    if head[:1] == b"\x00" and len(head) < PRELUDE_BYTES:
        return None
    if is_prelude(head[:PRELUDE_BYTES]):
        return "aws"
    found = _ID.match(head)
    at = found.end() if found else 0
    if _TEXTS.match(head, at):
        return "texts"
    if _CODES.match(head):
        return "codes"
    texts = any(each.startswith(head[at:].rstrip(b" \t")) for each in _TEXTS_BEGUN)
    begun = texts or _ID_BEGUN.fullmatch(head) or _CODES_BEGUN.fullmatch(head) or _LEAD_BEGUN.fullmatch(data)
    return None if begun else "usual"
