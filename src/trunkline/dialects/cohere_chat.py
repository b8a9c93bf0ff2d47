"""Cohere's chat API, version 2."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Usage
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged, openai_tools
from trunkline.wire.error_body import read_error_body
from trunkline.wire.read import as_count, as_dict, as_text
from trunkline.wire.reader import EventReader
from trunkline.wire.turns import Attached, Turn, Words, openai_calls, refuse

_EVENTS = {
    "message-start", "content-start", "content-delta", "content-end", "tool-plan-delta", "tool-call-start",
    "tool-call-delta", "tool-call-end", "citation-start", "citation-end", "message-end", "debug",
}  # fmt: skip


class _Content(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    id: str | None = None
    function: _Function | None = None


class _Message(Struct):
    content: list[_Content] | _Content | None = None
    tool_plan: str | None = None
    tool_calls: list[_Call] | _Call | None = None
    citations: Any = None


class _Delta(Struct):
    message: _Message | None = None
    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    error: str | None = None


class _Event(_Delta):
    type: str | None = None
    id: str | None = None
    index: int | None = None
    delta: _Delta | None = None


class Decoder(AnswerDecoder[_Event]):
    """Events, or one whole answer → events."""

    kind = _Event

    def read(self, value: _Event) -> bool:
        """Read one event."""
        if value.type is None and value.message is not None and value.finish_reason:
            self.start(value.id)
            self._delta(value, None)
            self.end()
            return True
        if value.type not in _EVENTS:
            return False
        self.start(value.id)
        if value.delta is not None:
            self._delta(value.delta, value.index)
        if value.type == "message-end":
            self.end()
        return True

    def _delta(self, delta: _Delta, index: int | None) -> None:
        message = delta.message or _Message()
        self.reasoning(message.tool_plan)
        content = message.content
        for part in content if isinstance(content, list) else filter(None, [content]):
            self.reasoning(part.thinking)
            self.text(part.text)
        calls = message.tool_calls
        for call in calls if isinstance(calls, list) else filter(None, [calls]):
            function = call.function or _Function()
            self.tool(index=index, id=call.id, name=function.name, arguments=function.arguments)
        if message.citations:
            self.notes.add("member_dropped", self.line, "citations")
        self.usage(_usage(delta.usage) if delta.usage else None)
        if delta.error:
            self.fail(UpstreamError("upstream_error", delta.error, 502))
        elif delta.finish_reason:
            self.finish(delta.finish_reason)


def _usage(value: dict[str, Any]) -> Usage:
    """Read what was counted; `billed_units` leave out what the provider itself put into the prompt."""
    counted = as_dict(value.get("tokens")) or as_dict(value.get("billed_units"))
    prompt, completion = as_count(counted.get("input_tokens")), as_count(counted.get("output_tokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_tokens=min(as_count(value.get("cached_tokens")), prompt),
    )


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request."""
    asked = Asked(request, target)
    form, effort = asked.format(), asked.effort()
    body = {"model": target.model, "messages": [_message(turn) for turn in asked.turns()]} | compact(
        stream=request.stream or None,
        max_tokens=asked.most_tokens(),
        temperature=asked.number("temperature"),
        p=asked.number("top_p"),
        seed=asked.count("seed"),
        stop_sequences=asked.stop(),
        frequency_penalty=asked.number("frequency_penalty"),
        presence_penalty=asked.number("presence_penalty"),
        logprobs=asked.take("logprobs", bool, "true or false") or None,
        response_format=None if form.kind == "text" else {"type": "json_object"} | compact(json_schema=form.schema),
        thinking={"type": "disabled" if effort == "none" else "enabled"} if effort else None,
        **_tools(asked.tools()),
    )
    return UpstreamRequest(target.path or "/chat", msgspec.json.encode(merged(body, asked.rest())))


def _tools(tools: Tools) -> dict[str, Any]:
    """Write the functions; the one that must be called is the only one that is told."""
    if tools.tools and not tools.parallel:
        refuse("parallel_tool_calls", "it cannot be kept from calling several functions at once")
    if tools.name:
        tools = msgspec.structs.replace(tools, tools=[tool for tool in tools.tools if tool.name == tools.name])
    listed = openai_tools(tools)
    if not listed:
        return {}
    choice = {"required": "REQUIRED", "none": "NONE"}.get(tools.mode)
    return {"tools": listed, "tool_choice": choice, "strict_tools": any(tool.strict for tool in tools.tools) or None}


def _message(turn: Turn) -> dict[str, Any]:
    content: Any = turn.text
    if any(isinstance(part, Attached) for part in turn.parts):
        content = [_part(part) for part in turn.parts]
    calls = openai_calls(turn)
    if calls:
        plan = turn.reasoning or None
        return {"role": "assistant", "tool_calls": calls} | compact(tool_plan=plan, content=content or None)
    return {"role": turn.role, "content": content} | compact(tool_call_id=turn.call_id or None)


def _part(part: Words | Attached) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.kind != "image":
        refuse(part.where, f"it takes pictures, no {part.kind}")
    return {"type": "image_url", "image_url": {"url": part.as_url} | compact(detail=part.detail or None)}


def recognises(value: dict[str, Any]) -> bool:
    """Events have types with a dash; a whole answer has a message with content or calls, and no choices."""
    message = as_dict(value.get("message"))
    whole = "finish_reason" in value and ("content" in message or "tool_calls" in message)
    return as_text(value.get("type")) in _EVENTS or (whole and "choices" not in value)


DIALECT = ChatDialect(
    "cohere_chat",
    msgspec.json.Decoder(_Event).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
