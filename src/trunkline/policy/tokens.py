"""Our own count of tokens, for upstreams that give no usage (contract section 9); the ledger marks it as estimated."""

import re
from typing import Any

import msgspec

from trunkline.core.chat import ChatRequest
from trunkline.wire.pdf import count_pages
from trunkline.wire.read import as_dict, as_text

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_LATIN_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 765
_MEDIA_CHARS_PER_TOKEN = 64
"""Of sound and films in base64. Models take up to 32 tokens a second of them: 12 kbit/s, less than any has."""
_PDF = ("data:application/pdf", "jvberi0")  # that is `%PDF-` in base64
_PAGE_TOKENS = 3000
"""Of a PDF. Anthropic bills some 7,000 for three pages (its "PDF support"), OpenAI their texts and pictures."""
_TEXTS = ("content", "text")
"""Members whose strings are text, whatever they look like."""
_HEAD_CHARS = 200
"""Within them a data URL says what it is."""


class TokenCount:
    """Counts text that comes in pieces: UTF-8 bytes ÷ 4, but one token for each CJK character."""

    __slots__ = ("bytes", "cjk")

    def __init__(self) -> None:
        self.bytes = 0
        """Of what is no CJK character."""
        self.cjk = 0

    def add(self, text: str) -> None:
        """Count a piece; where it was cut does not matter."""
        if text.isascii():
            self.bytes += len(text)
            return
        cjk = len(_CJK.findall(text))
        self.cjk += cjk
        self.bytes += (
            len(_CJK.sub("", text).encode("utf-8", "replace")) if cjk else len(text.encode("utf-8", "replace"))
        )

    @property
    def tokens(self) -> int:
        """The count so far, rounded up."""
        return self.cjk - (-self.bytes // _LATIN_BYTES_PER_TOKEN)


def count_tokens(text: str) -> int:
    """Count the tokens of one text."""
    count = TokenCount()
    count.add(text)
    return count.tokens


def count_texts(value: Any) -> int:
    """Count what is to be embedded (decoded JSON): texts, or tokens that are counted already."""
    if type(value) is str:
        return count_tokens(value)
    if type(value) is list:
        return sum(1 if type(item) is int else count_texts(item) for item in value)
    return 0


def count_prompt(request: ChatRequest) -> int:
    """Count a request's messages: strings, 4 for each message, so many for each picture and page, files by length."""
    words = request.words
    messages = msgspec.json.decode(words) if words is not None else None
    count = TokenCount()
    extra = request.pdf_pages * _PAGE_TOKENS
    for message in messages if type(messages) is list else ():
        extra += 4 + _walk(message, count)
    return count.tokens + extra


def _walk(value: Any, count: TokenCount) -> int:
    """Count the strings in a value; gives the tokens of what is no text in it."""
    if type(value) is str:
        return _string(value, count)
    if type(value) is list:
        return sum(_walk(item, count) for item in value)
    if type(value) is not dict:
        return 0
    if "image_url" in value:
        return _IMAGE_TOKENS
    if "input_audio" in value:
        return len(as_text(as_dict(value["input_audio"]).get("data"))) // _MEDIA_CHARS_PER_TOKEN
    extra = 0
    for name, item in value.items():
        if name in _TEXTS and type(item) is str:
            count.add(item)
        elif name not in ("role", "type", "id"):
            extra += _walk(item, count)
    return extra


def _string(value: str, count: TokenCount) -> int:
    head = value[:_HEAD_CHARS].lower()
    if head.startswith("data:image/"):
        return _IMAGE_TOKENS
    if head.startswith(("data:audio/", "data:video/")):
        return len(value) // _MEDIA_CHARS_PER_TOKEN
    if head.startswith(_PDF):
        data = value.partition(",")[2] if head.startswith("data:") else value
        return _PAGE_TOKENS * count_pages(memoryview(data.encode("ascii", "replace")))
    if head.startswith("data:") and ";base64," in head:  # a text, or as long as one
        count.bytes += len(value) * 3 // 4
    else:
        count.add(value)
    return 0
