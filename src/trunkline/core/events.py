"""The closed vocabulary between provider dialects and client surfaces: an event says one thing."""

from typing import Literal

from msgspec import Raw, Struct
from msgspec.structs import replace

from trunkline.core.errors import ErrorType
from trunkline.core.media import Media

FinishReason = Literal["stop", "length", "tool_calls", "content_filter", "function_call"]


ToolKind = Literal["function", "custom", "legacy"]
"""`legacy`: the upstream sent `function_call` in place of `tool_calls`."""
_INPUTS = ("cached_tokens", "cache_write_tokens", "audio_input_tokens", "image_input_tokens")
_OUTPUTS = (
    "reasoning_tokens", "audio_output_tokens", "image_output_tokens",
    "accepted_prediction_tokens", "rejected_prediction_tokens",
)  # fmt: skip
"""The kinds of tokens on each side; a token is of one kind at most."""


class Usage(Struct, frozen=True):
    """Tokens of one call, OpenAI's meaning: `completion_tokens` include reasoning, `prompt_tokens` include cached."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0
    cached_tokens: int = 0
    cached_audio_tokens: int = 0
    """Those of them that are sound, and told as sound too, where the upstream says so."""
    cache_write_tokens: int = 0
    cache_write_1h_tokens: int = 0
    """Those of them that are kept for an hour."""
    audio_input_tokens: int = 0
    image_input_tokens: int = 0
    reasoning_tokens: int = 0
    audio_output_tokens: int = 0
    image_output_tokens: int = 0
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0
    cost_microusd: int | None = None
    """What the upstream itself says the call cost, if it does."""
    estimated: bool = False
    """A part of it is made out by us."""

    def after(self, former: "Usage") -> "Usage":
        """Give this later usage of the same call; what it does not tell is the former's.

        Kinds of tokens are taken over as far as their side has room for them: no token is paid twice.
        """
        prompt = self.prompt_tokens or former.prompt_tokens
        completion = self.completion_tokens or former.completion_tokens
        total = max(self.total_tokens, prompt + completion)  # of which reasoning may be beside the completion
        cost = self.cost_microusd
        if cost is None and total <= former.total_tokens:
            cost = former.cost_microusd
        return replace(
            self,
            prompt_tokens=prompt,
            completion_tokens=completion,
            total_tokens=total,
            cached_audio_tokens=self.cached_audio_tokens or former.cached_audio_tokens,
            cache_write_1h_tokens=self.cache_write_1h_tokens or former.cache_write_1h_tokens,
            cost_microusd=cost,
            **self._kinds(former, _INPUTS, prompt),
            **self._kinds(former, _OUTPUTS, total - prompt),
        )

    def _kinds(self, former: "Usage", kinds: tuple[str, ...], count: int) -> dict[str, int]:
        """Give the kinds that the former tells and this does not, on a side of so many tokens."""
        taken, room = {}, count - sum(getattr(self, kind) for kind in kinds)
        for kind in kinds:
            tokens = min(getattr(former, kind), room)
            if tokens > 0 and not getattr(self, kind):
                taken[kind] = tokens
                room -= tokens
        return taken

    def beside(self, other: "Usage") -> "Usage":
        """Give the usage of two choices of one call: they have one prompt, and each its own completion."""
        sums = {name: getattr(self, name) + getattr(other, name) for name in ("completion_tokens", *_OUTPUTS)}
        return replace(self, **sums, total_tokens=self.prompt_tokens + sums["completion_tokens"])


class Started(Struct, frozen=True):
    """The answer has begun; blank members are unknown."""

    id: str = ""
    model: str = ""
    created: int = 0


class TextDelta(Struct, frozen=True, gc=False):
    """A piece of the answer's text. `logprobs` is OpenAI's choice-level object, verbatim."""

    text: str
    choice: int = 0
    logprobs: Raw | None = None


class ReasoningDelta(Struct, frozen=True, gc=False):
    """A piece of the model's reasoning. `details` is the provider's own account, verbatim; then text may be blank."""

    text: str
    choice: int = 0
    details: Raw | None = None


class RefusalDelta(Struct, frozen=True, gc=False):
    """A piece of a refusal."""

    text: str
    choice: int = 0


class ToolCallStarted(Struct, frozen=True, gc=False):
    """A tool call begins; `call` counts from 0 in its choice. `extra` holds members that must come back with it."""

    call: int
    id: str
    name: str
    choice: int = 0
    kind: ToolKind = "function"
    extra: dict[str, Raw] | None = None


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A piece of a tool call's arguments, JSON text cut anywhere."""

    call: int
    arguments: str
    choice: int = 0


class MediaReady(Struct, frozen=True):
    """A finished picture or film."""

    media: Media
    choice: int = 0


class Progress(Struct, frozen=True):
    """The work goes on; `percent` 0…100 where it is known, `text` is for a person."""

    percent: float | None = None
    text: str = ""


class Finished(Struct, frozen=True):
    """One choice is complete."""

    reason: FinishReason
    choice: int = 0


class UsageReported(Struct, frozen=True):
    """What the upstream counted; of several the last one with content wins, for prompt and completion each."""

    usage: Usage


class Extras(Struct, frozen=True):
    """Members that are kept verbatim. `choice` None: top level of the chunk, else the delta of that choice."""

    fields: dict[str, Raw]
    choice: int | None = None


class Ended(Struct, frozen=True):
    """The stream is complete. Always the last event, unless it is `Failed`."""


class Failed(Struct, frozen=True):
    """The stream is broken; always the last event.

    `code` is a name of `core.errors` or the upstream's own; `status` the HTTP status to say so with before a stream.
    """

    code: str
    message: str
    type: ErrorType = "upstream_error"
    status: int | None = None
    param: str | None = None
    retry_after_s: float | None = None


Event = (
    Started
    | TextDelta
    | ReasoningDelta
    | RefusalDelta
    | ToolCallStarted
    | ToolCallDelta
    | MediaReady
    | Progress
    | Finished
    | UsageReported
    | Extras
    | Ended
    | Failed
)
