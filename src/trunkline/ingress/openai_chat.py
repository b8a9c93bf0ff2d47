"""OpenAI Chat Completions as clients speak it: reading requests, writing chunks (wire.md sections 0 and 1)."""

from collections.abc import Callable, Iterator
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Raw, Struct

from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from trunkline.ingress.chat_members import PassedOn, check
from trunkline.ingress.request_body import STRING, read_fields, typed, without_data
from trunkline.wire.frame import UNREADABLE

_BLOCK_BYTES = 64 * 1024  # what is joined into one write
_PIECE_CHARS = 40_000  # no line of the stream passes 64 KiB (wire.md 0.18)
_SHORT_CHARS = _PIECE_CHARS // 4  # however they are escaped, they fit a line
_LINE_BYTES = 62_000
LARGE_BYTES = 64 * 1024
"""A request of more is read without its pictures and PDFs."""
DONE = b"data: [DONE]\n\n"
KEEPALIVE = b": keep-alive\n\n"
_AT_ONCE = frozenset({Started, Finished, UsageReported, Ended, Extras, Failed})

_string = msgspec.json.Encoder().encode


class _StreamOptions(Struct):
    include_usage: bool | None = None
    include_cost: bool | None = None


class _Message(Struct, gc=False):
    role: str


class _Usual(PassedOn, kw_only=True):
    """The members that are read, where nothing is wrong with them."""

    model: Annotated[str, Meta(min_length=1)]
    messages: Annotated[list[_Message], Meta(min_length=1)]
    n: Annotated[int, Meta(ge=1, le=128)] | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


_usual = msgspec.json.Decoder(_Usual).decode
_MESSAGES = msgspec.json.Decoder(list[_Message])
_COUNT = msgspec.json.Decoder(int | None)
_FLAG = msgspec.json.Decoder(bool | None)
_OPTIONS = msgspec.json.Decoder(_StreamOptions | None)


def parse(body: bytes) -> ChatRequest:
    """Read a chat request's body.

    Raises GatewayError (400) that names the member and what is allowed. Members that are not read here are kept.
    """
    fields, said, pdf_pages = read_fields(body), None, 0
    if len(body) > LARGE_BYTES:
        small, pdf_pages = without_data(body)
        if small is not body:
            body, said = small, read_fields(small).get("messages")
    try:
        read = _usual(body)
    except UNREADABLE:
        return _by_member(fields, said, pdf_pages)
    stream, options = read.stream or False, read.stream_options
    if options is not None and not stream:
        return _by_member(fields, said, pdf_pages)
    return ChatRequest(
        model=read.model,
        fields=fields,
        stream=stream,
        n=read.n or 1,
        messages=len(read.messages),
        include_usage=options is not None and bool(options.include_usage),
        include_cost=options is not None and bool(options.include_cost),
        legacy_functions="functions" in fields and "tools" not in fields,
        said=said,
        pdf_pages=pdf_pages,
    )


def _by_member(fields: dict[str, Raw], said: Raw | None, pdf_pages: int) -> ChatRequest:
    """Read the members one by one, to say which of them is wrong."""
    model = typed(fields, "model", STRING, "a string")
    if not model:
        raise GatewayError("missing_required_parameter", "`model` is required: the name of a model.", param="model")
    messages = typed(fields, "messages", _MESSAGES, "an array of objects that each have a `role`")
    if not messages:
        raise GatewayError(
            "missing_required_parameter",
            "`messages` is required: an array with at least one message.",
            param="messages",
        )
    n = typed(fields, "n", _COUNT, "a whole number from 1 to 128")
    if n is not None and not 1 <= n <= 128:
        raise GatewayError("invalid_value", f"`n` is {n}; it must be from 1 to 128.", param="n")
    stream = typed(fields, "stream", _FLAG, "true or false") or False
    options = typed(fields, "stream_options", _OPTIONS, "an object with `include_usage`: true or false")
    if options is not None and not stream:
        raise GatewayError(
            "invalid_value", "`stream_options` is only allowed with `stream`: true.", param="stream_options"
        )
    check(fields)
    return ChatRequest(
        model=model,
        fields=fields,
        stream=stream,
        n=n or 1,
        messages=len(messages),
        include_usage=bool(options and options.include_usage),
        include_cost=bool(options and options.include_cost),
        legacy_functions="functions" in fields and "tools" not in fields,
        said=said,
        pdf_pages=pdf_pages,
    )


def error_object(error: Failed | GatewayError) -> bytes:
    """Write OpenAI's error object (contract section 6)."""
    members = {"message": _message(error), "type": error.type, "param": error.param, "code": error.code}
    return msgspec.json.encode({"error": members})


def _message(error: Failed | GatewayError) -> str:
    return error.message.encode("utf-8", "replace").decode()


def usage_members(usage: Usage, cost_usd: float | None = None) -> dict[str, Any]:
    """Give exactly the members of the canonical captures; `cost` (USD) when it was asked for."""
    members: dict[str, Any] = {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": usage.audio_input_tokens},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": usage.audio_output_tokens,
            "accepted_prediction_tokens": usage.accepted_prediction_tokens,
            "rejected_prediction_tokens": usage.rejected_prediction_tokens,
        },
    }
    if cost_usd is not None:
        members["cost"] = cost_usd
    return members


class ChunkEncoder:
    """Events → the canonical chunk stream.

    The head and the tail of a chunk are constant in one stream and encoded once. `id` and `created` stand in where
    the upstream gave none. The stream ends with `[DONE]`, or with an error event and no `[DONE]`.
    """

    def __init__(self, request: ChatRequest, *, id: str, created: int) -> None:  # noqa: A002 - OpenAI's name
        self._model = request.model
        self._include_usage = request.include_usage
        self._legacy = request.legacy_functions
        self._id = id
        self._created = created
        self._tier = b""
        self._fingerprint = b"null"
        self._head = b""
        self._tail = b'}],"usage":null}\n\n' if request.include_usage else b"}]}\n\n"
        self._text_tail = b'},"logprobs":null,"finish_reason":null' + self._tail
        self._text_heads: list[bytes] = []
        self._members: dict[str, Any] = {}  # at the top level of the next finish chunk
        self._custom: dict[int, set[int]] = {}
        self.cost_usd: Callable[[Usage], float | None] | None = None
        """Set when the client asked for the cost: what a call of this usage costs."""

    def add_members(self, members: dict[str, Any]) -> None:
        """Put members at the top level of the next finish chunk."""
        self._members.update(members)

    def text(self, text: str) -> bytes | None:
        """Write a piece of the first choice's text at once; None: it needs `encode`."""
        heads = self._text_heads
        return heads[0] + _string(text) + self._text_tail if heads and len(text) < _SHORT_CHARS else None

    def encode(self, events: list[Event]) -> Iterator[bytes]:
        """Write events; what comes out is to be sent as it comes, a piece at a time."""
        out: list[bytes] = []
        size = 0
        heads, tail = self._text_heads, self._text_tail
        for event in events:
            if type(event) is TextDelta and event.logprobs is None and len(event.text) < _SHORT_CHARS:
                if event.choice >= len(heads):
                    self._open(event.choice, out)
                text = _string(event.text)
                out += (heads[event.choice], text, tail)
                size += len(text) + 300
            elif type(event) in _AT_ONCE:
                piece = self._whole(event)
                out.append(piece)
                size += len(piece)
            else:
                for piece in self._encode(event):
                    out.append(piece)
                    size += len(piece)
                    if size >= _BLOCK_BYTES:
                        yield b"".join(out)
                        out, size = [], 0
            if size >= _BLOCK_BYTES:
                yield b"".join(out)
                out, size = [], 0
        if out:
            yield b"".join(out)

    def progress(self) -> bytes:
        """Write a chunk with an empty delta: a keep-alive for streams that have no comments."""
        out: list[bytes] = []
        self._open(0, out)
        return b"".join([*out, self._chunk(0, b"{}")])

    def role(self) -> bytes:
        """Write the first choice's role chunk, if it has not been written."""
        out: list[bytes] = []
        self._open(0, out)
        return b"".join(out)

    def _encode(self, event: Event) -> Iterator[bytes]:
        """Write an event that may be several chunks."""
        if isinstance(event, TextDelta):
            yield from self._strings(event.choice, b'{"content":', event.text, event.logprobs)
        elif isinstance(event, ReasoningDelta):
            yield from self._reasoning(event)
        elif isinstance(event, RefusalDelta):
            yield from self._strings(event.choice, b'{"refusal":', event.text, None)
        elif isinstance(event, ToolCallStarted | ToolCallDelta):
            yield from self._tool(event)

    def _whole(self, event: Event) -> bytes:
        """Write an event that is at most one chunk."""
        if type(event) is Started:
            self._id = event.id or self._id
            self._created = event.created or self._created
        elif type(event) is Finished:
            return self._opened(event.choice) + self._finish(event)
        elif type(event) is UsageReported:
            return self._usage(event.usage) if self._include_usage else b""
        elif type(event) is Ended:
            return DONE
        elif type(event) is Extras:
            return self._extras(event)
        elif type(event) is Failed:
            return b"data: " + error_object(event) + b"\n\n"
        return b""

    def _usage(self, usage: Usage) -> bytes:
        cost_usd = self.cost_usd(usage) if self.cost_usd is not None else None
        return b'%b"choices":[],"usage":%b}\n\n' % (self._begin(), _string(usage_members(usage, cost_usd)))

    def _begin(self) -> bytes:
        if not self._head:
            self._head = (
                b'data: {"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,%b"system_fingerprint":%b,'
                % (
                    _string(self._id),
                    self._created,
                    _string(self._model),
                    self._tier,
                    self._fingerprint,
                )
            )
        return self._head

    def _opened(self, choice: int) -> bytes:
        out: list[bytes] = []
        self._open(choice, out)
        return b"".join(out)

    def _open(self, choice: int, out: list[bytes]) -> None:
        """Write role chunks up to this choice, in order: clients index them as they come."""
        while len(self._text_heads) <= choice:
            index = len(self._text_heads)
            self._text_heads.append(b'%b"choices":[{"index":%d,"delta":{"content":' % (self._begin(), index))
            out.append(self._chunk(index, b'{"role":"assistant","content":"","refusal":null}'))

    def _chunk(self, choice: int, delta: bytes, logprobs: bytes = b"null") -> bytes:
        return b'%b"choices":[{"index":%d,"delta":%b,"logprobs":%b,"finish_reason":null%b' % (
            self._begin(),
            choice,
            delta,
            logprobs,
            self._tail,
        )

    def _strings(self, choice: int, name: bytes, text: str, logprobs: Raw | None) -> Iterator[bytes]:
        yield self._opened(choice)
        for piece in _pieces(text):
            yield self._chunk(choice, name + piece + b"}", bytes(logprobs) if logprobs is not None else b"null")
            logprobs = None

    def _reasoning(self, event: ReasoningDelta) -> Iterator[bytes]:
        """Write reasoning; the provider's details go with its text, so that nobody reads it twice."""
        if event.details is None:
            yield from self._strings(event.choice, b'{"reasoning_content":', event.text, None)
            return
        text = b'"reasoning_content":' + _string(event.text) + b"," if event.text else b""
        yield self._opened(event.choice)
        yield self._chunk(event.choice, b'{%b"reasoning_details":%b}' % (text, bytes(event.details)))

    def _tool(self, event: ToolCallStarted | ToolCallDelta) -> Iterator[bytes]:
        if self._legacy and event.call:
            return  # a `function_call` is one
        yield self._opened(event.choice)
        if isinstance(event, ToolCallStarted):
            yield self._chunk(event.choice, self._call(event))
            return
        custom = event.call in self._custom.get(event.choice, ())
        for piece in _pieces(event.arguments):
            if self._legacy:
                yield self._chunk(event.choice, b'{"function_call":{"arguments":%b}}' % piece)
            elif custom:
                yield self._chunk(
                    event.choice, b'{"tool_calls":[{"index":%d,"custom":{"input":%b}}]}' % (event.call, piece)
                )
            else:
                yield self._chunk(
                    event.choice, b'{"tool_calls":[{"index":%d,"function":{"arguments":%b}}]}' % (event.call, piece)
                )

    def _call(self, event: ToolCallStarted) -> bytes:
        name = _string(event.name)
        if self._legacy:
            return b'{"function_call":{"name":%b,"arguments":""}}' % name
        extra = b"".join(b"," + _string(key) + b":" + bytes(value) for key, value in (event.extra or {}).items())
        if event.kind == "custom":
            self._custom.setdefault(event.choice, set()).add(event.call)
            body = b'"type":"custom","custom":{"name":%b,"input":""}' % name
        else:
            body = b'"type":"function","function":{"name":%b,"arguments":""}' % name
        return b'{"tool_calls":[{"index":%d,"id":%b,%b%b}]}' % (event.call, _string(event.id), body, extra)

    def _finish(self, event: Finished) -> bytes:
        reason = "function_call" if self._legacy and event.reason == "tool_calls" else event.reason
        members = b"".join(b"," + _string(name) + b":" + _string(value) for name, value in self._members.items())
        self._members.clear()
        usage = b',"usage":null' if self._include_usage else b""
        return b'%b"choices":[{"index":%d,"delta":{},"logprobs":null,"finish_reason":"%b"}]%b%b}\n\n' % (
            self._begin(),
            event.choice,
            reason.encode(),
            members,
            usage,
        )

    def _extras(self, event: Extras) -> bytes:
        if event.choice is not None:
            members = b",".join(_string(name) + b":" + bytes(value) for name, value in event.fields.items())
            return self._opened(event.choice) + self._chunk(event.choice, b"{" + members + b"}")
        for name, value in event.fields.items():
            if name == "service_tier" and not self._head:
                self._tier = b'"service_tier":' + bytes(value) + b","
            elif name == "system_fingerprint" and not self._head:
                self._fingerprint = bytes(value)
            elif name not in ("service_tier", "system_fingerprint"):
                self._members[name] = value
        return b""


def _pieces(text: str) -> Iterator[bytes]:
    """Encode a string as JSON strings that each fit a line."""
    for start in range(0, len(text), _PIECE_CHARS):
        piece = text[start : start + _PIECE_CHARS]
        encoded = _string(piece)
        if len(encoded) <= _LINE_BYTES:
            yield encoded
        else:
            for part in range(0, len(piece), _SHORT_CHARS):
                yield _string(piece[part : part + _SHORT_CHARS])
