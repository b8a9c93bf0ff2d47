"""A chat with an image or video model as its provider is asked, in a chat again."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from trunkline.core.chat import ChatRequest
from trunkline.core.media import MediaRequest
from trunkline.core.quirk import Quirk
from trunkline.core.route import RouteTarget
from trunkline.ingress.media_params import NESTED, OF_ENDPOINTS, said_in_body
from trunkline.ingress.media_pictures import role_of
from trunkline.ingress.media_words import MEANINGS, WORDS, plain
from trunkline.ingress.openai_images import ImagesAsk
from trunkline.wire.media_body import link
from trunkline.wire.read import as_dict

OURS = frozenset({
    "tools", "tool_choice", "parallel_tool_calls", "functions", "function_call", "callback_url",
})  # fmt: skip
"""Members that media models ignore, and those that are the gateway's."""
NOT_OF_CHATS = OF_ENDPOINTS - {"callback_url"}
MEANT = {
    "aspect_ratio": "ratio", "image_size": "tier", "resolution": "tier", "size": "pixels", "output_format": "format",
    "n": "n", "quality": "quality", "background": "background", "duration": "seconds", "fps": "fps", "seed": "seed",
    "negative_prompt": "negative", "generate_audio": "audio",
}  # fmt: skip
"""What the members of `words_of` mean."""


def chat_of(asked: ImagesAsk) -> ChatRequest:
    """Give a request of the images endpoints as a chat, whose message and words `as_chat` writes."""
    own = {name: raw for name, raw in asked.fields.items() if name not in NOT_OF_CHATS and role_of(name) is None}
    message = Raw(msgspec.json.encode([{"role": "user", "content": ""}]))
    return ChatRequest(asked.model, {**_without_words(own), "messages": message}, stream=asked.stream)


def as_chat(request: ChatRequest, asked: MediaRequest, item: RouteTarget, quirks: Sequence[Quirk]) -> ChatRequest:
    """Write the request for one target.

    The client's members stay as they are; what it said in the prompt or in the model's name is put beside them, and the
    pictures are parts of the last user message. A provider with a quirk for it is told everything in its own way.
    """
    words = words_of(asked)
    fields = {name: value for name, value in request.fields.items() if name not in OURS and role_of(name) is None}
    fields["messages"] = _messages(request.fields["messages"], asked)
    tell = next((quirk.pictures for quirk in quirks if quirk.pictures is not None), None)
    if tell is not None:
        fields = _without_words(fields)
        tell(fields, words)
    else:
        known = said_in_body(request.fields, asked.kind)
        beside = {name: value for name, value in words.items() if MEANT[name] not in known}
        fields |= {name: Raw(msgspec.json.encode(value)) for name, value in beside.items()}
    return replace(request, model=item.target.model, fields=fields, n=max(request.n, asked.n))


def words_of(asked: MediaRequest) -> dict[str, Any]:
    """Give what is asked for as members of a body, under their usual names."""
    size = f"{asked.width}x{asked.height}" if asked.width and asked.height else None
    words: dict[str, Any] = {
        "aspect_ratio": asked.ratio,
        "image_size" if asked.kind == "image" else "resolution": asked.tier,
        "size": size,
        "output_format": asked.output_format,
        "n": asked.n if asked.n > 1 else None,
        "quality": asked.quality,
        "background": asked.background,
        "duration": asked.seconds,
        "fps": asked.fps,
        "seed": asked.seed,
        "negative_prompt": asked.negative_prompt,
        "generate_audio": asked.audio,
    }
    return {name: _short(value) for name, value in words.items() if value is not None}


def _short(value: Any) -> Any:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _messages(raw: Raw, asked: MediaRequest) -> Raw:
    """Put the prompt and its pictures into the last user message."""
    messages = msgspec.json.decode(raw)
    at = next(at for at in range(len(messages) - 1, -1, -1) if as_dict(messages[at]).get("role") == "user")
    parts: list[dict[str, Any]] = [{"type": "text", "text": asked.prompt}] if asked.prompt else []
    parts += [{"type": "image_url", "image_url": {"url": link(one)}} for one in asked.inputs]
    content: Any = parts if asked.inputs else asked.prompt
    messages[at] = {**messages[at], "content": content}
    return Raw(msgspec.json.encode(messages))


def _without_words(fields: Mapping[str, Raw]) -> dict[str, Raw]:
    """Leave out every spelling of what is asked for, also inside of objects."""
    kept: dict[str, Raw] = {}
    for name, raw in fields.items():
        if plain(name) in NESTED:
            inner = _stripped(msgspec.json.decode(raw))
            if inner:
                kept[name] = Raw(msgspec.json.encode(inner))
        elif WORDS.get(plain(name)) not in MEANINGS or plain(name) == "user":
            kept[name] = raw
    return kept


def _stripped(value: Any) -> Any:
    inner = {
        name: _stripped(one) if plain(name) in NESTED else one
        for name, one in as_dict(value).items()
        if plain(name) not in WORDS and role_of(name) is None
    }
    return {name: one for name, one in inner.items() if one not in ({}, None)}
