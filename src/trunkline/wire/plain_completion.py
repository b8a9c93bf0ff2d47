"""The usual unstreamed answer, read in one typed step; whatever holds one member more is read the long way."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Raw, Struct

from trunkline.core.events import Ended, Event, Extras, Finished, FinishReason, Started, TextDelta, UsageReported
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.usage import Count, PlainUsage, read_plain_usage


class _Message(Struct, forbid_unknown_fields=True):
    role: Literal["assistant"]
    content: Annotated[str, Meta(min_length=1)]
    refusal: None = None
    annotations: Annotated[list[Any], Meta(max_length=0)] = []


class _Choice(Struct, forbid_unknown_fields=True):
    index: Literal[0]
    message: _Message
    finish_reason: Literal["stop", "length", "content_filter"]
    logprobs: None = None


class _Completion(Struct, forbid_unknown_fields=True):
    id: str
    object: Literal["chat.completion"]
    created: Count
    model: str
    choices: tuple[_Choice]
    usage: PlainUsage | None = None
    service_tier: str | None = None
    system_fingerprint: str | None = None


_FINISHED: dict[FinishReason, Finished] = {
    "stop": Finished("stop"),
    "length": Finished("length"),
    "content_filter": Finished("content_filter"),
}
_ENDED = Ended()
_decode = msgspec.json.Decoder(_Completion).decode
_encode = msgspec.json.Encoder().encode


def read_plain_completion(body: bytes) -> list[Event] | None:
    """Give the events of a completion as OpenAI writes it, of one choice that is text; None: it is none."""
    try:
        whole = _decode(body)
    except UNREADABLE:
        return None
    (choice,) = whole.choices
    events: list[Event] = [
        Started(whole.id, whole.model.strip(), whole.created),
        TextDelta(choice.message.content),
        _FINISHED[choice.finish_reason],
    ]
    if whole.service_tier or whole.system_fingerprint:
        events.insert(1, _extras(whole))
    usage = read_plain_usage(whole.usage) if whole.usage is not None else None
    if usage is not None:
        events.append(UsageReported(usage))
    events.append(_ENDED)
    return events


def _extras(whole: _Completion) -> Extras:
    extras = {}
    if whole.service_tier:
        extras["service_tier"] = Raw(_encode(whole.service_tier))
    if whole.system_fingerprint:
        extras["system_fingerprint"] = Raw(_encode(whole.system_fingerprint))
    return Extras(extras)
