"""A tap on the line: what a call used, when it began to answer, how it ended; settles it exactly once."""

import time
from bisect import bisect_left
from typing import Literal, Protocol

from msgspec import Struct
from msgspec.structs import replace

from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Finished,
    MediaReady,
    Progress,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from trunkline.core.money import EndReason
from trunkline.core.provider import ModelKind
from trunkline.core.route import RouteTarget
from trunkline.policy.made import Made
from trunkline.policy.tokens import TokenCount, count_prompt

HEDGED = "hedged"
"""In the ledger, in place of an error's code, of targets that were asked as well and broken off."""
CacheUse = Literal["", "hit", "miss"]
"""Whether the answer was looked for in the response cache, and was there."""
GAP_BOUNDS_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10, 30)
"""The bounds by which the times between events are counted."""
LONG_BYTES = 16 * 1024
"""The messages of a stream that are longer are let go when its answer begins."""
_UNNOTED = frozenset({Started, Finished, Extras, Progress})


class Settlement(Struct, frozen=True):
    """Everything known of a call at its end."""

    request: ChatRequest
    caller: Caller
    target: RouteTarget | None
    usage: Usage
    estimated: bool
    end_reason: EndReason
    error_code: str
    status: int
    attempts: int
    started_ms: int
    ended_ms: int
    first_event_ms: int | None
    chunks: int
    media: int
    repairs: dict[str, int]
    made: tuple[Made, ...] = ()
    """The media that were kept, of models of kind image or video."""
    credential: str = ""
    """The name of the credential that was used last."""
    kind: Literal["text", "image", "video", "embedding"] = "text"
    path: str = "/v1/chat/completions"
    """Of the endpoint."""
    cache: CacheUse = ""
    gaps: tuple[int, ...] = ()
    """How many waits between events fell under each of `GAP_BOUNDS_S`, and above the last."""
    gaps_s: float = 0.0
    """All those waits together."""


class Tally(Struct, frozen=True):
    """What beside tokens makes a call's price: when it began, how many pictures it made, whose count the tokens are."""

    started_ms: int
    media: int
    estimated: bool
    made: tuple[Made, ...] = ()


class Account(Protocol):
    """Whoever is told what a call came to."""

    def settle(self, settlement: Settlement) -> None:
        """End the call."""

    def lose(self, settlement: Settlement) -> None:
        """Book a target that was asked as well and broken off, before the call is settled."""


class Meter:
    """Watches one call's events. `settle` hands over the settlement once, whatever is called afterwards."""

    kind: ModelKind = "text"
    made: tuple[Made, ...] = ()
    """The media that were kept."""
    path = "/v1/chat/completions"
    """Of the endpoint."""
    _partial: Usage | None = None
    """What the provider tells of one side alone: zeros are unknown."""
    _prompt: int | None = None
    """Our own count of the prompt, where that was let go."""

    def __init__(
        self,
        request: ChatRequest,
        caller: Caller,
        account: Account,
    ) -> None:
        self._request = request
        self._caller = caller
        self._account = account
        self._settled = False
        self._tokens = TokenCount()
        self._usage: Usage | None = None
        self._ended = self._estimated = False
        self.first_event_ms: int | None = None
        self.chunks = self.media = 0
        """How many events and media have gone by."""
        self.started_ms = time.time_ns() // 1_000_000
        self._begun = self._first_at = self._fed_at = time.monotonic()
        self._gaps = [0] * (len(GAP_BOUNDS_S) + 1)

    def feed(self, events: list[Event]) -> list[Event]:
        """Watch the line's next events; where the upstream gave no usage, our own count goes in before the end."""
        now = time.monotonic()
        if self.first_event_ms is None:
            self.first_event_ms = round((now - self._begun) * 1000)
            self._first_at = now
            if self._request.stream:
                self._let_go()
        else:
            self._gaps[bisect_left(GAP_BOUNDS_S, now - self._fed_at)] += 1
        self._fed_at = now
        texts: list[str] = []
        for event in events:
            if type(event) is TextDelta:
                texts.append(event.text)
            elif type(event) not in _UNNOTED:
                self._note(event)
        if texts:
            self._tokens.add("".join(texts))
        self.chunks += len(events)
        if self._ended and self._usage is None:
            self._usage = usage = self._completed()
            said = [event for event in events[:-1] if type(event) is not UsageReported]
            return [*said, UsageReported(usage), events[-1]]
        return events

    def feed_text(self, text: str) -> None:
        """Watch a piece of text that comes alone, when the answer has begun."""
        now = time.monotonic()
        self._gaps[bisect_left(GAP_BOUNDS_S, now - self._fed_at)] += 1
        self._fed_at = now
        self.chunks += 1
        if text.isascii():
            self._tokens.bytes += len(text)
        else:
            self._tokens.add(text)

    def _note(self, event: Event) -> None:
        if type(event) is Ended:
            self._ended = True
        elif type(event) is UsageReported:
            usage = event.usage
            if usage.prompt_tokens and usage.completion_tokens:
                self._usage = usage
            else:
                self._partial = usage
        elif type(event) is ReasoningDelta or type(event) is RefusalDelta:
            self._tokens.add(event.text)
        elif type(event) is ToolCallDelta:
            self._tokens.add(event.arguments)
        elif type(event) is ToolCallStarted:
            self._tokens.add(event.name)
        elif type(event) is MediaReady:
            self.media += 1

    @property
    def completion_tokens(self) -> int:
        """Our own count of what has been answered so far."""
        return self._tokens.tokens

    def _let_go(self) -> None:
        """Count a long prompt and let go of what was sent: its stream may be long, and one of many."""
        fields = self._request.fields
        held = not self._caller.key.record and fields.get("messages")
        if held and memoryview(held).nbytes > LONG_BYTES:
            self._prompt = self.estimate().prompt_tokens
            fields.clear()  # each member holds the whole body
            self._request.said = None

    def estimate(self) -> Usage:
        """Give our own count of what has been used so far."""
        prompt = count_prompt(self._request) if self._prompt is None else self._prompt
        completion = self._tokens.tokens
        return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)

    def _completed(self) -> Usage:
        """Give the provider's usage, with our own count in place of what it does not tell."""
        usage, told = self.estimate(), self._partial
        if told is None:
            self._estimated = True
            return usage
        prompt, completion = told.prompt_tokens or usage.prompt_tokens, told.completion_tokens
        if not completion:
            completion = max(told.total_tokens - prompt, 0) or usage.completion_tokens
        if (prompt, completion) == (told.prompt_tokens, told.completion_tokens):
            return told  # nothing was said
        self._estimated = True
        total = max(told.total_tokens, prompt + completion)
        return replace(told, prompt_tokens=prompt, completion_tokens=completion, total_tokens=total)

    def _cut_off(self, held: Usage | None) -> None:
        """Count an answer that was cut: by the provider's numbers, as far as they go.

        Some are told at the beginning, with an output of nothing or one token: then the output is our own count.
        """
        usage = self.estimate()
        if held is None or not held.prompt_tokens:
            self._usage, self._estimated = usage, True
        elif 2 * held.completion_tokens >= usage.completion_tokens:
            self._usage = held
        else:
            completion = usage.completion_tokens
            total = held.prompt_tokens + completion
            self._usage, self._estimated = replace(held, completion_tokens=completion, total_tokens=total), True

    def lose(self, target: RouteTarget, credential: str) -> None:
        """Book a target that was asked as well and broken off before it answered: its provider has read the request."""
        prompt = self.estimate().prompt_tokens
        self._account.lose(
            Settlement(
                request=self._request,
                caller=self._caller,
                target=target,
                usage=Usage(prompt_tokens=prompt, total_tokens=prompt),
                estimated=True,
                end_reason="cancelled",
                error_code=HEDGED,
                status=200,
                attempts=1,
                started_ms=self.started_ms,
                ended_ms=time.time_ns() // 1_000_000,
                first_event_ms=None,
                chunks=0,
                media=0,
                repairs={},
                credential=credential,
            )
        )

    @property
    def told(self) -> bool:
        """Whether the provider's usage, or our count in its place, has gone by."""
        return self._usage is not None

    @property
    def tally(self) -> Tally:
        """Give what beside tokens makes the price."""
        return Tally(self.started_ms, self.media, self._estimated, self.made)

    def settle(  # noqa: PLR0913 - what only the end knows
        self,
        end_reason: EndReason,
        *,
        target: RouteTarget | None,
        attempts: int,
        repairs: dict[str, int],
        credential: str = "",
        error_code: str = "",
        status: int = 200,
        held: Usage | None = None,
        cache: CacheUse = "",
        unanswered: bool = False,
    ) -> None:
        """End the call: completed, failed, or left by its client. Only the first time counts.

        `held` is what the provider had counted before the answer was cut; `unanswered`: a provider was asked, and
        broken off before it said anything: it has read the request.
        """
        if self._settled:
            return
        self._settled = True
        if self._usage is None and (self.first_event_ms is not None or unanswered):
            self._cut_off(self._partial or held)
        self._account.settle(
            Settlement(  # in the order of its fields: names cost more than the struct
                self._request,
                self._caller,
                target,
                self._usage or Usage(),
                self._estimated,
                end_reason,
                error_code,
                status,
                attempts,
                self.started_ms,
                time.time_ns() // 1_000_000,
                self.first_event_ms,
                self.chunks,
                self.media,
                repairs,
                self.made,
                credential,
                self.kind,
                self.path,
                cache,
                tuple(self._gaps) if self._fed_at > self._first_at else (),
                self._fed_at - self._first_at,
            )
        )
