"""Ollama's own API: newline-delimited JSON of /api/chat, and answers of /api/generate."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.events import Usage
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged, openai_tools
from trunkline.wire.error_body import read_error_body
from trunkline.wire.media_shapes import media_of
from trunkline.wire.read import as_count
from trunkline.wire.reader import EventReader
from trunkline.wire.turns import Attached, Turn, call_names, refuse

_LEVELS = {"minimal": "low", "low": "low", "medium": "medium"}


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    content: str | None = None
    thinking: str | None = None
    tool_calls: list[_Call] | None = None
    images: list[str] | None = None


class _Answer(Struct):
    model: str | None = None
    message: _Message | None = None
    response: str | None = None
    thinking: str | None = None
    image: str | None = None
    logprobs: list[Any] | None = None
    done: bool | None = None
    done_reason: str | None = None
    prompt_eval_count: Any = None
    eval_count: Any = None
    error: Any = None


class Decoder(AnswerDecoder[_Answer]):
    """Answers, each with the next piece → events."""

    kind = _Answer

    def read(self, value: _Answer) -> bool:
        """Read one answer."""
        if value.error or (value.done is None and value.message in (None, _Message()) and value.response is None):
            return False
        self.start(model=value.model)
        logprobs = {"content": value.logprobs} if value.logprobs else None
        message = value.message or _Message(value.response, value.thinking)
        self.reasoning(message.thinking)
        self.text(message.content, logprobs=logprobs)
        for call in message.tool_calls or ():
            function = call.function or _Function()
            self.tool(index=None, id=call.id, name=function.name, arguments=function.arguments or {})
        for image in (*(message.images or ()), *filter(None, [value.image])):
            self.media(media_of({"b64_json": image}))
        if value.done:
            self.usage(_usage(value))
            self.finish(value.done_reason or "stop")
            self.end()
        return True


def _usage(value: _Answer) -> Usage:
    prompt, completion = as_count(value.prompt_eval_count), as_count(value.eval_count)
    return Usage(prompt_tokens=prompt, completion_tokens=completion, total_tokens=prompt + completion)


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request."""
    asked = Asked(request, target)
    turns = asked.turns()
    names = call_names(turns)
    form, effort = asked.format(), asked.effort()
    body = {
        "model": target.model,
        "messages": [_message(turn, names) for turn in turns],
        "stream": request.stream,
    } | compact(
        tools=_tools(asked.tools()),
        format={"text": None, "json": "json", "schema": form.schema}[form.kind],
        think=(effort != "none" and _LEVELS.get(effort, "high")) if effort else None,
        logprobs=asked.take("logprobs", bool, "true or false"),
        top_logprobs=asked.count("top_logprobs"),
        options=compact(
            num_predict=asked.most_tokens(),
            temperature=asked.number("temperature"),
            top_p=asked.number("top_p"),
            seed=asked.count("seed"),
            stop=asked.stop(),
            presence_penalty=asked.number("presence_penalty"),
            frequency_penalty=asked.number("frequency_penalty"),
        ),
    )
    return UpstreamRequest(target.path or "/api/chat", msgspec.json.encode(merged(body, asked.rest())))


def _tools(tools: Tools) -> list[dict[str, Any]]:
    if tools.mode == "none":
        return []
    if tools.mode == "required":
        refuse("tool_choice", "it cannot be made to call a function")
    if tools.tools and not tools.parallel:
        refuse("parallel_tool_calls", "it cannot be kept from calling several functions at once")
    return openai_tools(tools)


def _message(turn: Turn, names: dict[str, str]) -> dict[str, Any]:
    calls = [{"function": {"name": call.name, "arguments": call.arguments}} for call in turn.calls]
    return {"role": turn.role, "content": turn.text} | compact(
        images=[_image(part) for part in turn.parts if isinstance(part, Attached)],
        thinking=turn.reasoning or None,
        tool_calls=calls,
        tool_name=names.get(turn.call_id, turn.name) or None,
    )


def _image(part: Attached) -> str:
    if part.kind != "image":
        refuse(part.where, f"it takes pictures, no {part.kind}")
    if part.url:
        refuse(part.where, "it takes pictures only as data URLs (data:image/png;base64,…)")
    return part.data


def recognises(value: dict[str, Any]) -> bool:
    """Every answer says whether it is the last."""
    said = type(value.get("response")) is str or type(value.get("message")) is dict or "model" in value
    return type(value.get("done")) is bool and said


DIALECT = ChatDialect(
    "ollama_chat",
    msgspec.json.Decoder(_Answer).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
