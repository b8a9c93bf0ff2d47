"""DashScope's own generation API (wire.md section 8): pieces that are added, or the whole text each time."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.finish import first_told
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged, openai_tools
from trunkline.wire.error_body import read_error_body
from trunkline.wire.read import as_dict
from trunkline.wire.reader import EventReader
from trunkline.wire.turns import Attached, Turn, Words, openai_calls, refuse
from trunkline.wire.usage import read_usage

_TEXT = "/services/aigc/text-generation/generation"
_MEDIA = "/services/aigc/multimodal-generation/generation"
_MEMBERS = {"image": "image", "video": "video", "audio": "audio"}


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    content: Any = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None


class _Choice(Struct):
    index: int | None = None
    message: _Message | None = None
    delta: _Message | None = None
    finish_reason: str | None = None
    logprobs: Any = None

    @property
    def reason(self) -> str:
        """Why it ended, if it has: the word `null` is none."""
        return first_told(self.finish_reason)


class _Output(Struct):
    choices: list[_Choice] | None = None
    text: str | None = None
    finish_reason: str | None = None


class _Answer(Struct):
    output: _Output | None = None
    usage: Any = None
    request_id: str | None = None
    code: str | int | None = None


class Decoder(AnswerDecoder[_Answer]):
    """Answers, each with the next piece → events."""

    kind = _Answer

    def read(self, value: _Answer) -> bool:
        """Read one answer."""
        output = value.output
        if output is None or (value.code and not output.choices and not output.text):
            return False
        self.start(value.request_id)
        self.choices(output.choices or (), self._choice)
        self.text(output.text)
        self.usage(read_usage(value.usage))
        if output.finish_reason:
            self.finish(output.finish_reason)
        return True

    def _choice(self, choice: _Choice, index: int) -> None:
        message = choice.message or choice.delta or _Message()
        self.reasoning(message.reasoning_content, index)
        if isinstance(message.content, str):
            self.text(message.content, index, choice.logprobs)
        elif isinstance(message.content, list):
            self.parts(message.content, index)
        for call in message.tool_calls or ():
            function = call.function or _Function()
            self.tool(index=call.index, id=call.id, name=function.name, arguments=function.arguments, choice=index)
        if choice.reason:
            self.finish(choice.reason, index)


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request; members that only this provider knows are parameters."""
    asked = Asked(request, target)
    turns = asked.turns()
    media = any(isinstance(part, Attached) for turn in turns for part in turn.parts)
    form, effort, n = asked.format(), asked.effort(), asked.count("n")
    if form.kind == "schema":
        schema = {"name": form.name, "schema": form.schema} | compact(strict=form.strict)
        written: dict[str, Any] = {"type": "json_schema", "json_schema": schema}
    else:
        written = {"type": "json_object"}
    parameters = {"result_format": "message"} | compact(
        incremental_output=request.stream or None,
        max_tokens=asked.most_tokens(),
        temperature=asked.number("temperature"),
        top_p=asked.number("top_p"),
        seed=asked.count("seed"),
        stop=asked.stop(),
        presence_penalty=asked.number("presence_penalty"),
        n=n if n != 1 else None,
        logprobs=asked.take("logprobs", bool, "true or false") or None,
        top_logprobs=asked.count("top_logprobs"),
        response_format=None if form.kind == "text" else written,
        enable_thinking=effort != "none" if effort else None,
        enable_search=True if asked.take("web_search_options", dict[str, Any], "an object") is not None else None,
        **_tools(asked.tools()),
    )
    body = {
        "model": target.model,
        "input": {"messages": [_message(turn, media=media) for turn in turns]},
        "parameters": parameters,
    }
    rest = asked.rest()
    own = as_dict(rest.pop("parameters", None))
    merged(parameters, rest | own)
    headers = [("content-type", "application/json"), *([("x-dashscope-sse", "enable")] if request.stream else [])]
    return UpstreamRequest(target.path or (_MEDIA if media else _TEXT), msgspec.json.encode(body), headers=(*headers,))


def _tools(tools: Tools) -> dict[str, Any]:
    listed = openai_tools(tools)
    if not listed:
        return {}
    if tools.mode == "required" and not tools.name:
        refuse("tool_choice", "it cannot be made to call any function, only a named one")
    choice: Any = {"type": "function", "function": {"name": tools.name}} if tools.name else tools.mode or None
    return {"tools": listed, "tool_choice": choice, "parallel_tool_calls": tools.parallel or None}


def _message(turn: Turn, *, media: bool) -> dict[str, Any]:
    content: Any = [_part(part) for part in turn.parts] if media else turn.text
    return {"role": turn.role, "content": content} | compact(
        tool_calls=openai_calls(turn), tool_call_id=turn.call_id or None, name=turn.name or None
    )


def _part(part: Words | Attached) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"text": part.text}
    if part.kind not in _MEMBERS:
        refuse(part.where, f"it takes pictures, sounds and films, no {part.kind}")
    return {_MEMBERS[part.kind]: part.as_url}


def recognises(value: dict[str, Any]) -> bool:
    """Answers have an `output` with a text or choices."""
    output = value.get("output")
    return type(output) is dict and (type(output.get("choices")) is list or type(output.get("text")) is str)


DIALECT = ChatDialect(
    "dashscope_chat",
    msgspec.json.Decoder(_Answer).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
