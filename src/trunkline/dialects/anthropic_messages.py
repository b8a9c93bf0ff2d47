"""Anthropic's Messages API (wire.md section 8; API reference of `anthropic-version: 2023-06-01`)."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.events import Usage
from trunkline.core.notes import Notes
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged
from trunkline.wire.error_body import read_error_body
from trunkline.wire.read import as_count, as_dict, as_text
from trunkline.wire.reader import EventReader
from trunkline.wire.thoughts import thoughts
from trunkline.wire.turns import Attached, Part, Turn, Words, refuse

_FORMAT = "anthropic-claude-v1"  # how reasoning details of this provider are marked, as OpenRouter does
_EVENTS = {
    "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta",
    "message_stop", "ping",
}  # fmt: skip
_MOST_TOKENS = 32_000
_MOST_TOKENS_OF = (("claude-3-5", 8192), ("claude-3-opus", 4096), ("claude-3-sonnet", 4096), ("claude-3-haiku", 4096))
_BUDGETS = {"minimal": 1024, "low": 2048, "medium": 8192, "high": 16_384, "xhigh": 24_576, "max": 31_999}
_LEAST_BUDGET = 1024
_BY_BUDGET = re.compile(r"claude-(3|(opus|sonnet|haiku)-4(-[0-5])?(-\d{8}|-latest|@|$))")
"""Models up to 4.5, which are told how many tokens to think, not how hard."""
_ID = re.compile(r"[^\w-]", re.ASCII)
_JSON_ONLY = "Answer with one JSON object and nothing else."


class _Usage(Struct):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_creation: dict[str, Any] | None = None
    output_tokens_details: dict[str, Any] | None = None


class _Block(Struct):
    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None
    id: str | None = None
    name: str | None = None
    input: Any = None
    citations: list[dict[str, Any]] | None = None


class _Delta(Struct):
    type: str | None = None
    text: str | None = None
    partial_json: str | None = None
    thinking: str | None = None
    signature: str | None = None
    citation: dict[str, Any] | None = None
    stop_reason: str | None = None


class _Message(Struct):
    id: str | None = None
    model: str | None = None
    content: list[_Block] | None = None
    usage: _Usage | None = None
    stop_reason: str | None = None


class _Event(_Message):
    type: str | None = None
    index: int | None = None
    message: _Message | None = None
    content_block: _Block | None = None
    delta: _Delta | None = None


class Decoder(AnswerDecoder[_Event]):
    """Message events, or one whole message → events."""

    kind = _Event

    def __init__(self, notes: Notes, n: int | None, salt: str) -> None:
        super().__init__(notes, n, salt)
        self._counted = Usage()
        self._theirs: set[int] = set()  # blocks of tools that the provider runs itself

    def read(self, value: _Event) -> bool:
        """Read one event."""
        kind = value.type
        if kind == "message" and value.content is not None:
            self._message(value)
        elif kind not in _EVENTS:
            return False
        elif kind == "message_start" and value.message is not None:
            self._message(value.message)
        elif kind == "content_block_start" and value.content_block is not None:
            self._block(value.content_block, value.index or 0, whole=False)
        elif kind == "content_block_delta" and value.delta is not None:
            self._delta(value.delta, value.index or 0)
        elif kind == "message_delta":
            self._count(value.usage)
            self.usage(self._counted)
            if value.delta is not None and value.delta.stop_reason:
                self.finish(value.delta.stop_reason)
        elif kind == "message_stop":
            self.end()
        return True

    def _message(self, message: _Message) -> None:
        self.start(message.id, message.model)
        for index, block in enumerate(message.content or ()):
            self._block(block, index, whole=True)
        self._count(message.usage)
        if message.stop_reason:
            self.usage(self._counted)
            self.finish(message.stop_reason)

    def _block(self, block: _Block, index: int, *, whole: bool) -> None:
        if block.type == "tool_use":
            given = block.input if whole or block.input else None
            self.tool(index=index, id=block.id, name=block.name, arguments=given)
        elif block.type == "redacted_thinking":
            self.reasoning("", details=[_detail("encrypted", index, data=block.data)])
        elif block.type == "thinking":
            self._think(block.thinking, block.signature, index)
        elif block.type in ("text", None):
            self.text(block.text)
            for citation in block.citations or ():
                self._cite(citation)
        else:
            self._theirs.add(index)
            self.notes.add("member_dropped", self.line, f"content block {block.type}")

    def _delta(self, delta: _Delta, index: int) -> None:
        if delta.text:
            self.text(delta.text)
        elif delta.partial_json and index not in self._theirs:
            self.tool(index=index, arguments=delta.partial_json)
        elif delta.thinking or delta.signature:
            self._think(delta.thinking, delta.signature, index)
        elif delta.citation:
            self._cite(delta.citation)

    def _cite(self, citation: dict[str, Any]) -> None:
        url = as_text(citation.get("url"))
        if url:
            cited = {"url": url, "title": as_text(citation.get("title"))}
            self.extras({"annotations": [{"type": "url_citation", "url_citation": cited}]}, 0)

    def _think(self, text: str | None, signature: str | None, index: int) -> None:
        if text or signature:
            self.reasoning(text, details=[_detail("text", index, text=text or None, signature=signature or None)])

    def _count(self, usage: _Usage | None) -> None:
        """Numbers are cumulative; what was counted at the start need not come again."""
        if usage is None:
            return
        counted = self._counted
        cached = as_count(usage.cache_read_input_tokens)
        written = as_count(usage.cache_creation_input_tokens)
        prompt = as_count(usage.input_tokens) + cached + written
        if prompt < counted.prompt_tokens:
            prompt = cached = written = 0
        told = Usage(
            prompt_tokens=prompt,
            completion_tokens=max(as_count(usage.output_tokens), counted.completion_tokens),
            cached_tokens=cached,
            cache_write_tokens=written,
            cache_write_1h_tokens=as_count(as_dict(usage.cache_creation).get("ephemeral_1h_input_tokens")),
            reasoning_tokens=as_count(as_dict(usage.output_tokens_details).get("thinking_tokens")),
        )
        self._counted = told.after(counted)


def _detail(kind: str, index: int, **members: str | None) -> dict[str, Any]:
    return {"type": f"reasoning.{kind}", **compact(**members), "format": _FORMAT, "index": index}


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request."""
    asked = Asked(request, target)
    turns = asked.turns()
    system = [part for turn in turns if turn.role == "system" for part in _system(turn)]
    body: dict[str, Any] = {
        "model": target.model,
        "max_tokens": asked.most_tokens() or _most_tokens(target.model),
        "messages": _messages(turns),
    }
    form = asked.format()
    if form.kind == "json":
        system.append(_text(_JSON_ONLY))
    if form.kind == "schema":
        body["output_config"] = {"format": {"type": "json_schema", "schema": form.schema}}
    if system:
        body["system"] = system if any("cache_control" in block for block in system) else _joined(system)
    body |= compact(
        stop_sequences=asked.stop(),
        temperature=asked.number("temperature"),
        top_p=asked.number("top_p"),
        stream=request.stream or None,
        metadata=_metadata(asked),
        service_tier=_tier(asked.take("service_tier", str, "a string")),
        **_tools(asked.tools(), asked),
    )
    _think(body, asked.effort(), target.model, turns)
    body = merged(body, asked.rest())
    return UpstreamRequest(target.path or "/v1/messages", msgspec.json.encode(body), headers=_HEADERS)


_HEADERS = (("content-type", "application/json"), ("anthropic-version", "2023-06-01"))


def _most_tokens(model: str) -> int:
    """Give the most tokens of an answer where the client does not say: the member is required here."""
    return next((most for name, most in _MOST_TOKENS_OF if name in model), _MOST_TOKENS)


def _metadata(asked: Asked) -> dict[str, Any]:
    metadata: dict[str, Any] = asked.take("metadata", dict[str, Any], "an object") or {}
    user = asked.take("safety_identifier", str, "a string") or asked.take("user", str, "a string")
    return compact(user_id=metadata.get("user_id") or user)


def _tier(tier: str | None) -> str | None:
    return {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}.get(tier or "")


def _think(body: dict[str, Any], effort: str, model: str, turns: list[Turn]) -> None:
    """Say how much to think: by effort, to older models by a number of tokens that leaves room for the answer.

    Those refuse to go on thinking after a call when the thoughts before it are not given back: then they do not think.
    """
    if not effort:
        return
    if effort == "none":
        body["thinking"] = {"type": "disabled"}
    elif not _BY_BUDGET.search(model):
        body["thinking"] = {"type": "adaptive"}
        level = "low" if effort == "minimal" else effort
        body["output_config"] = {**body.get("output_config", {}), "effort": level}
    elif not _calls_without_thoughts(turns):
        budget = min(_BUDGETS[effort], max(_LEAST_BUDGET, body["max_tokens"] // 2))
        if budget >= body["max_tokens"]:
            refuse("reasoning_effort", f"thinking needs `max_tokens` above {_LEAST_BUDGET}")
        body["thinking"] = {"type": "enabled", "budget_tokens": budget}


def _calls_without_thoughts(turns: list[Turn]) -> bool:
    last = next((turn for turn in reversed(turns) if turn.role == "assistant"), None)
    return bool(last and turns[-1].role == "tool" and last.calls and not any(_thoughts(last)))


def _tools(tools: Tools, asked: Asked) -> dict[str, Any]:
    listed = [
        compact(name=tool.name, description=tool.description, strict=tool.strict)
        | {"input_schema": tool.parameters or {"type": "object", "properties": {}}}
        for tool in tools.tools
    ] + tools.native
    search = asked.take("web_search_options", dict[str, Any], "an object")
    if search is not None:
        place = as_dict(search.get("user_location"))
        where = {"type": "approximate", **as_dict(place.get("approximate"))} if place else None
        listed.append({"type": "web_search_20250305", "name": "web_search", **compact(user_location=where)})
    if not listed:
        return {}
    kind = "tool" if tools.name else {"required": "any"}.get(tools.mode, tools.mode)
    single = not tools.parallel and kind != "none"
    kind = kind or ("auto" if single else "")
    choice = {"type": kind} | compact(name=tools.name or None, disable_parallel_tool_use=single or None)
    return {"tools": listed, "tool_choice": choice if kind else None}


def _messages(turns: list[Turn]) -> list[dict[str, Any]]:
    """Join turns of one role: all results of calls stand in the message behind the calls."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "system":
            continue
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = _blocks(turn)
        if not blocks:
            continue
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        else:
            messages.append({"role": role, "content": blocks})
    for message in messages:
        if len(message["content"]) == 1 and set(message["content"][0]) == {"type", "text"}:
            message["content"] = message["content"][0]["text"]
    return messages


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    parts = [_part(part) for part in turn.parts if not isinstance(part, Words) or part.text]
    if turn.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": _ID.sub("_", turn.call_id)}
        return [result | compact(content=turn.text if len(parts) == len(turn.parts) == 1 and turn.text else parts)]
    if turn.role == "user":
        return parts
    calls = [
        {"type": "tool_use", "id": _ID.sub("_", call.id), "name": call.name, "input": call.arguments}
        for call in turn.calls
    ]
    return [*_thoughts(turn), *parts, *calls]


def _thoughts(turn: Turn) -> Iterator[dict[str, Any]]:
    """Give back reasoning that is signed, as it came: without it a turn that called tools is refused."""
    for thought in thoughts(turn.details, _FORMAT):
        if thought.data:
            yield {"type": "redacted_thinking", "data": thought.data}
        elif thought.signature:
            yield {"type": "thinking", "thinking": thought.text, "signature": thought.signature}


def _system(turn: Turn) -> list[dict[str, Any]]:
    turn.only_text("it")
    return [_part(part) for part in turn.parts]


def _joined(blocks: list[dict[str, Any]]) -> str:
    return "\n\n".join(block["text"] for block in blocks)


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _part(part: Part) -> dict[str, Any]:
    block = _text(part.text) if isinstance(part, Words) else _attached(part)
    return {**block, "cache_control": part.cache} if part.cache else block


def _attached(part: Attached) -> dict[str, Any]:
    if part.kind == "image":
        return {"type": "image", "source": _source(part)}
    if part.kind == "file":
        return {"type": "document", "source": _source(part)} | compact(title=part.name or None)
    return refuse(part.where, f"it takes pictures and documents, no {part.kind}")


def _source(part: Attached) -> dict[str, Any]:
    if part.url:
        return {"type": "url", "url": part.url}
    if part.mime_type.startswith("text/"):
        return {"type": "text", "media_type": "text/plain", "data": part.decoded_text()}
    return {"type": "base64", "media_type": part.mime_type, "data": part.data}


def recognises(value: dict[str, Any]) -> bool:
    """Every event has one of a few types; an unstreamed message has type and content."""
    kind = as_text(value.get("type"))
    return kind in _EVENTS or (kind == "message" and type(value.get("content")) is list)


DIALECT = ChatDialect(
    "anthropic_messages",
    msgspec.json.Decoder(_Event).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
