"""OpenAI Chat Completions, with all that providers make of it (wire.md sections 1, 7 and 8)."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.errors import UpstreamError
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    Started,
    UsageReported,
)
from trunkline.core.notes import Notes
from trunkline.wire.error_body import is_error, read_error, read_error_body
from trunkline.wire.frame import Frame
from trunkline.wire.loose import as_raw, read_loose
from trunkline.wire.media_shapes import is_pending, media_in
from trunkline.wire.openai_choice import ChoiceReader
from trunkline.wire.openai_chunk import Choice, Chunk, Delta, mend_chunk, parse_chunk
from trunkline.wire.read import as_count, as_dict, as_name, as_text
from trunkline.wire.reader import EventReader
from trunkline.wire.usage import read_usage

_INCLUDE_USAGE = Raw(b'{"include_usage":true}')


class ChatDecoder:
    """Chunks, completions and errors → events."""

    def __init__(self, notes: Notes, n: int | None, salt: str) -> None:
        self._notes = notes
        self._n = n
        self._salt = salt
        self._states: list[ChoiceReader] = []
        self._started = False
        self._ended = False
        self._failed = False
        self._kept: dict[str, Any] = {}

    def feed(self, frames: list[Frame]) -> list[Event]:
        """Read the next frames."""
        out: list[Event] = []
        for frame in frames:
            if self._failed:
                break
            if frame.kind == "json":
                if self._ended:
                    self._notes.add("data_after_done", frame.line)
                    continue
                chunk = frame.value
                if chunk is None:
                    chunk = mend_chunk(read_loose(frame.data, self._notes, frame.line))
                if chunk is not None:
                    self._chunk(chunk, frame, out)
            elif frame.kind == "done" and not self._ended:
                self._end(out)
        return out

    def close(self) -> list[Event]:
        """Give what was held back."""
        out: list[Event] = []
        for state in self._states:
            state.close(out)
        return out

    def _end(self, out: list[Event]) -> None:
        self._ended = True
        for state in self._states:
            error = state.end(out)
            if error is not None:
                out.append(Failed(error.code, error.message))
                return
        out.append(Ended())

    def _chunk(self, chunk: Chunk, frame: Frame, out: list[Event]) -> None:
        if chunk.error or frame.event == "error" or chunk.choices is None:
            self._odd(chunk, frame, out)
            if self._failed:
                return
        choices = chunk.choices
        if choices:
            if not self._started:
                self._start(chunk, out)
            if chunk.system_fingerprint or chunk.service_tier or chunk.citations:
                self._extras(chunk, out)
            for position, choice in enumerate(choices):
                self._choice(choice, position if len(choices) > 1 else 0, frame.line, out)
        if chunk.usage is not None:
            self._usage(chunk.usage, out)
        if chunk.x_groq is not None:
            self._groq(as_dict(chunk.x_groq), out)
        if chunk.media is not None and choices:
            for item in media_in({"media": chunk.media, "model": chunk.model}):
                self._state(0).media_ready(item, out)

    def _start(self, chunk: Chunk, out: list[Event]) -> None:
        self._started = True
        out.append(Started(as_name(chunk.id), as_text(chunk.model).strip(), as_count(chunk.created)))

    def _odd(self, chunk: Chunk, frame: Frame, out: list[Event]) -> None:
        """Read an object that holds an error, or no choices: a generation object, a task, or usage alone."""
        value = as_dict(read_loose(frame.data, Notes()))
        if frame.event == "error" or is_error(value):
            if chunk.choices:
                self._notes.add("error_with_choices", frame.line)
                self._before_failure(chunk, frame, out)
            self._fail(read_error(value), out, frame.line)
            return
        if chunk.choices is not None:
            return
        media = media_in(value)
        if media:
            self._start(chunk, out)
            for item in media:
                self._state(0).media_ready(item, out)
            out.append(Finished("stop", 0))
        elif is_pending(value):
            name = as_name(value.get("id")) or as_name(value.get("task_id"))
            self._fail(
                UpstreamError("upstream_error", f"the upstream began task {name} and gave no answer", 502),
                out,
                frame.line,
            )
        elif chunk.usage is None and as_dict(chunk.x_groq).get("usage") is None:
            self._notes.add("choices_missing", frame.line)

    def _before_failure(self, chunk: Chunk, frame: Frame, out: list[Event]) -> None:
        """Keep the text that stands beside an error."""
        if any(choice.delta and choice.delta.content for choice in chunk.choices or ()):
            if not self._started:
                self._start(chunk, out)
            for choice in chunk.choices or ():
                choice.finish_reason = None
                self._choice(choice, 0, frame.line, out)

    def _fail(self, error: UpstreamError, out: list[Event], line: int) -> None:
        self._failed = True
        self._notes.add("upstream_failed", line, error.message)
        out.append(Failed(error.code, error.message, error.type, error.status, error.param, error.retry_after_s))

    def _state(self, index: int) -> ChoiceReader:
        states = self._states
        while len(states) <= index:
            states.append(ChoiceReader(len(states), self._salt, self._notes))
        return states[index]

    def _choice(self, choice: Choice, position: int, line: int, out: list[Event]) -> None:
        index = choice.index
        if type(index) is not int or not 0 <= index < 128:
            self._notes.add("choice_index_missing", line)
            index = position
        if self._n is not None and index >= self._n:
            self._notes.add("choice_index_wrong", line)
            index = position if position < self._n else 0
        state = self._states[index] if index < len(self._states) else self._state(index)
        delta = choice.delta
        if delta is None:
            delta = self._other_delta(choice, line)
        if delta is not None:
            state.delta(delta, choice.logprobs, line, out)
        if choice.usage is not None:
            self._notes.add("usage_odd", line)
            self._usage(choice.usage, out)
        reason = choice.finish_reason or choice.finishReason
        if reason is not None and type(reason) is str:
            error = state.finish(reason, line, out)
            if error is not None:
                self._fail(error, out, line)

    def _other_delta(self, choice: Choice, line: int) -> Delta | None:
        if choice.message is not None:
            return choice.message
        if type(choice.text) is str:
            self._notes.add("message_for_delta", line)
            return Delta(content=choice.text)
        return None

    def _usage(self, value: Any, out: list[Event]) -> None:
        usage = read_usage(value)
        if usage is not None:
            out.append(UsageReported(usage))
        elif as_dict(value):
            self._notes.add("usage_zero")

    def _groq(self, value: dict[str, Any], out: list[Event]) -> None:
        if value.get("usage"):
            self._usage(value.get("usage"), out)
        if value.get("error"):
            self._fail(read_error({"error": value.get("error")}), out, 0)

    def _extras(self, chunk: Chunk, out: list[Event]) -> None:
        """Keep the members that OpenAI's and known clients read, each value once."""
        members = {
            "service_tier": chunk.service_tier,
            "system_fingerprint": chunk.system_fingerprint,
            "citations": chunk.citations,
        }
        if members == self._kept:
            return
        new = {name: value for name, value in members.items() if value and value != self._kept.get(name)}
        self._kept = {**self._kept, **new}
        if new:
            out.append(Extras({name: as_raw(value) for name, value in new.items()}))


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request: every member as it was sent, usage asked for, members renamed and dropped as the TOML says."""
    fields = dict(request.fields)
    fields["model"] = Raw(msgspec.json.encode(target.model))
    options = fields.pop("stream_options", None)
    if request.stream:
        fields["stream"] = Raw(b"true")
        fields["stream_options"] = _stream_options(options)
    for name in target.drop:
        fields.pop(name, None)
    for old, new in target.rename.items():
        if old in fields:
            value = fields.pop(old)
            fields.setdefault(new, value)
    return UpstreamRequest(target.path or "/chat/completions", msgspec.json.encode(fields))


def _stream_options(asked: Raw | None) -> Raw:
    """Usage is always asked for; `include_cost` is between the client and the gateway."""
    if asked is None:
        return _INCLUDE_USAGE
    options = msgspec.json.decode(asked, type=dict[str, Any] | None) or {}
    options.pop("include_cost", None)
    return Raw(msgspec.json.encode({**options, "include_usage": True}))


def recognises(value: dict[str, Any]) -> bool:
    """Chunks and completions have `choices`."""
    return type(value.get("choices")) in (list, dict)


def _error(status: int, body: bytes, retry_after: str) -> UpstreamError:
    return read_error_body(status, body, retry_after)


DIALECT = ChatDialect("openai_chat", parse_chunk, EventReader, ChatDecoder, build, _error, recognises)
