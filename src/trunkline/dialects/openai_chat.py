"""OpenAI Chat Completions, with all that providers make of it (wire.md sections 1, 7 and 8)."""

from typing import Any

from msgspec import Raw

from trunkline.core.dialect import ChatDialect, Decoder, Lone, Said
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Ended, Event, Extras, Failed, Started, UsageReported
from trunkline.core.finish import first_told, is_word
from trunkline.core.notes import Notes
from trunkline.wire.counted import Counted
from trunkline.wire.error_body import is_error, is_error_text, read_error, read_error_body, unwrapped, usage_within
from trunkline.wire.frame import END_EVENTS, ERROR_EVENTS, Frame, Parse
from trunkline.wire.loose import as_raw, read_loose
from trunkline.wire.media_shapes import is_pending, media_in
from trunkline.wire.openai_choice import ChoiceReader
from trunkline.wire.openai_chunk import Choice, Chunk, Delta, mend_chunk, parse_chunk, text_of_chunk, text_of_message
from trunkline.wire.openai_request import build_openai
from trunkline.wire.pieces import read_piece
from trunkline.wire.plain_completion import read_plain_completion
from trunkline.wire.read import as_count, as_dict, as_index, as_name, as_text, dicts
from trunkline.wire.reader import EventReader
from trunkline.wire.repeated import ReasoningText, Repeated
from trunkline.wire.strays import Strays

_NO_DELTA = Delta()
MAX_CHOICES = 128
_EXTRAS = ("service_tier", "system_fingerprint", "citations")
_NONE_KEPT = (None,) * len(_EXTRAS)


class ChatDecoder:
    """Chunks, completions and errors → events."""

    def __init__(self, notes: Notes, n: int | None, salt: str) -> None:
        self._notes = notes
        self._n = n
        self._salt = salt
        self.tools: Raw | None = None
        self.states: list[ChoiceReader] = []
        """Of the choices that have come."""
        self._started = self._ended = self._failed = False
        self._whole = False  # a completion came, and nothing else
        self._messages = False  # a message has come in place of a delta
        self._pieces = False  # the answer comes in objects without choices
        self._pending: UpstreamError | None = None  # a task was begun; its answer may yet come
        self._strays: Strays[tuple[Choice, int]] | None = None  # made when there is one
        self._counted = Counted(notes)
        self._kept: tuple[Any, ...] = _NONE_KEPT

    def feed(self, frames: list[Frame]) -> list[Event]:
        """Read the next frames."""
        out: list[Event] = []
        for frame in frames:
            if self._failed:
                break
            if frame.kind == "json":
                chunk = frame.value
                if frame.event and frame.event in ERROR_EVENTS:
                    chunk = None  # more than a text counts
                kind = type(chunk)
                if kind is str and not self._ended:
                    self.states[0].text(chunk, None, frame.line, out)
                    continue
                if kind is ReasoningText and not self._ended:
                    self.states[0].reason(str(chunk), frame.line, out)
                    continue
                if chunk is None:
                    chunk = mend_chunk(read_loose(frame.data, self._notes, frame.line))
                if chunk is None:
                    continue
                if self._ended:
                    self._late(chunk, frame)
                else:
                    self._chunk(chunk, frame, out)
            elif frame.kind == "done" and not self._ended:
                self._end(out)
            elif (
                frame.kind == "text" and not self._ended and (frame.event in ERROR_EVENTS or is_error_text(frame.data))
            ):
                self._fail(read_error(bytes(frame.data).decode("utf-8", "replace")), out, frame.line)
        return out

    def close(self) -> list[Event]:
        """Give what was held back, and what was counted."""
        out: list[Event] = []
        self._release(out)
        if self._pending is not None and not self._started:
            self._fail(self._pending, out, 0)
        elif self._whole and not self._ended and "malformed" not in self._notes.counts:
            self._end(out)
        for state in self.states:
            state.fill(out)
            state.close(out)
        if (usage := self._counted.usage) is not None:
            out.append(UsageReported(usage))
        return out

    def _end(self, out: list[Event]) -> None:
        if self._pending is not None and not self._started:
            return
        self._release(out)
        self._ended = True
        for state in self.states:
            error = state.end(out)
            if error is not None:
                out.append(Failed(error.code, error.message))
                return
        out.append(Ended())

    def _late(self, chunk: Chunk | str, frame: Frame) -> None:
        """Read what comes after the end mark: nothing but usage counts."""
        self._notes.add("data_after_done", frame.line)
        if not isinstance(chunk, str) and chunk.usage is not None:
            self._counted.take(chunk.usage)

    def _chunk(self, chunk: Chunk, frame: Frame, out: list[Event]) -> None:
        choices = chunk.choices
        silent = not (choices or chunk.usage)
        if silent or choices is None or chunk.error or frame.event in ERROR_EVENTS or chunk.base_resp:
            self._odd(chunk, frame, out)
            if self._failed or self._ended:
                return
        if choices:
            message = choices[0].message
            completion = not self._started and chunk.object == "chat.completion"
            self._whole = completion and message is not None and message.answers
            if not self._started:
                self._start(chunk, out)
            if chunk.system_fingerprint or chunk.service_tier or chunk.citations:
                self._extras(chunk, out)
            single = len(choices) == 1
            for position, choice in enumerate(choices):
                self._choice(choice, -1 if single else position, frame.line, out)
        if chunk.usage is not None:  # llama.cpp, which has timings beside it, sends one for each choice
            of_another = not choices and chunk.timings is not None and len(self.states) > 1
            self._counted.take(chunk.usage, of_another=of_another)
        if chunk.finish_reason and self._started and not (choices and self._state(0).reason_told):
            self._finish(self._state(0), first_told(chunk.finish_reason), frame.line, out)
        if chunk.x_groq is not None or chunk.usageMetadata is not None or chunk.timings is not None:
            self._counts(chunk, out)
        if choices is not None and self._started and (members := chunk.media_beside()):
            for item in media_in(members):
                self._state(0).media_ready(item, out)

    def _start(self, chunk: Chunk, out: list[Event]) -> None:
        self._started = True
        out.append(Started(as_name(chunk.id), as_text(chunk.model).strip(), as_count(chunk.created)))

    def _odd(self, chunk: Chunk, frame: Frame, out: list[Event]) -> None:
        """Read an object that holds an error, or no choices: something wrapped, media, a task, an end, or usage."""
        value = as_dict(read_loose(frame.data, Notes()))
        if frame.event in ERROR_EVENTS or is_error(value):
            if chunk.choices:
                self._notes.add("error_with_choices", frame.line)
                self._before_failure(chunk, frame, out)
            self._fail(read_error(value), out, frame.line)
            return
        if chunk.choices is not None:
            return
        inner = mend_chunk(unwrapped(value))
        if inner is not None:
            self._notes.add("choices_missing", frame.line)
            self._chunk(inner, frame, out)
        elif (self._pieces or not self._started) and self._piece(value, frame, out):
            self._pieces = True
        elif self._started and (value.get("done") is True or not END_EVENTS.isdisjoint(_names(frame, value))):
            self._notes.add("done_mangled", frame.line)
            self._end(out)
        else:
            self._generated(chunk, value, frame, out)

    def _piece(self, value: dict[str, Any], frame: Frame, out: list[Event]) -> bool:
        """Read an object that has a piece of text in place of choices."""
        piece = None if media_in(value) else read_piece(value, begun=self._started)
        if piece is not None and "complete" in frame.event and self._state(0).repeats(text_of_chunk(piece), 1):
            self._notes.add("content_cumulative", frame.line)
        elif piece is not None:
            self._notes.add("choices_missing", frame.line)
            self._chunk(piece, frame, out)
        return piece is not None

    def _generated(self, chunk: Chunk, value: dict[str, Any], frame: Frame, out: list[Event]) -> None:
        """Read an object that tells of pictures or films."""
        media = media_in(value)
        if media and self._started and "url" in value and "type" not in value:
            self._notes.add("member_dropped", frame.line, "url")  # where the answer was looked up
        elif media:
            self._start(chunk, out)
            for item in media:
                self._state(0).media_ready(item, out)
            self._finish(self._state(0), "stop", frame.line, out)
        elif is_pending(value):
            inner = as_dict(value.get("output")) or as_dict(value.get("data")) or value
            names = (value.get("id"), inner.get("task_id"), value.get("request_id"))
            name = next(filter(None, map(as_name, names)), "")
            self._notes.add("choices_missing", frame.line)
            told = f"the upstream began {f'task {name}' if name else 'a task'} and gave no answer"
            self._pending = UpstreamError("upstream_error", told, 502)
        elif chunk.usage is None and chunk.usageMetadata is None and as_dict(chunk.x_groq).get("usage") is None:
            self._notes.add("choices_missing", frame.line)
            self._counted.take(usage_within(value))

    def _before_failure(self, chunk: Chunk, frame: Frame, out: list[Event]) -> None:
        """Keep the text that stands beside an error."""
        if any(choice.delta and choice.delta.content for choice in chunk.choices or ()):
            if not self._started:
                self._start(chunk, out)
            for choice in chunk.choices or ():
                choice.finish_reason = choice.error = None
                self._choice(choice, -1, frame.line, out)

    def _fail(self, error: UpstreamError, out: list[Event], line: int) -> None:
        if not self._failed:
            self._failed = True
            self._notes.add("upstream_failed", line, error.message)
            self._release(out)
            for state in self.states:
                state.close(out)
            out.append(Failed(error.code, error.message, error.type, error.status, error.param, error.retry_after_s))

    def _state(self, index: int) -> ChoiceReader:
        states = self.states
        while len(states) <= index:
            states.append(ChoiceReader(len(states), self._salt, self._notes, self.tools))
        return states[index]

    def _choice(self, choice: Choice, position: int, line: int, out: list[Event]) -> None:
        """Read a choice; its position among several, or -1, stands in for an index that is wrong."""
        index = choice.index
        if type(index) is not int or not 0 <= index < MAX_CHOICES:
            self._notes.add("choice_index_missing", line)
            read = as_index(index)
            index = max(position, 0) if read is None or read >= MAX_CHOICES else read
        if self._n is not None and index >= self._n:
            self._notes.add("choice_index_wrong", line)
            self._stray(choice, index, line, out, alone=position < 0)
            return
        state = self.states[index] if index < len(self.states) else self._state(index)
        delta = choice.delta
        if delta is None:
            delta = self._other_delta(choice, state, line)
        elif choice.text and not delta.content:
            delta.content = choice.text
        if choice.tool_calls or choice.reasoning_content:
            aside = Delta(tool_calls=choice.tool_calls, reasoning_content=choice.reasoning_content)
            state.delta(aside, None, line, out)
        elif choice.message is not None and delta is not None and choice.message is not delta:
            self._beside(choice, choice.message, state, line, out)
        if delta is not None:
            state.delta(delta, choice.logprobs, line, out)
        self._rest(choice, delta, state, line, out)

    def _stray(self, choice: Choice, index: int, line: int, out: list[Event], *, alone: bool) -> None:
        """Read a choice that was not asked for, if it is the first one's after all."""
        strays = self._strays = self._strays or Strays(self._n or 1, self.states)
        if alone:
            self._as_first(strays.take((choice, line), index, finishes=first_told(choice.finish_reason) != ""), out)
        else:
            strays.drop()

    def _as_first(self, strays: tuple[tuple[Choice, int], ...], out: list[Event]) -> None:
        for choice, line in strays:
            choice.index = 0
            self._choice(choice, -1, line, out)

    def _release(self, out: list[Event]) -> None:
        if self._strays is not None:
            self._as_first(self._strays.close(), out)

    def _rest(self, choice: Choice, delta: Delta | None, state: ChoiceReader, line: int, out: list[Event]) -> None:
        """Read what stands beside the delta, or wrongly within it: usage, an error, the finish."""
        if delta is None:
            delta = _NO_DELTA
        if choice.usage or delta.usage:
            self._notes.add("usage_odd", line)
            self._counted.take(choice.usage or delta.usage)
        if choice.error or delta.error:
            self._fail(read_error({"error": choice.error or delta.error}), out, line)
            return
        if (
            choice.finish_reason or choice.finishReason or delta.finish_reason
            or choice.stop_reason or choice.native_finish_reason
        ):  # fmt: skip
            reason = first_told(choice.finish_reason, choice.finishReason, delta.finish_reason)
            if not reason:
                word = first_told(choice.stop_reason, choice.native_finish_reason)
                reason = word if is_word(word) else ""
            if reason:
                self._finish(state, reason, line, out)

    def _finish(self, state: ChoiceReader, word: str, line: int, out: list[Event]) -> None:
        error = state.finish(word, line, out)
        if error is not None:
            self._fail(error, out, line)

    @staticmethod
    def _beside(choice: Choice, message: Delta, state: ChoiceReader, line: int, out: list[Event]) -> None:
        """Read the message that stands beside a delta; at the end it may tell what no delta has told."""
        said, delta = Delta(images=message.images, videos=message.videos), choice.delta or _NO_DELTA
        if choice.finish_reason:
            said.content = None if state.chars or delta.content else message.content
            said.tool_calls = None if state.calls.pending or delta.tool_calls else message.tool_calls
        state.delta(said, None, line, out)

    def _other_delta(self, choice: Choice, state: ChoiceReader, line: int) -> Delta | None:
        message = choice.message
        if message is not None:
            told, self._messages = self._messages, True
            if state.repeats(message.content) or (not told and state.repeats(message.content, 1)):
                self._notes.add("content_cumulative", line)
                message.content = message.reasoning_content = message.reasoning = None
            return message
        text = choice.text or "".join(map(text_of_message, dicts(choice.messages))) or choice.content
        if text:
            self._notes.add("message_for_delta", line)
            return Delta(content=text)
        return None

    def _counts(self, chunk: Chunk, out: list[Event]) -> None:
        """Read usage in the places that single providers have for it."""
        if chunk.usageMetadata is not None:
            self._counted.take(chunk.usageMetadata)
        else:
            self._counted.take_timings(chunk.timings)
        if self._whole and chunk.choices and len(chunk.choices) > 1:
            self._counted.take_first(chunk.timings, chunk.choices)
        groq = as_dict(chunk.x_groq)
        if groq.get("usage"):
            self._counted.take(groq.get("usage"))
        if groq.get("error"):
            self._fail(read_error({"error": groq.get("error")}), out, 0)

    def _extras(self, chunk: Chunk, out: list[Event]) -> None:
        """Keep the members that OpenAI's and known clients read, each value once."""
        said, kept = (chunk.service_tier, chunk.system_fingerprint, chunk.citations), self._kept
        if said == kept:
            return
        self._kept = tuple(new or old for new, old in zip(said, kept, strict=True))
        told = zip(_EXTRAS, said, kept, strict=True)
        if fields := {name: as_raw(new) for name, new, old in told if new and new != old}:
            out.append(Extras(fields))


def _names(frame: Frame, value: dict[str, Any]) -> tuple[str, str]:
    return frame.event, as_text(value.get("type")).lower()


def recognises(value: dict[str, Any]) -> bool:
    """Chunks and completions have `choices`, perhaps within an envelope."""
    return type(value.get("choices")) in (list, dict) or unwrapped(value) is not None


class _ChunkReader(EventReader):
    """Cuts events into chunks; remembers what the chunks of a stream have in common."""

    def __init__(self, _parse: Parse, notes: Notes) -> None:
        self.repeated = Repeated()
        super().__init__(self.repeated.parse, notes)


def _lone(reader: object, decoder: Decoder) -> Lone | None:
    """Read chunks of text that come alone, where they come as OpenAI sends them."""
    if not isinstance(reader, _ChunkReader) or not isinstance(decoder, ChatDecoder):
        return None
    text_of, states = reader.repeated.lone, decoder.states

    def read(data: bytes) -> Said | None:
        text = text_of(data) if reader.at_rest else None
        if text is None:
            return None
        reader.line += 2
        state = states[0]
        if text and state.cumulative is None and type(text) is str and text.isascii() and not state.join.held:
            state.keep(text)
            return text
        out: list[Event] = []
        if type(text) is str:
            state.text(text, None, reader.line - 2, out)
        else:
            state.reason(str(text), reader.line - 2, out)
        return out

    return read


DIALECT = ChatDialect(
    "openai_chat",
    parse_chunk,
    _ChunkReader,
    ChatDecoder,
    build_openai,
    read_error_body,
    recognises,
    whole=read_plain_completion,
    lone=_lone,
)
