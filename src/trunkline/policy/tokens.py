"""Our own count of tokens, for upstreams that give no usage (contract section 9); the ledger marks it as estimated."""

import re
from typing import Any

_CJK = re.compile(
    "[\u1100-\u11ff\u2e80-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff]"
)
_LATIN_BYTES_PER_TOKEN = 4


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


def count_request(messages: Any, image_tokens: int = 765) -> int:
    """Count a request's messages (decoded JSON): their strings, 4 for each message, a flat number for each picture."""
    count = TokenCount()
    extra = 0
    for message in messages if type(messages) is list else ():
        extra += 4
        extra += image_tokens * _walk(message, count)
    return count.tokens + extra


def _walk(value: Any, count: TokenCount) -> int:
    """Count the strings in a value; gives how many pictures it holds."""
    if type(value) is str:
        if value[:11].lower() == "data:image/":
            return 1
        count.add(value)
        return 0
    if type(value) is dict:
        if "image_url" in value:
            return 1
        return sum(_walk(item, count) for name, item in value.items() if name not in ("role", "type", "id"))
    if type(value) is list:
        return sum(_walk(item, count) for item in value)
    return 0
