"""A chat request's members, taken one by one by a language that is not OpenAI's, so that none is lost silently."""

from typing import Any, Literal, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from trunkline.core.chat import ChatRequest, Target
from trunkline.wire.frame import UNREADABLE
from trunkline.wire.turns import Turn, read_turns, refuse, wrong

T = TypeVar("T")

_AROUND = frozenset(
    ("model", "stream", "stream_options", "user", "safety_identifier", "store", "metadata", "service_tier",
     "prompt_cache_key", "prompt_cache_options", "prompt_cache_retention", "moderation")
)  # fmt: skip
"""About the call, its caller and OpenAI's own books: without them the answer is the same."""
_DEFAULTS: dict[str, tuple[Any, ...]] = {
    "n": (1,),
    "temperature": (1,),
    "top_p": (1,),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "max_tokens": (),
    "max_completion_tokens": (),
    "modalities": (["text"],),
    "audio": (),
    "stop": ([],),
    "seed": (),
    "response_format": ({"type": "text"},),
    "tools": ([],),
    "tool_choice": ("auto", "none"),
    "parallel_tool_calls": (True,),
    "functions": ([],),
    "function_call": ("auto", "none"),
    "reasoning_effort": (),
    "verbosity": ("medium",),
    "prediction": (),
    "web_search_options": (),
    "messages": (),
}
"""OpenAI's members, with the values that ask for nothing."""


_NOTHING: dict[str, Any] = {"type": "object", "properties": {}}


class Tool(Struct, frozen=True):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tools(Struct, frozen=True):
    """The functions, and whether one must be called: `name` that one, else as `mode` says ("": not said)."""

    tools: list[Tool] = field(default_factory=list)
    native: list[dict[str, Any]] = field(default_factory=list)
    """Tools of the provider's own types, as they were sent."""
    mode: Literal["", "none", "auto", "required"] = ""
    name: str = ""
    parallel: bool = True


class Format(Struct, frozen=True):
    """How the answer is to be written: `json` any object, `schema` one of that schema."""

    kind: Literal["text", "json", "schema"] = "text"
    schema: dict[str, Any] = field(default_factory=dict)
    name: str = ""
    strict: bool | None = None


class _WireTool(Struct):
    function: Tool


class _Named(Struct):
    name: str = ""


class _Allowed(Struct):
    mode: Literal["auto", "required"] = "auto"
    tools: list[_WireTool] = field(default_factory=list)


class _Choice(Struct):
    type: str = ""
    function: _Named | None = None
    allowed_tools: _Allowed | None = None
    name: str = ""


class _Schema(Struct):
    name: str = ""
    schema: dict[str, Any] = field(default_factory=dict)
    strict: bool | None = None


class _WireFormat(Struct):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _Schema | None = None


def members(request: ChatRequest, target: Target) -> dict[str, Raw]:
    """Give the members as the target is to get them: dropped and renamed as its TOML says."""
    return fitted(dict(request.fields), target)


def fitted(fields: dict[str, Raw], target: Target) -> dict[str, Raw]:
    """Drop and rename members, in place, as the target's TOML says."""
    for name in target.drop:
        fields.pop(name, None)
    for old, new in target.rename.items():
        if old in fields:
            value = fields.pop(old)
            fields.setdefault(new, value)
    return fields


class Asked:
    """What a request asks for. Each `take…` raises GatewayError (400) that names the member and what is allowed."""

    def __init__(self, request: ChatRequest, target: Target) -> None:
        self._fields = members(request, target)
        extra: dict[str, Raw] = self.take("extra_body", dict[str, Raw], "an object") or {}
        for name, value in extra.items():
            self._fields.setdefault(name, value)

    def take(self, name: str, kind: type[T] | Any, allowed: str) -> T | None:
        """Take a member; None where it is absent or null."""
        raw = self._fields.pop(name, None)
        if raw is None or bytes(raw) == b"null":
            return None
        try:
            value: T = msgspec.json.decode(raw, type=kind)
        except UNREADABLE:
            wrong(name, allowed)
        return value

    def number(self, name: str) -> float | None:
        """Take a number."""
        return self.take(name, float, "a number")

    def count(self, name: str) -> int | None:
        """Take a whole number."""
        return self.take(name, int, "a whole number")

    def turns(self) -> list[Turn]:
        """Take the conversation."""
        return read_turns(self._fields.pop("messages", None))

    def most_tokens(self) -> int | None:
        """Take the most tokens of the answer, in its newer or older spelling."""
        newer, older = self.count("max_completion_tokens"), self.count("max_tokens")
        return newer if newer is not None else older

    def stop(self) -> list[str]:
        """Take the texts that end the answer."""
        value = self.take("stop", str | list[str], "a string or an array of strings")
        return [value] if isinstance(value, str) else value or []

    def effort(self) -> str:
        """Take how much the model is to think, "" where that is not said."""
        levels = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
        return self.take("reasoning_effort", levels, "none, minimal, low, medium, high, xhigh or max") or ""

    def format(self) -> Format:
        """Take how the answer is to be written."""
        allowed = "an object with `type`: text, json_object, or json_schema with a `json_schema`"
        value = self.take("response_format", _WireFormat, allowed)
        if value is None or value.type == "text":
            return Format()
        if value.type == "json_object":
            return Format("json")
        schema = value.json_schema or _Schema()
        return Format("schema", schema.schema, schema.name, schema.strict)

    def tools(self) -> Tools:
        """Take `tools`, `tool_choice` and `parallel_tool_calls`, or their older spellings."""
        tools, native = self._functions()
        parallel = self.take("parallel_tool_calls", bool, "true or false") is not False
        allowed = "none, auto, required, or an object that names a function"
        choice = self.take("tool_choice", Literal["none", "auto", "required"] | _Choice, allowed)
        if choice is None:
            named = self.take(
                "function_call", Literal["none", "auto"] | _Named, "none, auto, or an object with a `name`"
            )
            choice = _Choice("function", named) if isinstance(named, _Named) else named
        self._fields.pop("function_call", None)
        if not isinstance(choice, _Choice):
            return Tools(tools, native, choice or "", parallel=parallel)
        if choice.allowed_tools is not None:
            names = {each.function.name for each in choice.allowed_tools.tools}
            allowed_tools = [tool for tool in tools if tool.name in names]
            return Tools(allowed_tools, native, choice.allowed_tools.mode, parallel=parallel)
        name = choice.function.name if choice.function else choice.name
        if not name:
            wrong("tool_choice", allowed)
        return Tools(tools, native, "required", name, parallel=parallel)

    def _functions(self) -> tuple[list[Tool], list[dict[str, Any]]]:
        tools: list[Tool] = []
        native: list[dict[str, Any]] = []
        values: list[dict[str, Any]] = self.take("tools", list[dict[str, Any]], "an array of objects") or []
        for index, value in enumerate(values):
            if value.get("type", "function") == "function":
                try:
                    tools.append(msgspec.convert(value, _WireTool).function)
                except msgspec.ValidationError:
                    allowed = "an object with `name`, `description` and `parameters` (a JSON schema)"
                    wrong(f"tools[{index}].function", allowed)
            elif value.get("type") == "custom" and "custom" in value:
                refuse(f"tools[{index}]", "its provider knows only tools of the type function")
            else:
                native.append(value)
        older: list[Tool] = self.take("functions", list[Tool], "an array of functions") or []
        return tools + older, native

    def is_set(self, name: str) -> bool:
        """Say whether a member is there and asks for something."""
        raw = self._fields.get(name)
        if raw is None or bytes(raw) == b"null":
            return False
        try:
            return msgspec.json.decode(raw) not in _DEFAULTS.get(name, ())
        except UNREADABLE:
            return True

    def rest(self) -> dict[str, Any]:
        """Give the members that OpenAI does not know: they are the provider's own, and go along as they are.

        Raises GatewayError `invalid_value` for one of OpenAI's that nobody took and that asks for something.
        """
        rest: dict[str, Any] = {}
        for name, raw in self._fields.items():
            if name in _DEFAULTS:
                if self.is_set(name):
                    refuse(name, "its provider has nothing like it; leave it out, or `drop` it in the configuration")
            elif name not in _AROUND:
                rest[name] = msgspec.json.decode(raw)
        return rest


def openai_tools(tools: Tools) -> list[dict[str, Any]]:
    """Write functions as OpenAI does."""
    described = [
        compact(name=tool.name, description=tool.description) | {"parameters": tool.parameters or _NOTHING}
        for tool in tools.tools
    ]
    return [{"type": "function", "function": each} for each in described] + tools.native


def merged(body: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    """Put the provider's own members into a body: objects are merged, else the client's own word wins."""
    for name, value in more.items():
        mine = body.get(name)
        if isinstance(mine, dict) and isinstance(value, dict):
            merged(mine, value)
        else:
            body[name] = value
    return body


def compact(**members: Any) -> dict[str, Any]:
    """Give the members that have a value."""
    return {name: value for name, value in members.items() if value is not None and value not in ([], {})}
