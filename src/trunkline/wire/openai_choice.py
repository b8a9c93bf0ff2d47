"""One choice of an OpenAI answer: its deltas, as wild as they come, become events."""

from typing import Any

import msgspec
from msgspec import Raw

from trunkline.core.errors import UpstreamError
from trunkline.core.events import Event, Extras, Finished, MediaReady, ReasoningDelta, RefusalDelta, TextDelta
from trunkline.core.finish import is_failure, is_known, read_finish
from trunkline.core.media import Media
from trunkline.core.notes import Notes
from trunkline.wire.cumulative import Cumulative
from trunkline.wire.logprobs import read_logprobs
from trunkline.wire.loose import TextJoin, as_raw, paired
from trunkline.wire.media_shapes import media_of, part_media, parts_text
from trunkline.wire.openai_chunk import Delta, Function, ToolFragment
from trunkline.wire.read import as_list, as_name, as_text, dicts
from trunkline.wire.tool_calls import ToolCalls

_KEPT_CHARS = 16_384  # of the latest text, to know which links it holds already


class ChoiceReader:
    """What is remembered of one choice, and how its deltas are read."""

    __slots__ = (
        "_growing",
        "_notes",
        "_thought",
        "calls",
        "cumulative",
        "finished",
        "index",
        "join",
        "media",
        "recent",
        "recent_chars",
    )

    def __init__(self, index: int, salt: str, notes: Notes) -> None:
        self._notes = notes
        self.index = index
        self.calls = ToolCalls(index, salt, notes)
        self.cumulative: Cumulative | None = Cumulative()
        self.join = TextJoin()
        self._growing: Cumulative | None = Cumulative()  # of the reasoning
        self._thought = TextJoin()
        self.recent: list[str] = []
        self.recent_chars = 0
        self.media: set[str] = set()
        self.finished = False

    def text(self, text: str, logprobs: Any, line: int, out: list[Event]) -> None:
        """Take a piece of text; what repeats the text before it is left out."""
        if self.join.held or not text.isascii():
            text = self.join.feed(text)
        cumulative = self.cumulative
        if cumulative is not None:
            text, go_on = cumulative.feed(text)
            if cumulative.found:
                self._notes.add("content_cumulative", line)
            if not go_on:
                self.cumulative = None
        if not text:
            return
        self.recent.append(text)
        self.recent_chars += len(text)
        if self.recent_chars > 2 * _KEPT_CHARS:
            kept = "".join(self.recent)[-_KEPT_CHARS:]
            self.recent = [kept]
            self.recent_chars = len(kept)
        out.append(TextDelta(text, self.index, read_logprobs(logprobs, self._notes, line) if logprobs else None))

    def reason(self, text: str, line: int, out: list[Event], details: Raw | None = None) -> None:
        """Take a piece of reasoning; what repeats the reasoning before it is left out."""
        if self._thought.held or not text.isascii():
            text = self._thought.feed(text)
        growing = self._growing
        if growing is not None:
            text, go_on = growing.feed(text)
            if growing.found:
                self._notes.add("content_cumulative", line)
            if not go_on:
                self._growing = None
        if text or details is not None:
            out.append(ReasoningDelta(text, self.index, details))

    def content(self, content: Any, line: int, out: list[Event]) -> None:
        """Read content that is a list of parts, or one part."""
        self._notes.add("content_not_string", line)
        for part in dicts(content if type(content) is list else [content]):
            kind = as_text(part.get("type"))
            if kind in ("thinking", "reasoning", "reasoning_text", "reasoning_content"):
                text = parts_text(
                    part.get("thinking") or part.get("summary") or part.get("text") or part.get("reasoning")
                )
                self.reason(text, line, out)
            elif kind == "refusal":
                out.append(RefusalDelta(paired(as_text(part.get("refusal"))), self.index))
            elif (media := part_media(part)) is not None:
                self.media_ready(media, out)
            elif text := as_text(part.get("text")) or as_text(part.get("content")):
                self.text(text, None, line, out)
        for item in as_list(content):
            if type(item) is str and item:
                self.text(item, None, line, out)

    def delta(self, delta: Delta, logprobs: Any, line: int, out: list[Event]) -> None:
        """Read a whole delta: reasoning goes before content, calls after it."""
        reasoning = delta.reasoning_content or delta.reasoning or delta.thinking
        if reasoning or delta.reasoning_details:
            self._reasoning(reasoning, delta.reasoning_details, line, out)
        if delta.content is not None and delta.content != "":
            if type(delta.content) is str:
                self.text(delta.content, logprobs, line, out)
            else:
                self.content(delta.content, line, out)
        if delta.refusal and type(delta.refusal) is str:
            out.append(RefusalDelta(paired(delta.refusal), self.index))
        if delta.tool_calls:
            for fragment in delta.tool_calls:
                self._tool(fragment, line, out)
        if delta.function_call is not None and (delta.function_call.name or delta.function_call.arguments):
            self._function_call(delta.function_call, line, out)
        if delta.images or delta.videos:
            for item in as_list(delta.images):
                self.media_ready(media_of(item), out)
            for item in as_list(delta.videos):
                self.media_ready(media_of(item, "video"), out)
        if delta.annotations or delta.audio:
            members = {"annotations": delta.annotations, "audio": delta.audio}
            fields = {name: as_raw(value) for name, value in members.items() if value}
            out.append(Extras(fields, self.index))

    def _reasoning(self, plain: Any, details: Any, line: int, out: list[Event]) -> None:
        text = parts_text(plain)
        if not text:
            kinds = ("reasoning.text", "reasoning.summary", "", "thinking", "text")
            text = "".join(
                as_text(item.get("text")) or as_text(item.get("summary"))
                for item in dicts(details)
                if as_text(item.get("type")) in kinds
            )
        if text or details:
            self.reason(text, line, out, as_raw(details) if details and type(details) is list else None)
        elif plain:
            self._notes.add("reasoning_spelling", line)

    def _tool(self, fragment: ToolFragment, line: int, out: list[Event]) -> None:
        custom = fragment.custom is not None
        function = fragment.custom or fragment.function or Function(fragment.name, fragment.arguments)
        index = fragment.index if type(fragment.index) is int and fragment.index >= 0 else None
        extra = {"extra_content": as_raw(fragment.extra_content)} if fragment.extra_content else None
        self.calls.feed(
            out,
            index=index,
            id=as_name(fragment.id),
            name=as_text(function.name),
            arguments=function.input if custom else function.arguments,
            line=line,
            kind="custom" if custom else "function",
            extra=extra,
        )

    def _function_call(self, call: Function, line: int, out: list[Event]) -> None:
        self._notes.add("function_call_legacy", line)
        name = as_text(call.name)
        self.calls.feed(out, index=0, id="", name=name, arguments=call.arguments, line=line, kind="legacy")

    def finish(self, word: str, line: int, out: list[Event], why: str = "") -> UpstreamError | None:
        """Read why the choice ended, in any spelling; give the error where that word means one."""
        if is_failure(word):
            told = f"the upstream ended the answer with {word!r}"
            return UpstreamError("upstream_error", f"{told}: {why}" if why else told, 502)
        reason = read_finish(word)
        if reason is None:
            return None
        self.finished = True
        if not is_known(word):
            self._notes.add("finish_spelling", line, word)
        if self.calls:
            self.calls.close(out)
            if reason in ("stop", "function_call") and self.calls.complete:
                if reason == "stop":
                    self._notes.add("finish_for_tools", line)
                reason = "tool_calls"
        out.append(Finished(reason, self.index))
        return None

    def end(self, out: list[Event]) -> UpstreamError | None:
        """Read the end of an answer without a finish: calls are whole, or the answer is cut."""
        if self.finished or not self.calls:
            return None
        if not self.calls.complete:
            return UpstreamError("upstream_incomplete", "the upstream's answer ends within a tool call", 502)
        self.calls.close(out)
        return None

    def close(self, out: list[Event]) -> None:
        """Give what was held back."""
        thought = self._thought.close()
        if thought:
            out.append(ReasoningDelta(thought, self.index))
        rest = self.join.close()
        if rest:
            out.append(TextDelta(rest, self.index))

    def media_ready(self, media: Media | None, out: list[Event]) -> None:
        """Give a medium once; say whether its link stands in the text."""
        if media is None:
            return
        key = media.url if len(media.url) < 4096 else f"{len(media.url)} {media.url[-64:]} {hash(media.url)}"
        if key in self.media:
            return
        self.media.add(key)
        if media.url and media.url in "".join(self.recent):
            media = msgspec.structs.replace(media, in_text=True)
        out.append(MediaReady(media, self.index))
