"""OpenAI's chunk and completion as they come: typed where all agree, loose where providers differ."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.wire.read import as_dict, as_list


class Function(Struct):
    """The function of a tool-call fragment."""

    name: Any = None
    arguments: Any = None
    input: Any = None


class ToolFragment(Struct):
    """A piece of a tool call."""

    index: Any = None
    id: Any = None
    type: Any = None
    function: Function | None = None
    custom: Function | None = None
    extra_content: Any = None
    name: Any = None
    arguments: Any = None


class Delta(Struct):
    """What a choice says; a message of an unstreamed answer has the same members."""

    role: Any = None
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    reasoning_details: Any = None
    refusal: Any = None
    tool_calls: list[ToolFragment] | None = None
    function_call: Function | None = None
    images: Any = None
    videos: Any = None
    annotations: Any = None
    audio: Any = None


class Choice(Struct):
    """One of the answers."""

    index: Any = None
    delta: Delta | None = None
    finish_reason: Any = None
    message: Delta | None = None
    text: Any = None
    logprobs: Any = None
    usage: Any = None
    finishReason: Any = None  # noqa: N815 - as on the wire


class Chunk(Struct):
    """A chunk, a completion, an error, or another dialect's object (then `choices` is None)."""

    choices: list[Choice] | None = None
    id: Any = None
    created: Any = None
    model: Any = None
    object: Any = None
    usage: Any = None
    service_tier: Any = None
    system_fingerprint: Any = None
    error: Any = None
    x_groq: Any = None
    citations: Any = None
    media: Any = None


parse_chunk = msgspec.json.Decoder(Chunk).decode
"""Raises msgspec.DecodeError for what is no JSON, and for what is no chunk (see `mend_chunk`)."""


def mend_chunk(value: Any) -> Chunk | None:
    """Read a JSON value that did not fit the types: members of the wrong type count as absent. None: no object."""
    if type(value) is not dict:
        return None
    mended = {**value, "choices": [_mend_choice(item) for item in _choices(value)] if value.get("choices") else None}
    try:
        return msgspec.convert(mended, Chunk)
    except (msgspec.ValidationError, RecursionError):
        return None


def _choices(value: dict[str, Any]) -> list[dict[str, Any]]:
    choices = value.get("choices")
    items = [choices] if type(choices) is dict else as_list(choices)
    return [item for item in items if type(item) is dict]


def _mend_choice(choice: dict[str, Any]) -> dict[str, Any]:
    mended = dict(choice)
    for name in ("delta", "message"):
        value = choice.get(name)
        if type(value) is str:
            mended[name] = {"content": value}
        elif type(value) is dict:
            mended[name] = _mend_delta(value)
        else:
            mended[name] = None
    return mended


def _mend_delta(delta: dict[str, Any]) -> dict[str, Any]:
    calls = delta.get("tool_calls")
    items = [calls] if type(calls) is dict else as_list(calls)
    call = delta.get("function_call")
    return {
        **delta,
        "tool_calls": [_mend_call(item) for item in items if type(item) is dict] or None,
        "function_call": call if type(call) is dict else None,
    }


def _mend_call(call: dict[str, Any]) -> dict[str, Any]:
    return {**call, "function": as_dict(call.get("function")) or None, "custom": as_dict(call.get("custom")) or None}
