"""Cloudflare Workers AI's own `run` API: `response` pieces as events, or one `result`."""

from typing import Any
from urllib.parse import quote

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged, openai_tools
from trunkline.wire.error_body import read_error_body
from trunkline.wire.read import as_dict
from trunkline.wire.reader import EventReader
from trunkline.wire.turns import Attached, Turn, Words, openai_calls, refuse
from trunkline.wire.usage import read_usage


class _Function(Struct):
    name: str | None = None
    arguments: Any = None


class _Call(Struct):
    index: int | None = None
    id: str | None = None
    name: str | None = None
    arguments: Any = None
    function: _Function | None = None


class _Piece(Struct):
    response: Any = None
    reasoning_content: str | None = None
    tool_calls: list[_Call] | None = None
    usage: Any = None
    finish_reason: str | None = None


class _Answer(_Piece):
    result: _Piece | None = None
    success: bool | None = None


class Decoder(AnswerDecoder[_Answer]):
    """Pieces, or a whole result → events. No piece says why the answer ends: `[DONE]` does."""

    kind = _Answer

    def read(self, value: _Answer) -> bool:
        """Read one piece."""
        piece = value.result or value
        if value.success is False or (piece.response is None and not piece.tool_calls and piece.usage is None):
            return False
        self.start()
        self.reasoning(piece.reasoning_content)
        if isinstance(piece.response, str | None):
            self.text(piece.response)
        else:  # asked for JSON, it is given as such
            self.text(msgspec.json.encode(piece.response).decode())
        for call in piece.tool_calls or ():
            function = call.function or _Function(call.name, call.arguments)
            self.tool(index=call.index, id=call.id, name=function.name, arguments=function.arguments)
        self.usage(read_usage(piece.usage))
        if piece.finish_reason or value.result is not None:
            self.finish(piece.finish_reason or "stop")
        if value.result is not None:
            self.end()
        return True


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request; the model's name is part of the path, slashes and all."""
    asked = Asked(request, target)
    form = asked.format()
    schema = {"type": "json_schema", "json_schema": form.schema} if form.kind == "schema" else {"type": "json_object"}
    body = compact(
        messages=[_message(turn) for turn in asked.turns()],
        stream=request.stream or None,
        max_tokens=asked.most_tokens(),
        temperature=asked.number("temperature"),
        top_p=asked.number("top_p"),
        seed=asked.count("seed"),
        frequency_penalty=asked.number("frequency_penalty"),
        presence_penalty=asked.number("presence_penalty"),
        response_format=None if form.kind == "text" else schema,
        tools=_tools(asked.tools()),
    )
    path = target.path or f"/run/{quote(target.model, safe='/@')}"
    return UpstreamRequest(path, msgspec.json.encode(merged(body, asked.rest())))


def _tools(tools: Tools) -> list[dict[str, Any]]:
    if tools.mode == "none":
        return []
    if tools.mode == "required":
        refuse("tool_choice", "it cannot be made to call a function")
    if tools.tools and not tools.parallel:
        refuse("parallel_tool_calls", "it cannot be kept from calling several functions at once")
    return openai_tools(tools)


def _message(turn: Turn) -> dict[str, Any]:
    content: Any = turn.text
    if any(isinstance(part, Attached) for part in turn.parts):
        content = [_part(part) for part in turn.parts]
    return {"role": turn.role, "content": content} | compact(
        tool_calls=openai_calls(turn), tool_call_id=turn.call_id or None, name=turn.name or None
    )


def _part(part: Words | Attached) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": "text", "text": part.text}
    if part.kind != "image":
        refuse(part.where, f"it takes pictures, no {part.kind}")
    return {"type": "image_url", "image_url": {"url": part.as_url}}


def recognises(value: dict[str, Any]) -> bool:
    """Pieces have a `response`; a whole answer has one in its `result`."""
    if "done" in value:
        return False
    if type(value.get("response")) in (str, int, float) or (value.get("tool_calls") and "response" in value):
        return True
    return "response" in as_dict(value.get("result"))


DIALECT = ChatDialect(
    "workers_ai_chat",
    msgspec.json.Decoder(_Answer).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
