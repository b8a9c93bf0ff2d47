"""OpenAI's chunk and completion as they come: typed where all agree, loose where providers differ."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.wire.frame import UNREADABLE
from trunkline.wire.mend import mend
from trunkline.wire.read import as_dict, as_text, dicts


class Function(Struct, gc=False):
    """The function of a tool-call fragment."""

    name: Any = None
    arguments: Any = None
    parameters: Any = None
    input: Any = None
    args: Any = None


class ToolFragment(Struct, gc=False):
    """A piece of a tool call."""

    index: Any = None
    id: Any = None
    call_id: Any = None
    tool_call_id: Any = None
    type: Any = None
    function: Function | None = None
    custom: Function | None = None
    extra_content: Any = None
    name: Any = None
    arguments: Any = None
    parameters: Any = None
    input: Any = None
    args: Any = None


class Delta(Struct, gc=False):
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
    text: Any = None
    reasoning_text: Any = None
    thinking_content: Any = None
    thought: Any = None
    thinking_blocks: Any = None
    image: Any = None
    image_url: Any = None
    video: Any = None
    video_url: Any = None
    attachments: Any = None
    multi_mod_content: Any = None
    media: Any = None
    files: Any = None
    image_urls: Any = None
    inline_data: Any = None
    inlineData: Any = None  # noqa: N815 - as on the wire
    reasoningContent: Any = None  # noqa: N815 - as on the wire
    toolCalls: list[ToolFragment] | None = None  # noqa: N815 - as on the wire
    tool_call: ToolFragment | None = None
    extra_content: Any = None
    finish_reason: Any = None
    usage: Any = None
    error: Any = None

    @property
    def answers(self) -> bool:
        """Whether a message holds an answer: some send pieces as messages, the first of which is empty."""
        return bool(self.content or self.tool_calls or self.toolCalls or self.images or self.videos or self.refusal)


class Choice(Struct, gc=False):
    """One of the answers."""

    index: Any = None
    delta: Delta | None = None
    finish_reason: Any = None
    message: Delta | None = None
    messages: Any = None
    text: Any = None
    content: Any = None
    logprobs: Any = None
    usage: Any = None
    finishReason: Any = None  # noqa: N815 - as on the wire
    stop_reason: Any = None
    native_finish_reason: Any = None
    tool_calls: list[ToolFragment] | None = None
    reasoning_content: Any = None
    error: Any = None


class Chunk(Struct, gc=False):
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
    images: Any = None
    videos: Any = None
    data: Any = None
    image_result: Any = None
    video_result: Any = None
    finish_reason: Any = None
    usageMetadata: Any = None  # noqa: N815 - as on the wire
    timings: Any = None
    base_resp: Any = None

    def media_beside(self) -> dict[str, Any]:
        """Give the members that hold media beside the choices, if there are any."""
        if self.media is None and not (
            self.images or self.videos or self.data or self.image_result or self.video_result
        ):  # fmt: skip
            return {}
        names = ("media", "images", "videos", "image_result", "video_result", "model")
        members = {name: getattr(self, name) for name in names}
        return members | {"data": list(dicts(self.data))}  # an object may be anything


parse_chunk = msgspec.json.Decoder(Chunk).decode
"""Raises msgspec.DecodeError for what is no JSON, and for what is no chunk (see `mend_chunk`)."""


def mend_chunk(value: Any) -> Chunk | None:
    """Read a JSON value that did not fit the types: members of the wrong type count as absent. None: no object."""
    if type(value) is not dict:
        return None
    choices: list[Any] | None = [] if value.get("choices") in ([], {}) else None
    if value.get("choices"):
        choices = [_mend_choice(part) for choice in _choices(value) for part in _parts(choice)]
    return mend({**value, "choices": choices}, Chunk)


def text_of_chunk(chunk: Chunk) -> Any:
    """Give the content of the first choice's delta."""
    delta = chunk.choices[0].delta if chunk.choices else None
    return delta.content if delta is not None else None


def text_of_message(value: dict[str, Any]) -> str:
    """Give the text of one of a choice's `messages`; Azure's are deltas, tell a tool's words, and end with a mark."""
    said = as_dict(value.get("delta")) or value
    text = as_text(said.get("text")) or as_text(said.get("content"))
    return "" if said.get("role") == "tool" or (text == "[DONE]" and value.get("end_turn") is True) else text


def _choices(value: dict[str, Any]) -> list[dict[str, Any]]:
    """Give the choices of a list, of one choice alone, or of an object by their numbers."""
    choices = value.get("choices")
    if type(choices) is dict:
        single = not choices.keys() or any(name in choices for name in ("delta", "message", "text", "finish_reason"))
        choices = [choices] if single else list(choices.values())
    if type(choices) is list and choices and type(choices[0]) is list:
        choices = choices[0]
    return list(dicts(choices))


def _parts(choice: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a choice whose delta is a list as one choice for each of its items."""
    deltas = list(dicts(choice.get("delta")))
    if not deltas:
        return [choice]
    index = choice.get("index", 0)
    last = {**choice, "index": index, "delta": deltas[-1]}
    return [*({"index": index, "delta": delta} for delta in deltas[:-1]), last]


def _mend_choice(choice: dict[str, Any]) -> dict[str, Any]:
    mended = dict(choice)
    for name in ("delta", "message"):
        value = choice.get(name)
        if type(value) is str:
            mended[name] = {"content": value}
        elif type(value) is dict:
            mended[name] = _mend_delta(value)
    return mended


def _mend_delta(delta: dict[str, Any]) -> dict[str, Any]:
    calls = _unquoted(delta.get("tool_calls"))
    if type(calls) is dict and calls and all(type(item) is dict and key.isdigit() for key, item in calls.items()):
        calls = list(calls.values())
    mended = {
        **delta,
        "tool_calls": [_named(item) for item in dicts(calls if type(calls) is list else [calls])] or None,
    }
    if type(delta.get("function_call")) is str:
        mended["function_call"] = {"name": delta["function_call"]}
    return mended


def _named(call: dict[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    return {**call, "function": {**call, "name": function}} if type(function) is str else call


def _unquoted(value: Any) -> Any:
    """Read a value that was sent as its JSON text."""
    try:
        return msgspec.json.decode(value) if type(value) is str else value
    except UNREADABLE:
        return None
