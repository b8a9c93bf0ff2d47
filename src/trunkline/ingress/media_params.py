"""What a client wants drawn or filmed, from every spelling and place it may stand in (contract section 7)."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaInput, MediaRequest
from trunkline.core.provider import ModelKind
from trunkline.core.route import RouteTarget
from trunkline.ingress import media_fit
from trunkline.ingress.media_prompt import Prompt, picture_of, read_flags, read_messages
from trunkline.ingress.media_words import MEANINGS, WORDS, Found, plain, read_value, says_nothing
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.read import as_dict

PICTURES = ("image_url", "image", "input_reference", "images")
NESTED = frozenset({
    "extrabody", "google", "imageconfig", "generationconfig", "parameters", "imageoutputoptions", "videoconfig",
})  # fmt: skip
"""Objects whose members count, at the level below the body's own."""
DEEPEST = 5
LONGEST_PROMPT = 32_000
Levels = Sequence[list[Found]]
"""What was said, by precedence: the body's members, dashed ones, nested ones, flags, the model's name."""


def read_chat(request: ChatRequest, kind: ModelKind, item: RouteTarget) -> MediaRequest:
    """Read a chat for one target. Raises GatewayError (400) that names the spelling and what is allowed."""
    messages = msgspec.json.decode(request.fields["messages"])
    try:
        prompt = read_messages(messages)
    except ValueError as error:
        raise GatewayError(
            "invalid_value", f"A picture's data URL cannot be read: {error}.", param="messages"
        ) from None
    return read_media(request.fields, prompt, kind, item, request.model)


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
    text, flags = read_flags(prompt)
    request = read_media(fields, Prompt(text, flags, pictures), kind, item, model)
    known = {"prompt", "model", "stream", "user", "response_format", "callback_url", "mask", *PICTURES, *own}
    extra = {
        name: msgspec.json.decode(value)
        for name, value in fields.items()
        if name not in known and plain(name) not in WORDS and plain(name) not in NESTED
    }
    return msgspec.structs.replace(request, extra=extra)


def read_media(
    fields: Mapping[str, Raw], prompt: Prompt, kind: ModelKind, item: RouteTarget, model: str
) -> MediaRequest:
    """Put together what was said, the most explicit first, and fit it to what the model takes."""
    if kind == "text":
        raise GatewayError("invalid_value", f"{model!r} makes no pictures or films.", param="model")
    facts = item.facts
    inputs = _inputs(fields, prompt, facts.max_inputs, kind)
    if not prompt.text.strip() and not inputs:
        raise GatewayError("missing_required_parameter", "The last user message has no prompt.", param="messages")
    if len(prompt.text) > LONGEST_PROMPT:
        told = f"The prompt has {len(prompt.text)} characters; at most {LONGEST_PROMPT} are taken."
        raise GatewayError("invalid_value", told, param="messages" if "messages" in fields else "prompt")
    named = [Found("tier", facts.tier, "model")] if facts.tier else []
    said = chosen((*_said(fields), list(prompt.flags), named))
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
                    f"`{known[0].spelling}` says {_shown(known[0])} and `{found.spelling}` says {_shown(found)}; "
                    "say it once."
                )
                raise GatewayError("invalid_value", told, param=found.spelling)
    return counts


def _said(fields: Mapping[str, Raw]) -> tuple[list[Found], list[Found], list[Found]]:
    """Read the body's members, by level."""
    levels: tuple[list[Found], list[Found], list[Found]] = ([], [], [])
    for name, raw in fields.items():
        word = plain(name)
        if word in NESTED:
            _nested(msgspec.json.decode(raw), name, levels[2], 1)
        elif word in WORDS and not (word == "format" and bytes(raw)[:1] == b"{"):
            found = _member(name, word, msgspec.json.decode(raw), name)
            levels[1 if name.startswith(("-", "—", "–")) else 0].extend(found)
    return levels


def _nested(value: Any, path: str, into: list[Found], depth: int) -> None:
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = msgspec.json.decode(value)
        except UNREADABLE:
            return
    for name, inner in as_dict(value).items():
        word, spelling = plain(name), f"{path}.{name}"
        if word in NESTED and depth < DEEPEST:
            _nested(inner, spelling, into, depth + 1)
        elif word in WORDS:
            into.extend(_member(name, word, inner, spelling))


def _member(name: str, word: str, value: Any, spelling: str) -> list[Found]:
    """Read one member. Raises GatewayError when its value is none that is known."""
    if says_nothing(value):
        return []
    meaning = WORDS[word]
    found = read_value(meaning, value, spelling)
    if found is None:
        shown = msgspec.json.encode(value).decode()[:60]
        told = f"`{spelling}` is {shown}; allowed is {MEANINGS[meaning].allowed}."
        raise GatewayError("invalid_value", told, param=spelling if spelling != name else name)
    return [found]


def _inputs(fields: Mapping[str, Raw], prompt: Prompt, most: int | None, kind: ModelKind) -> tuple[MediaInput, ...]:
    """Give the pictures to go by: those sent with the request, else those that the model showed last."""
    given = [*prompt.pictures]
    for name in PICTURES:
        raw = fields.get(name)
        if raw is None:
            continue
        value = msgspec.json.decode(raw)
        for one in value if isinstance(value, list) else [value]:
            try:
                picture = picture_of(one)
            except ValueError as error:
                raise GatewayError("invalid_value", f"`{name}` cannot be read: {error}.", param=name) from None
            if picture is None and one is not None:
                told = f"`{name}` must be a link, a data URL or an object with `file_id` or `image_url`."
                raise GatewayError("invalid_value", told, param=name)
            given += [picture] if picture is not None else []
    pictures = [one for one in given if one.role != "mask"]
    if most is not None and len(pictures) > most:
        allowed = f"at most {most}" if most else "none"
        told = f"The request has {len(pictures)} pictures; this model takes {allowed}."
        raise GatewayError("invalid_value", told, param="messages" if "messages" in fields else "image")
    if not given and prompt.former and most != 0:
        given = [msgspec.structs.replace(one, former=True) for one in prompt.former[-(most or 1) :]]
    if kind == "video":
        roles = ("first_frame", "last_frame")
        given = [
            msgspec.structs.replace(one, role=roles[at]) if at < len(roles) and one.role == "image" else one
            for at, one in enumerate(given)
        ]
    return tuple(given)


def _shown(found: Found) -> str:
    value = found.value
    return f"{value[0]}x{value[1]}" if isinstance(value, tuple) else str(value)
