"""The port of rates: how much a key may ask for in any 60 seconds, and how many streams it may have open."""

from typing import Literal, Protocol

from msgspec import Struct

from trunkline.core.keys import Key

RateKind = Literal["requests", "tokens", "images", "streams"]


class Left(Struct, frozen=True):
    """What is left of one limit, and in how many seconds all of it will be there again."""

    limit: int
    remaining: int
    reset_s: float


class Verdict(Struct, frozen=True):
    """Whether a call may begin, by its key's rates. `short` is the limit that stands against it."""

    short: RateKind | None = None
    limit: int = 0
    retry_after_s: float = 0.0
    requests: Left | None = None
    tokens: Left | None = None


class Passed(Struct, frozen=True):
    """What was counted for a call when it began; handed back when it ends.

    `mark` is how who counts finds it again: the slot in which it was counted, or the call's number.
    """

    key_id: str
    mark: int
    tokens: int
    streams: int


class RateLimiter(Protocol):
    """Counts what keys ask for, by the rules of `policy.rate`."""

    async def take(self, key: Key, *, tokens: int, images: int, streams: int) -> tuple[Verdict, Passed]:
        """Count a call, if its key's rates allow it; `streams` is 1 if it is to be streamed.

        Raises GatewayError `storage_unavailable`.
        """

    def check(self, key: Key) -> None:
        """Let a key without rates pass, or raise GatewayError `storage_unavailable`: keys with a budget must wait."""

    def end(self, passed: Passed, tokens: int) -> None:
        """End a call that was counted; `tokens` is what it really used. Never waits."""
