"""What a client wants drawn or filmed, from every spelling and place it may stand in (contract section 7)."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.provider import ModelFacts, ModelKind
from trunkline.core.route import RouteTarget
from trunkline.ingress import media_fit
from trunkline.ingress.media_pictures import pictures_of, role_of
from trunkline.ingress.media_prompt import Prompt, read_messages
from trunkline.ingress.media_shape import shown
from trunkline.ingress.media_suffix import read_suffix
from trunkline.ingress.media_words import MEANINGS, ONLY, WORDS, Found, plain, read_value, says_nothing
from trunkline.ingress.prompt_flags import take_flags
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.read import as_dict

NESTED = frozenset({
    "extrabody", "google", "imageconfig", "generationconfig", "parameters", "imageoutputoptions", "videoconfig",
})  # fmt: skip
"""Objects whose members count, at the level below the body's own."""
OF_CHATS = frozenset({
    "messages", "model", "stream", "stream_options", "temperature", "top_p", "frequency_penalty", "presence_penalty",
    "logit_bias", "logprobs", "top_logprobs", "max_tokens", "max_completion_tokens", "stop", "tools", "tool_choice",
    "parallel_tool_calls", "functions", "function_call", "response_format", "modalities", "audio", "reasoning_effort",
    "verbosity", "prediction", "web_search_options", "service_tier", "store", "metadata", "prompt_cache_key",
    "prompt_cache_options", "prompt_cache_retention", "safety_identifier", "callback_url", "session_id", "chat_id",
    "message_id", "id", "params", "features", "background_tasks", "variables", "model_item", "options", "keep_alive",
    "thinking", "enable_thinking", "reasoning", "include_reasoning", "provider", "plugins", "transforms", "route",
    "models", "repetition_penalty", "min_p", "top_k", "typical_p", "files", "tool_ids", "filter_ids", "tool_servers",
})  # fmt: skip
"""Members of chats, of their front ends and of text models: they say nothing of a picture."""
OF_ENDPOINTS = frozenset({"prompt", "model", "stream", "response_format", "callback_url"})
DEEPEST = 5
LONGEST_PROMPT = 32_000
Levels = Sequence[list[Found]]
"""What was said, by precedence: the body's members, dashed ones, nested ones, flags, the model's name."""


def read_chat(request: ChatRequest, kind: ModelKind, item: RouteTarget) -> MediaRequest:
    """Read a chat for one target. Raises GatewayError (400) that names the spelling and what is allowed."""
    messages = msgspec.json.decode(request.fields["messages"])
    try:
        prompt = read_messages(messages, kind)
    except ValueError as error:
        raise GatewayError(
            "invalid_value", f"A picture's data URL cannot be read: {error}.", param="messages"
        ) from None
    read = read_media(request.fields, prompt, kind, item, request.model)
    return replace(read, extra=_extra(request.fields, OF_CHATS))


def read_asked(  # noqa: PLR0913, PLR0917 - an endpoint's request
    fields: Mapping[str, Raw],
    kind: ModelKind,
    item: RouteTarget,
    model: str,
    pictures: tuple[MediaInput, ...] = (),
    own: Iterable[str] = (),
) -> MediaRequest:
    """Read the body of a media endpoint: `prompt`, `pictures` that came as files, `own` members of the endpoint.

    Members that nobody knows go on to the provider. Raises GatewayError (400).
    """
    raw = fields.get("prompt")
    try:
        prompt = "" if raw is None else msgspec.json.decode(raw, type=str)
    except UNREADABLE:
        raise GatewayError("invalid_value", "`prompt` must be a string.", param="prompt") from None
    if not prompt.strip():
        raise GatewayError("missing_required_parameter", "`prompt` is required.", param="prompt")
    text, flags = take_flags(prompt, kind)
    request = read_media(fields, Prompt(text, flags, pictures), kind, item, model)
    return replace(request, extra=_extra(fields, OF_ENDPOINTS.union(own)))


def read_media(
    fields: Mapping[str, Raw], prompt: Prompt, kind: ModelKind, item: RouteTarget, model: str
) -> MediaRequest:
    """Put together what was said, the most explicit first, and fit it to what the model takes."""
    if kind == "text":
        raise GatewayError("invalid_value", f"{model!r} makes no pictures or films.", param="model")
    facts = item.facts
    inputs = _inputs(fields, prompt, facts, kind)
    if not prompt.text.strip() and not [one for one in inputs if not one.former]:
        raise GatewayError("missing_required_parameter", "The last user message has no prompt.", param="messages")
    if len(prompt.text) > LONGEST_PROMPT:
        told = f"The prompt has {len(prompt.text)} characters; at most {LONGEST_PROMPT} are taken."
        raise GatewayError("invalid_value", told, param="messages" if "messages" in fields else "prompt")
    named = [Found("tier", facts.tier, "model")] if facts.tier else []
    said = chosen((*_said(fields, kind), list(prompt.flags), [*named, *read_suffix(item.suffix)]))
    return media_fit.fit(said, facts, kind, MediaRequest(kind=kind, prompt=prompt.text, model=model, inputs=inputs))


def chosen(levels: Levels) -> dict[str, tuple[Found, int]]:
    """Give for each meaning what counts, with its level. Raises GatewayError when one level contradicts itself."""
    counts: dict[str, tuple[Found, int]] = {}
    for level, all_found in enumerate(levels):
        for found in all_found:
            known = counts.get(found.meaning)
            if known is None:
                counts[found.meaning] = found, level
            elif known[1] == level and known[0].value != found.value:
                told = (
                    f"`{known[0].spelling}` says {shown(known[0])} and `{found.spelling}` says {shown(found)}; "
                    "say it once."
                )
                raise GatewayError("invalid_value", told, param=found.spelling)
    return counts


def _said(fields: Mapping[str, Raw], kind: ModelKind) -> tuple[list[Found], list[Found], list[Found]]:
    """Read the body's members, by level."""
    levels: tuple[list[Found], list[Found], list[Found]] = ([], [], [])
    for name, raw in fields.items():
        word = plain(name)
        if word in NESTED:
            value = msgspec.json.decode(raw)
            if word == "extrabody" and value and not _object(value):
                raise GatewayError("invalid_value", f"`{name}` must be an object.", param=name)
            _nested(value, name, kind, levels[2], 1)
        elif not (word == "format" and bytes(raw)[:1] == b"{"):
            level = 1 if name.startswith(("-", "—", "–")) else 0
            levels[level].extend(_member(name, raw, name, kind))
    return levels


def said_in_body(fields: Mapping[str, Raw], kind: ModelKind) -> set[str]:
    """Give what is said outside of the prompt and the model's name, by meaning."""
    said = {found.meaning for level in _said(fields, kind) for found in level}
    return said | {"pixels"} if {"width", "height"} <= said else said


def _nested(value: Any, path: str, kind: ModelKind, into: list[Found], depth: int) -> None:
    for name, inner in _object(value).items():
        spelling = f"{path}.{name}"
        if plain(name) in NESTED and depth < DEEPEST:
            _nested(inner, spelling, kind, into, depth + 1)
        else:
            into.extend(_member(name, inner, spelling, kind))


def _object(value: Any) -> dict[str, Any]:
    """Read an object, also one that comes as a JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = msgspec.json.decode(value)
        except UNREADABLE:
            return {}
    return as_dict(value)


def _member(name: str, value: Any, spelling: str, kind: ModelKind) -> Iterator[Found]:
    """Read one member. Raises GatewayError when its value is none that is known."""
    meaning = WORDS.get(plain(name))
    if meaning is None:
        return
    value = msgspec.json.decode(value) if isinstance(value, Raw) else value
    if says_nothing(value):
        return
    if ONLY.get(meaning, kind) != kind:
        if value:
            whose = "films" if ONLY[meaning] == "video" else "pictures"
            raise GatewayError("invalid_value", f"`{spelling}` is for {whose}; this model makes none.", param=spelling)
        return
    found = read_value(meaning, value, spelling)
    if found is None:
        written = msgspec.json.encode(value).decode()[:60]
        told = f"`{spelling}` is {written}; allowed is {MEANINGS[meaning].allowed}."
        raise GatewayError("invalid_value", told, param=spelling)
    yield found


def _inputs(fields: Mapping[str, Raw], prompt: Prompt, facts: ModelFacts, kind: ModelKind) -> tuple[MediaInput, ...]:
    """Give the pictures to go by: those of the request, before them as many former ones as the model still takes."""
    given = list(dict.fromkeys([*prompt.pictures, *_in_members(fields)]))
    pictures = [one for one in given if one.role != "mask"]
    most = facts.max_inputs
    if most is not None and len(pictures) > most:
        allowed = f"at most {most}" if most else "none"
        told = f"The request has {len(pictures)} pictures; this model takes {allowed}."
        raise GatewayError("invalid_value", told, param="messages" if "messages" in fields else "image")
    if not given:
        given = [*prompt.former[-(most or 1) :]] if most != 0 else []
    elif most is not None and kind == "image" and all(one.role == "image" for one in given):
        known = {replace(one, former=True) for one in given}
        before = [one for one in prompt.former if one not in known]
        given = [*before[max(len(before) - most + len(pictures), 0) :], *given]
    if kind == "video":
        roles = ("first_frame", "last_frame")
        given = [
            replace(one, role=roles[at]) if at < len(roles) and one.role == "image" else one
            for at, one in enumerate(given)
        ]
    return tuple(given)


def _in_members(fields: Mapping[str, Raw]) -> Iterator[MediaInput]:
    """Read the pictures among a body's members, and those in `extra_body` that SDKs have not flattened."""
    members: dict[str, Any] = {name: raw for name, raw in fields.items() if role_of(name) is not None}
    nested = _object(msgspec.json.decode(fields["extra_body"])) if "extra_body" in fields else {}
    members = {**{name: value for name, value in nested.items() if role_of(name) is not None}, **members}
    for name, value in members.items():
        try:
            for picture in pictures_of(name, msgspec.json.decode(value) if isinstance(value, Raw) else value):
                if picture is None:
                    told = f"`{name}` must be a link, a data URL or an object with `file_id` or `image_url`."
                    raise GatewayError("invalid_value", told, param=name)
                yield picture
        except ValueError as error:
            raise GatewayError("invalid_value", f"`{name}` cannot be read: {error}.", param=name) from None


def _extra(fields: Mapping[str, Raw], known: frozenset[str]) -> dict[str, Any]:
    """Give the members that are no parameter of ours; what `extra_body` holds counts as if SDKs had flattened it."""
    nested = _object(msgspec.json.decode(fields["extra_body"])) if "extra_body" in fields else {}
    said: dict[str, Any] = {**nested, **fields}
    return {
        name: msgspec.json.decode(value) if isinstance(value, Raw) else value
        for name, value in said.items()
        if name not in known
        and not name.startswith("-")
        and plain(name) not in NESTED
        and plain(name) not in WORDS
        and role_of(name) is None
    }
