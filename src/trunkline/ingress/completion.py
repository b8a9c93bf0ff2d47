"""An unstreamed answer: the same events, collected into one `chat.completion` (wire.md section 1.3)."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from trunkline.core.chat import ChatRequest
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from trunkline.ingress.openai_chat import usage_members

_encode = msgspec.json.Encoder().encode


class _Call:
    def __init__(self, event: ToolCallStarted) -> None:
        self.event = event
        self.arguments: list[str] = []

    def members(self) -> dict[str, Any]:
        text = "".join(self.arguments)
        if self.event.kind == "custom":
            inner: dict[str, Any] = {"type": "custom", "custom": {"name": self.event.name, "input": text}}
        else:
            inner = {"type": "function", "function": {"name": self.event.name, "arguments": text}}
        return {"id": self.event.id, **inner, **(self.event.extra or {})}


class _Rest:
    """What most choices have not."""

    def __init__(self) -> None:
        self.reasoning: list[str] = []
        self.details: list[Any] = []
        self.refusal: list[str] = []
        self.calls: list[_Call] = []
        self.logprobs: list[Raw] = []
        self.extras: dict[str, Raw] = {}

    def reason(self, event: ReasoningDelta) -> None:
        self.reasoning.append(event.text)
        if event.details is not None:
            self.details += msgspec.json.decode(event.details, type=list[Any])

    def add_to(self, message: dict[str, Any], *, legacy: bool) -> None:
        if self.refusal or self.calls:
            message["content"] = message["content"] or None
            message["refusal"] = "".join(self.refusal) or None
        if self.reasoning:
            message["reasoning_content"] = "".join(self.reasoning)
        if self.details:
            message["reasoning_details"] = self.details
        if self.calls and legacy:
            message["function_call"] = self.calls[0].members()["function"]
        elif self.calls:
            message["tool_calls"] = [call.members() for call in self.calls]
        message.update(self.extras)

    def all_logprobs(self) -> dict[str, Any] | None:
        if not self.logprobs:
            return None
        parts = [msgspec.json.decode(raw, type=dict[str, list[Any] | None]) for raw in self.logprobs]
        content = [item for part in parts for item in part.get("content") or ()]
        refusal = [item for part in parts for item in part.get("refusal") or ()]
        return {"content": content or None, "refusal": refusal or None}


class _Choice(Struct, eq=False):
    text: list[str] = []
    finish: str = "stop"
    rest: _Rest | None = None

    def members(self, index: int, *, legacy: bool) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": "".join(self.text), "refusal": None}
        logprobs, finish = None, self.finish
        if self.rest is not None:
            self.rest.add_to(message, legacy=legacy)
            logprobs = self.rest.all_logprobs()
        if legacy and finish == "tool_calls":
            finish = "function_call"
        return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": finish}


class Collector:
    """Events in; `failed` or the completion's bytes out. `id` and `created` stand in where the upstream gave none."""

    def __init__(self, request: ChatRequest, *, id: str, created: int) -> None:  # noqa: A002 - OpenAI's name
        self.usage = Usage()
        self.failed: Failed | None = None
        self.cost_usd: float | None = None
        self._request = request
        self._id = id
        self._created = created
        self._choices: list[_Choice] = []
        self._members: dict[str, Any] = {}

    def add_members(self, members: dict[str, Any]) -> None:
        """Put members at the top level of the completion."""
        self._members.update(members)

    def feed(self, events: list[Event]) -> None:
        """Take the next events."""
        choices = self._choices
        for event in events:
            if type(event) is TextDelta:
                choice = choices[event.choice] if event.choice < len(choices) else self._choice(event.choice)
                choice.text.append(event.text)
                if event.logprobs is not None:
                    self._rest(event.choice).logprobs.append(event.logprobs)
            elif type(event) is Started:
                self._id = event.id or self._id
                self._created = event.created or self._created
            elif type(event) is Finished:
                choice = choices[event.choice] if event.choice < len(choices) else self._choice(event.choice)
                choice.finish = event.reason
            elif type(event) is UsageReported:
                self.usage = event.usage
            elif type(event) is not Ended:
                self._note(event)

    def _note(self, event: Event) -> None:
        if type(event) is Extras:
            if event.choice is None:
                self._members.update(event.fields)
            else:
                _add(self._rest(event.choice).extras, event.fields)
        elif type(event) is ReasoningDelta:
            self._rest(event.choice).reason(event)
        elif type(event) is RefusalDelta:
            self._rest(event.choice).refusal.append(event.text)
        elif type(event) is ToolCallStarted:
            self._rest(event.choice).calls.append(_Call(event))
        elif type(event) is ToolCallDelta:
            self._rest(event.choice).calls[event.call].arguments.append(event.arguments)
        elif type(event) is Failed:
            self.failed = event

    def _choice(self, index: int) -> _Choice:
        choices = self._choices
        while len(choices) <= index:
            choices.append(_Choice())
        return choices[index]

    def _rest(self, index: int) -> _Rest:
        choice = self._choice(index)
        if choice.rest is None:
            choice.rest = _Rest()
        return choice.rest

    def body(self) -> bytes:
        """Write the completion; `failed` must be None."""
        legacy = self._request.legacy_functions
        return _encode(
            {
                "id": self._id,
                "object": "chat.completion",
                "created": self._created,
                "model": self._request.model,
                "system_fingerprint": None,
                "choices": [choice.members(index, legacy=legacy) for index, choice in enumerate(self._choices)],
                "usage": usage_members(self.usage, self.cost_usd),
                **self._members,
            }
        )


def _add(kept: dict[str, Raw], fields: dict[str, Raw]) -> None:
    """Put members of a delta to those of the deltas before it: lists, such as annotations, grow."""
    for name, value in fields.items():
        before = msgspec.json.decode(kept[name]) if name in kept else None
        more = msgspec.json.decode(value) if isinstance(before, list) else None
        kept[name] = Raw(_encode([*before, *more])) if isinstance(before, list) and isinstance(more, list) else value
