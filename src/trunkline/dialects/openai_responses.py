"""OpenAI's Responses API as an upstream (wire.md section 2.3)."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.media import Media
from trunkline.core.notes import Notes
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Format, Tools, compact, merged
from trunkline.wire.error_body import read_error, read_error_body
from trunkline.wire.read import as_count
from trunkline.wire.reader import EventReader
from trunkline.wire.thoughts import thoughts
from trunkline.wire.turns import Attached, Turn, Words, refuse
from trunkline.wire.usage import read_usage

_FORMAT = "openai-responses-v1"  # how reasoning details of this API are marked, as OpenRouter does
_ENDS = {"response.completed", "response.incomplete", "response.failed", "response.done", "response.cancelled"}


_KINDS = {
    "message": ("text", "refusal"),
    "function_call": ("call",),
    "custom_tool_call": ("call",),
    "reasoning": ("reasoning",),
}
"""What the items of an output are made of."""


class _Part(Struct):
    type: str | None = None
    text: str | None = None
    refusal: str | None = None


class _Item(Struct):
    type: str | None = None
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: Any = None
    input: str | None = None
    content: list[_Part] | None = None
    summary: list[_Part] | None = None
    encrypted_content: str | None = None
    result: str | None = None
    output_format: str | None = None


class _Reason(Struct):
    reason: str | None = None


class _Response(Struct):
    id: str | None = None
    model: str | None = None
    created_at: Any = None
    status: str | None = None
    service_tier: str | None = None
    output: list[_Item] | None = None
    usage: Any = None
    error: Any = None
    incomplete_details: _Reason | None = None


class _Event(_Response):
    type: str | None = None
    object: str | None = None
    response: _Response | None = None
    item: _Item | None = None
    part: _Part | None = None
    item_id: str | None = None
    output_index: int | None = None
    content_index: int | None = None
    summary_index: int | None = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: Any = None
    input: str | None = None
    logprobs: Any = None
    annotation: dict[str, Any] | None = None


class Decoder(AnswerDecoder[_Event]):
    """Events, or one whole response → events. What came in pieces is told again whole, twice: it is not said again."""

    kind = _Event

    def __init__(self, notes: Notes, n: int | None, salt: str) -> None:
        super().__init__(notes, n, salt)
        self._said: set[str] = set()  # kinds, and `kind:item`
        self._calls: dict[str, int] = {}
        self._summary: int | None = None

    def read(self, value: _Event) -> bool:
        """Read one event."""
        kind = value.type or ""
        if value.object == "response" and not kind:
            self._end(value)
            return True
        if not kind.startswith("response."):
            return False
        if value.response is not None:
            if kind in _ENDS:
                self._end(value.response)
            else:
                self._start(value.response)
            return True
        what, _, act = kind.removeprefix("response.").rpartition(".")
        if what == "output_item" and value.item is not None:
            self._item(value.item, value.output_index, whole=act == "done")
        elif act in ("delta", "done"):
            said = value.delta if act == "delta" else value.text or value.refusal
            self._piece(what, said, value, whole=act == "done")
        elif kind == "response.output_text.annotation.added" and value.annotation:
            kind = str(value.annotation.pop("type", "url_citation"))
            self.extras({"annotations": [{"type": kind, kind: value.annotation}]}, 0)
        return True

    def _start(self, response: _Response) -> None:
        self.start(response.id, response.model, as_count(response.created_at))

    def _piece(self, what: str, said: str | None, value: _Event, *, whole: bool) -> None:
        """Read a delta, or the whole of what came in deltas."""
        where = value.item_id or f"#{value.output_index}"
        if what in ("function_call_arguments", "mcp_call_arguments", "custom_tool_call_input"):
            if what[0] != "m" and self._new("call", where, whole=whole):
                given = value.arguments if value.arguments is not None else value.input
                self.tool(index=self._number(where, value.output_index), arguments=given if whole else said)
            return
        kind = {
            "output_text": "text",
            "refusal": "refusal",
            "reasoning_text": "reasoning",
            "reasoning_summary_text": "reasoning",
            "reasoning_summary": "reasoning",
        }.get(what)
        if kind is None or not said or not self._new(kind, where, whole=whole):
            return
        if kind == "text":
            self.text(said, logprobs={"content": value.logprobs} if value.logprobs else None)
        elif kind == "refusal":
            self.refusal(said)
        else:
            later = self._summary is not None and self._summary != value.summary_index
            self._summary = value.summary_index
            self.reasoning("\n\n" + said if later else said)

    def _new(self, kind: str, where: str, *, whole: bool) -> bool:
        """Say whether something is said for the first time: a delta always is."""
        if whole and f"{kind}:{where}" in self._said:
            return False
        self._said |= {kind, f"{kind}:{where}"}
        return True

    def _number(self, where: str, index: int | None) -> int:
        return self._calls.setdefault(where, len(self._calls) if index is None else index)

    def _item(self, item: _Item, index: int | None, *, whole: bool) -> None:
        """Read an item that begins, or that is whole."""
        where = item.id or f"#{index}"
        if item.type in ("function_call", "custom_tool_call"):
            given = item.arguments if item.type == "function_call" else item.input
            new = whole and self._new("call", where, whole=True)
            self.tool(
                index=self._number(where, index),
                id=item.call_id or item.id,
                name=item.name if self._new("name", where, whole=whole) else "",
                arguments=given if new else None,
                kind="function" if item.type == "function_call" else "custom",
            )
        elif not whole:
            return
        elif item.type == "message":
            text = "".join(part.text or "" for part in item.content or () if part.type != "refusal")
            refused = "".join(part.refusal or "" for part in item.content or ())
            self.text(text if self._new("text", where, whole=True) else "")
            self.refusal(refused if self._new("refusal", where, whole=True) else "")
        elif item.type == "reasoning":
            self._reasoned(item, where, index or 0)
        elif item.type == "image_generation_call" and item.result and self._new("image", where, whole=True):
            mime_type = f"image/{item.output_format or 'png'}"
            self.media(Media("image", url=f"data:{mime_type};base64,{item.result}", mime_type=mime_type))

    def _reasoned(self, item: _Item, where: str, index: int) -> None:
        parts = [part.text or "" for part in (item.summary or item.content or ())]
        text = "\n\n".join(filter(None, parts))
        details: list[dict[str, Any]] = []
        if item.encrypted_content and self._new("secret", where, whole=True):
            details = [
                {"type": "reasoning.encrypted", "data": item.encrypted_content}
                | compact(id=item.id)
                | {"format": _FORMAT, "index": index}
            ]
        self.reasoning(text if self._new("reasoning", where, whole=True) else "", details=details)

    def _end(self, response: _Response) -> None:
        """Read the whole response: what no event said before is said now."""
        self._start(response)
        said = frozenset(self._said)
        for index, item in enumerate(response.output or ()):
            if said.isdisjoint(_KINDS.get(item.type or "", ())):
                self._item(item, index, whole=True)
        self.usage(read_usage(response.usage))
        if response.service_tier:
            self.extras({"service_tier": response.service_tier})
        if response.error or response.status in ("failed", "cancelled"):
            self.fail(read_error({"error": response.error or {"message": f"the response {response.status}"}}))
            return
        why = response.incomplete_details.reason if response.incomplete_details else None
        self.finish(why or ("length" if response.status == "incomplete" else "stop"))
        self.end()


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request. Nothing is stored there unless asked: reasoning comes along sealed, and is given back."""
    asked = Asked(request, target)
    form, effort, top = asked.format(), asked.effort(), asked.count("top_logprobs")
    logprobs = asked.take("logprobs", bool, "true or false")
    include = ["reasoning.encrypted_content", *(["message.output_text.logprobs"] if logprobs else [])]
    kept = {name: asked.take(name, Any, "JSON") for name in _SAME}
    body = {
        "model": target.model,
        "input": [item for turn in asked.turns() for item in _items(turn)],
        "store": asked.take("store", bool, "true or false") or False,
        "include": include,
    } | compact(
        stream=request.stream or None,
        max_output_tokens=asked.most_tokens(),
        temperature=asked.number("temperature"),
        top_p=asked.number("top_p"),
        top_logprobs=top,
        reasoning={"effort": effort, "summary": "auto"} if effort else None,
        text=compact(format=_format(form), verbosity=asked.take("verbosity", str, "low, medium or high")),
        **_tools(asked.tools(), asked),
        **kept,
    )
    return UpstreamRequest(target.path or "/responses", msgspec.json.encode(merged(body, asked.rest())))


_SAME = ("metadata", "service_tier", "user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention")


def _format(form: Format) -> dict[str, Any] | None:
    if form.kind == "text":
        return None
    if form.kind == "json":
        return {"type": "json_object"}
    return {"type": "json_schema", "name": form.name, "schema": form.schema} | compact(strict=form.strict)


def _tools(tools: Tools, asked: Asked) -> dict[str, Any]:
    listed = [
        {"type": "function", "name": tool.name, "parameters": tool.parameters, "strict": tool.strict or False}
        | compact(description=tool.description)
        for tool in tools.tools
    ] + tools.native
    search = asked.take("web_search_options", dict[str, Any], "an object")
    if search is not None:
        place = search.get("user_location") or {}
        where = {"type": "approximate", **place.get("approximate", {})} if place else None
        size = search.get("search_context_size")
        listed.append({"type": "web_search"} | compact(user_location=where, search_context_size=size))
    if not listed:
        return {}
    choice: Any = {"type": "function", "name": tools.name} if tools.name else tools.mode or None
    return {"tools": listed, "tool_choice": choice, "parallel_tool_calls": None if tools.parallel else False}


def _items(turn: Turn) -> list[dict[str, Any]]:
    if turn.role == "tool":
        output: Any = turn.text
        if any(isinstance(part, Attached) for part in turn.parts):
            output = [_part(part, "input_text") for part in turn.parts]
        return [{"type": "function_call_output", "call_id": turn.call_id, "output": output}]
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": thought.id, "summary": [], "encrypted_content": thought.data}
        for thought in thoughts(turn.details, _FORMAT)
        if thought.data
    ]
    if turn.parts:
        kind = "output_text" if turn.role == "assistant" else "input_text"
        items.append({"type": "message", "role": turn.role, "content": [_part(part, kind) for part in turn.parts]})
    items += [
        {
            "type": "function_call",
            "call_id": call.id,
            "name": call.name,
            "arguments": msgspec.json.encode(call.arguments).decode(),
        }
        for call in turn.calls
    ]
    return items


def _part(part: Words | Attached, kind: str) -> dict[str, Any]:
    if isinstance(part, Words):
        return {"type": kind, "text": part.text}
    if part.kind == "image":
        return {"type": "input_image", "image_url": part.as_url, "detail": part.detail or "auto"}
    if part.kind == "file":
        where = {"file_url": part.url} if part.url else {"file_data": part.as_url}
        return {"type": "input_file", **where} | compact(filename=part.name or None)
    return refuse(part.where, f"it takes pictures and files, no {part.kind}")


def recognises(value: dict[str, Any]) -> bool:
    """Events have types that begin with `response.`; a whole answer is an object of that name."""
    kind = value.get("type")
    return (type(kind) is str and kind.startswith("response.")) or value.get("object") == "response"


DIALECT = ChatDialect(
    "openai_responses",
    msgspec.json.Decoder(_Event).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
