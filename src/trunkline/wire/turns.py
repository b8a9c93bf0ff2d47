"""The conversation of a chat request, read once for all languages that are not OpenAI's (wire.md section 1.2)."""

import base64
from collections.abc import Iterator
from typing import Any, Literal, NoReturn

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from trunkline.core.errors import GatewayError
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.read import as_dict, as_list, as_name, as_text, dicts

Role = Literal["system", "user", "assistant", "tool"]
_ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_SOUNDS = {"wav": "audio/wav", "mp3": "audio/mp3"}


class Words(Struct, frozen=True):
    """Text. `cache` is the `cache_control` that some clients put on a part."""

    text: str
    cache: dict[str, Any] | None = None


class Attached(Struct, frozen=True):
    """A picture, sound, film or file: a link, or base64 in `data`. `where` names the member it came in."""

    kind: Literal["image", "audio", "video", "file"]
    where: str
    url: str = ""
    data: str = ""
    mime_type: str = ""
    name: str = ""
    detail: str = ""
    cache: dict[str, Any] | None = None

    def decoded_text(self) -> str:
        """Give the text of a file that is one. Raises GatewayError."""
        try:
            return base64.b64decode(self.data, validate=True).decode()
        except ValueError:
            return wrong(self.where, "base64 of a text in UTF-8")

    @property
    def as_url(self) -> str:
        """Give the link, or a data URL."""
        return self.url or f"data:{self.mime_type};base64,{self.data}"


Part = Words | Attached


class Called(Struct, frozen=True):
    """A tool call that the model made in an earlier turn. `arguments` is an object, as the model wrote it."""

    id: str
    name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)


class Turn(Struct, frozen=True):
    """One message. `details` is what an earlier answer had as `reasoning_details`."""

    role: Role
    where: str
    parts: list[Part] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    call_id: str = ""
    name: str = ""
    reasoning: str = ""
    details: list[dict[str, Any]] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text of the message."""
        return "".join(part.text for part in self.parts if isinstance(part, Words))

    def only_text(self, language: str) -> str:
        """Give the text; raises GatewayError when there is something else, which the language cannot say here."""
        for part in self.parts:
            if isinstance(part, Attached):
                refuse(part.where, f"{language} takes only text in a message of the role `{self.role}`")
        return self.text


def refuse(where: str, why: str) -> NoReturn:
    """Raise GatewayError `invalid_value` for a member."""
    raise GatewayError("invalid_value", f"`{where}` cannot be sent to this model: {why}.", param=where)


def wrong(where: str, allowed: str) -> NoReturn:
    """Raise GatewayError `invalid_value` that says what a member must be."""
    raise GatewayError("invalid_value", f"`{where}` must be {allowed}.", param=where)


def read_turns(messages: Raw | None) -> list[Turn]:
    """Read `messages`. Raises GatewayError (400) that names what is wrong."""
    try:
        values = as_list(msgspec.json.decode(messages or b"[]"))
    except UNREADABLE:
        wrong("messages", "valid JSON")
    turns: list[Turn] = []
    for index, value in enumerate(dicts(values)):
        where = f"messages[{index}]"
        role = _ROLES.get(as_text(value.get("role")))
        if role is None:
            wrong(f"{where}.role", f"one of {', '.join(_ROLES)}")
        calls = list(_calls(value, index))
        turns.append(
            Turn(
                role=role,
                where=where,
                parts=list(_parts(value.get("content"), f"{where}.content")),
                calls=calls,
                call_id=as_name(value.get("tool_call_id")) or (_legacy_id(turns) if role == "tool" else ""),
                name=as_text(value.get("name")),
                reasoning=as_text(value.get("reasoning_content")) or as_text(value.get("reasoning")),
                details=list(dicts(value.get("reasoning_details"))),
            )
        )
    return turns


def call_names(turns: list[Turn]) -> dict[str, str]:
    """Give the names of all calls by id."""
    return {call.id: call.name for turn in turns for call in turn.calls}


def openai_calls(turn: Turn) -> list[dict[str, Any]]:
    """Write a turn's calls as OpenAI does, arguments as JSON text: several languages took this over."""
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": msgspec.json.encode(call.arguments).decode()},
        }
        for call in turn.calls
    ]


def json_or_text(text: str) -> Any:
    """Give what a tool returned: the object, if its text is one, else the text."""
    try:
        value = msgspec.json.decode(text)
    except UNREADABLE:
        return text
    return value if type(value) is dict else text


def _parts(content: Any, where: str) -> Iterator[Part]:
    if type(content) is str:
        if content:
            yield Words(content)
        return
    if content is not None and type(content) is not list:
        wrong(where, "a string or an array of parts")
    for index, part in enumerate(as_list(content)):
        place = f"{where}[{index}]"
        if type(part) is str:
            yield Words(part)
        elif type(part) is dict:
            found = _part(part, place)
            cache = as_dict(part.get("cache_control"))
            yield replace(found, cache=cache) if cache else found
        else:
            wrong(place, "an object with a `type`")


def _part(part: dict[str, Any], where: str) -> Part:
    kind = as_text(part.get("type"))
    if kind in ("text", "input_text", "output_text") or (not kind and "text" in part):
        return Words(as_text(part.get("text")))
    if kind == "refusal":
        return Words(as_text(part.get("refusal")))
    if kind in ("image_url", "video_url", "input_image", "image"):
        return _picture(part, kind, where)
    if kind == "input_audio":
        return _sound(as_dict(part.get("input_audio")), f"{where}.input_audio")
    if kind in ("file", "input_file"):
        file = as_dict(part.get("file")) or part
        url = as_text(file.get("file_data")) or as_text(file.get("file_url"))
        if not url and file.get("file_id"):
            refuse(f"{where}.file.file_id", "the file is not known here; send `file_data`")
        return _linked("file", f"{where}.file", url, name=as_text(file.get("filename")))
    return wrong(f"{where}.type", "one of text, image_url, input_audio, file, video_url, refusal")


def _picture(part: dict[str, Any], kind: str, where: str) -> Attached:
    inner = part.get(kind)
    value = inner if inner is not None else part.get("image_url", part.get("url"))
    url = as_text(value) or as_text(as_dict(value).get("url"))
    detail = as_text(as_dict(value).get("detail")) or as_text(part.get("detail"))
    return _linked("video" if kind == "video_url" else "image", f"{where}.{kind}", url, detail=detail)


def _sound(sound: dict[str, Any], where: str) -> Attached:
    data, form = as_text(sound.get("data")), as_text(sound.get("format"))
    if data[:5] == "data:":
        return _linked("audio", where, data)
    if not data or not form:
        wrong(where, "an object with `data` (base64) and `format`")
    return Attached("audio", where, data=data, mime_type=_SOUNDS.get(form, f"audio/{form}"))


def _linked(
    kind: Literal["image", "audio", "video", "file"], where: str, url: str, *, name: str = "", detail: str = ""
) -> Attached:
    if url[:5].lower() == "data:":
        head, comma, data = url[5:].partition(",")
        mime_type, _, coding = head.partition(";")
        if not comma or "base64" not in coding:
            wrong(where, "a link, or a data URL in base64")
        return Attached(kind, where, data=data, mime_type=mime_type.lower(), name=name, detail=detail)
    if not url.startswith(("http://", "https://")):
        wrong(where, "a link (https://…) or a data URL (data:image/png;base64,…)")
    return Attached(kind, where, url=url, name=name, detail=detail)


def _calls(message: dict[str, Any], number: int) -> Iterator[Called]:
    where = f"messages[{number}]"
    for index, call in enumerate(dicts(message.get("tool_calls"))):
        place = f"{where}.tool_calls[{index}]"
        custom = as_dict(call.get("custom"))
        function = as_dict(call.get("function")) or custom
        arguments = {"input": custom.get("input")} if custom else function.get("arguments")
        name = as_text(function.get("name"))
        if not name:
            wrong(f"{place}.function.name", "a string")
        yield Called(as_name(call.get("id")) or f"call_{number}_{index}", name, _object(arguments, place), _extra(call))
    legacy = as_dict(message.get("function_call"))
    if legacy:
        place = f"{where}.function_call"
        yield Called(f"call_{number}_0", as_text(legacy.get("name")), _object(legacy.get("arguments"), place))


def _extra(call: dict[str, Any]) -> dict[str, Any]:
    return as_dict(call.get("extra_content"))


def _object(arguments: Any, where: str) -> dict[str, Any]:
    """Read arguments: an object, or its JSON text; blank is `{}`."""
    if type(arguments) is str and arguments.strip():
        try:
            arguments = msgspec.json.decode(arguments)
        except UNREADABLE:
            wrong(f"{where}.function.arguments", "the JSON text of an object")
    if arguments is None or arguments == "":
        return {}
    if type(arguments) is not dict:
        wrong(f"{where}.function.arguments", "the JSON text of an object")
    return arguments


def _legacy_id(turns: list[Turn]) -> str:
    """Give the call that a legacy `function` message answers: the last one."""
    return next((call.id for turn in reversed(turns) for call in reversed(turn.calls)), "")
