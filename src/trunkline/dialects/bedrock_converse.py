"""Amazon Bedrock's Converse and ConverseStream (API reference of the Bedrock runtime)."""

import re
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.events import Usage
from trunkline.core.media import Media
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Format, Tools, compact, merged
from trunkline.wire.error_body import read_error_body
from trunkline.wire.read import as_count, as_dict, as_text
from trunkline.wire.reader import EventReader
from trunkline.wire.thoughts import thoughts
from trunkline.wire.turns import Attached, Part, Turn, Words, json_or_text, refuse

_FORMAT = "anthropic-claude-v1"  # how reasoning details of this kind are marked, as OpenRouter does
_EVENTS = {
    "messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop", "messageStop", "metadata",
}  # fmt: skip
_ID = re.compile(r"[^\w-]", re.ASCII)
_JSON_ONLY = "Answer with one JSON object and nothing else."
_FILES = {
    "application/pdf": "pdf", "text/csv": "csv", "application/msword": "doc", "text/html": "html",
    "text/plain": "txt", "text/markdown": "md", "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
}  # fmt: skip


class _ToolUse(Struct):
    toolUseId: str | None = None  # noqa: N815 - as on the wire
    name: str | None = None
    input: Any = None


class _Bytes(Struct):
    bytes: str | None = None


class _Image(Struct):
    format: str | None = None
    source: _Bytes | None = None


class _ReasoningText(Struct):
    text: str | None = None
    signature: str | None = None


class _Reasoning(_ReasoningText):
    redactedContent: str | None = None  # noqa: N815 - as on the wire
    reasoningText: _ReasoningText | None = None  # noqa: N815 - as on the wire


class _Block(Struct):
    text: str | None = None
    toolUse: _ToolUse | None = None  # noqa: N815 - as on the wire
    reasoningContent: _Reasoning | None = None  # noqa: N815 - as on the wire
    image: _Image | None = None


class _Event(Struct):
    contentBlockIndex: int | None = None  # noqa: N815 - as on the wire
    start: _Block | None = None
    delta: _Block | None = None
    stopReason: str | None = None  # noqa: N815 - as on the wire
    usage: dict[str, Any] | None = None


class _Message(Struct):
    content: list[_Block] | None = None


class _Output(Struct):
    message: _Message | None = None


class _Answer(_Event):
    messageStart: dict[str, Any] | None = None  # noqa: N815 - as on the wire
    contentBlockStart: _Event | None = None  # noqa: N815 - as on the wire
    contentBlockDelta: _Event | None = None  # noqa: N815 - as on the wire
    contentBlockStop: dict[str, Any] | None = None  # noqa: N815 - as on the wire
    messageStop: _Event | None = None  # noqa: N815 - as on the wire
    metadata: _Event | None = None
    output: _Output | None = None


class Decoder(AnswerDecoder[_Answer]):
    """Events by type, or one whole answer → events. What was counted comes last, behind the stop."""

    kind = _Answer
    _stopped = False

    def read(self, value: _Answer) -> bool:
        """Read one event."""
        if value.output is not None and value.output.message is not None:
            self.start()
            for index, block in enumerate(value.output.message.content or ()):
                self._block(block, index)
            self._last(value)
            self.end()
            return True
        event = value.contentBlockStart or value.contentBlockDelta
        if event is not None:
            self.start()
            self._block(event.start or event.delta or _Block(), event.contentBlockIndex or 0)
        elif value.messageStop is not None or value.metadata is not None:
            self._last(value.messageStop or value.metadata or value)
            if value.metadata is not None and self._stopped:  # by the book nothing follows
                self.end()
        else:
            return value.messageStart is not None or value.contentBlockStop is not None
        return True

    def _block(self, block: _Block, index: int) -> None:
        self.text(block.text)
        if block.toolUse is not None:
            use = block.toolUse
            self.tool(index=index, id=use.toolUseId, name=use.name, arguments=use.input)
        if block.reasoningContent is not None:
            self._reasoned(block.reasoningContent, index)
        if block.image is not None and block.image.source is not None and block.image.source.bytes:
            mime_type = f"image/{block.image.format or 'png'}"
            url = f"data:{mime_type};base64,{block.image.source.bytes}"
            self.media(Media("image", url=url, mime_type=mime_type))

    def _reasoned(self, content: _Reasoning, index: int) -> None:
        said = content.reasoningText or content
        members = compact(text=said.text or None, signature=said.signature or None)
        kind = "text"
        if content.redactedContent:
            kind, members = "encrypted", {"data": content.redactedContent}
        if members:
            detail = {"type": f"reasoning.{kind}", **members, "format": _FORMAT, "index": index}
            self.reasoning(said.text, details=[detail])

    def _last(self, event: _Event) -> None:
        if event.usage:
            self.usage(_usage(event.usage))
        if event.stopReason:
            self.finish(event.stopReason)
            self._stopped = True


def _usage(value: dict[str, Any]) -> Usage:
    """Read what was counted; what the cache held or took is apart from the input here."""
    read, written = as_count(value.get("cacheReadInputTokens")), as_count(value.get("cacheWriteInputTokens"))
    prompt, completion = as_count(value.get("inputTokens")) + read + written, as_count(value.get("outputTokens"))
    return Usage(
        prompt_tokens=prompt,
        completion_tokens=completion,
        total_tokens=prompt + completion,
        cached_tokens=read,
        cache_write_tokens=written,
    )


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request; what only one maker's models know is put under `additionalModelRequestFields`."""
    asked = Asked(request, target)
    turns = asked.turns()
    system = [{"text": turn.only_text("it")} for turn in turns if turn.role == "system"]
    form, effort = asked.format(), asked.effort()
    if form.kind == "json":
        system.append({"text": _JSON_ONLY})
    tier: str | None = asked.take("service_tier", str, "a string")
    body = compact(
        messages=_messages(turns),
        system=system,
        inferenceConfig=compact(
            maxTokens=asked.most_tokens(),
            temperature=asked.number("temperature"),
            topP=asked.number("top_p"),
            stopSequences=asked.stop(),
        ),
        toolConfig=_tools(asked.tools()),
        outputConfig=compact(textFormat=_format(form), effort=_effort(effort)),
        serviceTier={"type": tier} if tier in ("priority", "default", "flex") else None,
    )
    path = "/model/{model}/converse-stream" if request.stream else "/model/{model}/converse"
    return UpstreamRequest(target.path or path, msgspec.json.encode(merged(body, _placed(asked.rest()))))


_OWN = {
    "guardrailConfig", "additionalModelRequestFields", "additionalModelResponseFieldPaths", "performanceConfig",
    "requestMetadata", "promptVariables", "inferenceConfig", "toolConfig", "outputConfig", "serviceTier",
}  # fmt: skip


def _placed(members: dict[str, Any]) -> dict[str, Any]:
    own = {name: value for name, value in members.items() if name in _OWN}
    more = {name: value for name, value in members.items() if name not in _OWN}
    return merged(own, {"additionalModelRequestFields": more} if more else {})


def _effort(effort: str) -> str | None:
    if effort == "none":
        return None
    return {"minimal": "low"}.get(effort, effort) or None


def _format(form: Format) -> dict[str, Any] | None:
    if form.kind != "schema":
        return None
    schema = {"schema": msgspec.json.encode(form.schema).decode()} | compact(name=form.name or None)
    return {"type": "json_schema", "structure": {"jsonSchema": schema}}


def _tools(tools: Tools) -> dict[str, Any]:
    if tools.mode == "none":
        return {}
    if tools.tools and not tools.parallel:
        refuse("parallel_tool_calls", "it cannot be kept from calling several functions at once")
    listed: list[dict[str, Any]] = [
        {
            "toolSpec": compact(name=tool.name, description=tool.description or None, strict=tool.strict)
            | {"inputSchema": {"json": tool.parameters or {"type": "object", "properties": {}}}}
        }
        for tool in tools.tools
    ] + tools.native
    if not listed:
        return {}
    choice: dict[str, Any] | None = {"required": {"any": {}}, "auto": {"auto": {}}}.get(tools.mode)
    return {"tools": listed} | compact(toolChoice={"tool": {"name": tools.name}} if tools.name else choice)


def _messages(turns: list[Turn]) -> list[dict[str, Any]]:
    """Join turns of one role: all results of calls stand in the message behind the calls."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        if turn.role == "system":
            continue
        role = "assistant" if turn.role == "assistant" else "user"
        blocks = list(_blocks(turn))
        if messages and messages[-1]["role"] == role:
            messages[-1]["content"] += blocks
        elif blocks:
            messages.append({"role": role, "content": blocks})
    return messages


def _blocks(turn: Turn) -> Iterator[dict[str, Any]]:
    if turn.role == "tool":
        parts = [_part(part) for part in turn.parts if isinstance(part, Attached)]
        value = json_or_text(turn.text)
        said = [{"json": value}] if isinstance(value, dict) else [{"text": turn.text}] if turn.text else []
        yield {"toolResult": {"toolUseId": _ID.sub("_", turn.call_id), "content": said + parts}}
        return
    for thought in thoughts(turn.details, _FORMAT):
        if thought.data:
            yield {"reasoningContent": {"redactedContent": thought.data}}
        elif thought.signature:
            yield {"reasoningContent": {"reasoningText": {"text": thought.text, "signature": thought.signature}}}
    for part in turn.parts:
        if isinstance(part, Attached) or part.text:
            yield _part(part)
        if part.cache:
            yield {"cachePoint": {"type": "default"}}
    for call in turn.calls:
        yield {"toolUse": {"toolUseId": _ID.sub("_", call.id), "name": call.name, "input": call.arguments}}


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"text": part.text}
    if part.url:
        refuse(part.where, "it takes no links, only data URLs (data:image/png;base64,…)")
    form = part.mime_type.partition("/")[2].partition(";")[0]
    source = {"bytes": part.data}
    if part.kind != "file":
        return {part.kind: {"format": form, "source": source}}
    kind = _FILES.get(part.mime_type)
    if kind is None:
        refuse(part.where, f"it knows no files of the type {part.mime_type}")
    name = "".join(letter if letter.isalnum() else " " for letter in part.name.rpartition(".")[0] or part.name)
    return {"document": {"format": kind, "name": " ".join(name.split()) or "file", "source": source}}


def recognises(value: dict[str, Any]) -> bool:
    """Every event is a member named as its type, mostly alone; a whole answer has an output with a message."""
    return (not _EVENTS.isdisjoint(value) and (len(value) == 1 or "metadata" not in value)) or (
        type(as_dict(value.get("output")).get("message")) is dict and as_text(value.get("stopReason")) != ""
    )


DIALECT = ChatDialect(
    "bedrock_converse",
    msgspec.json.Decoder(_Answer).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
