"""One choice of an OpenAI answer: its deltas, as wild as they come, become events."""

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, Literal

import msgspec
from msgspec import Raw

from trunkline.core.errors import UpstreamError
from trunkline.core.events import (
    Event,
    Extras,
    Finished,
    FinishReason,
    MediaReady,
    ReasoningDelta,
    RefusalDelta,
    TextDelta,
)
from trunkline.core.finish import is_failure, is_known, read_finish
from trunkline.core.media import Media, MediaKind
from trunkline.core.notes import Notes
from trunkline.wire.cumulative import Cumulative
from trunkline.wire.logprobs import read_logprobs
from trunkline.wire.loose import TextJoin, as_raw, paired
from trunkline.wire.media_shapes import media_in, media_of, part_media, parts_text
from trunkline.wire.mend import mend
from trunkline.wire.openai_chunk import Delta, Function, ToolFragment
from trunkline.wire.read import as_dict, as_index, as_list, as_name, as_text, dicts
from trunkline.wire.tool_calls import ToolCalls

_NAMELESS = UpstreamError("upstream_malformed", "the upstream called a tool and did not say which", 502)
_LONG = 8  # characters that are not said twice by accident
_WORDS = ("text", "content", "thinking", "reasoning", "summary", "value")
_TAG = re.compile(r"^\s*<thought>|</thought>\s*$")
_NO_MEDIA: frozenset[str] = frozenset()  # one for all: most answers have no media
_NAME_CHARS = 4096
_LARGE_CHARS = 1 << 20
_PART_CHARS = 16_384  # of a large picture, spread over all of it: a hash of 20 MB takes 7 ms
_KEPT_CHARS = 16_384  # of the latest text, to know which links it holds already


class ChoiceReader:
    """What is remembered of one choice, and how its deltas are read."""

    __slots__ = (
        "_calls", "_growing", "_links", "_notes", "_salt", "_thought", "_tools", "chars", "cumulative", "index", "join",
        "media", "reason_told", "recent", "shorten_at",
    )  # fmt: skip

    def __init__(self, index: int, salt: str, notes: Notes, tools: Raw | None = None) -> None:
        self._notes = notes
        self.index = index
        self._salt = salt
        self._tools = tools
        self._calls: ToolCalls | None = None
        self.cumulative: Cumulative | None = Cumulative()
        self.join = TextJoin()
        self._growing: Cumulative | None = Cumulative()  # of the reasoning
        self._thought = TextJoin()
        self.recent: list[str] = []
        self.chars = 0  # of the text so far
        self.shorten_at = 2 * _KEPT_CHARS
        self.media = _NO_MEDIA
        self._links: list[Media] = []
        self.reason_told: FinishReason | None = None  # why it ended, as far as anybody knows

    @property
    def calls(self) -> ToolCalls:
        """The tool calls, made when somebody asks for them: a stream of text is idle without."""
        if self._calls is None:
            self._calls = ToolCalls(self.index, self._salt, self._notes, self._tools)
        return self._calls

    def text(self, text: str, logprobs: Any, line: int, out: list[Event]) -> None:
        """Take a piece of text; what repeats the text before it is left out."""
        if self.join.held or not text.isascii():
            text = self.join.feed(text)
        cumulative = self.cumulative
        if cumulative is not None:
            if self._growing is not None and self._growing.held:
                self._release_reasoning(out)
            text, go_on = cumulative.feed(text)
            if cumulative.found:
                self._notes.add("content_cumulative", line)
            if not go_on:
                self.cumulative = None
                for held in cumulative.held:
                    self.text(held, None, line, out)
        if text:
            self.keep(text)
            out.append(TextDelta(text, self.index, read_logprobs(logprobs, self._notes, line) if logprobs else None))

    def keep(self, text: str) -> None:
        """Remember a piece of text that is told."""
        self.recent.append(text)
        self.chars = chars = self.chars + len(text)
        if chars > self.shorten_at:
            size = len(text)
            kept = text[-_KEPT_CHARS:] if size >= _KEPT_CHARS else "".join(self.recent)[-_KEPT_CHARS:]
            self.recent = [kept]
            self.shorten_at = chars + _KEPT_CHARS

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
                for held in growing.held:
                    self.reason(held, line, out)
        if text or details is not None:
            out.append(ReasoningDelta(text, self.index, details))

    def content(self, content: Any, line: int, out: list[Event]) -> None:
        """Read content that is a list of parts, or one part."""
        self._notes.add("content_not_string", line)
        self.parts(as_list(as_dict(content).get("parts")) or as_list(content) or [content], line, out)

    def parts(self, parts: list[Any], line: int, out: list[Event]) -> None:
        """Read parts of content; the text of neighbours is one piece: it may repeat the text before it."""
        for kind, group in groupby(map(_part_said, parts), key=itemgetter(0)):
            if kind == "text":
                self.text("".join(words for _, words, _ in group), None, line, out)
            elif kind == "reasoning":
                self.reason("".join(words for _, words, _ in group), line, out)
            elif kind == "call":
                for _, _, call in group:
                    self.tool(call, line, out)
            elif kind == "refusal":
                out.extend(RefusalDelta(paired(words), self.index) for _, words, _ in group)
            else:
                for _, _, media in group:
                    self.media_ready(media, out, wait=False)

    def delta(self, delta: Delta, logprobs: Any, line: int, out: list[Event]) -> None:
        """Read a whole delta: reasoning goes before content, calls after it."""
        content = delta.content
        if (content is None or type(content) is str) and delta == Delta(delta.role, content):  # one step for the usual
            if content:
                self.text(content, logprobs, line, out)
            return
        reasoning = delta.reasoning_content or delta.reasoning or delta.thinking
        if not reasoning:
            reasoning = _rare_reasoning(delta)
        if reasoning or delta.reasoning_details:
            self._reasoning(reasoning, delta.reasoning_details, line, out)
        content = delta.text if delta.content is None and type(delta.text) is str else delta.content
        if content is not None and content != "":
            if type(content) is not str:
                self.content(content, line, out)
            elif delta.extra_content and _is_thought(delta.extra_content):
                self.reason(_TAG.sub("", content), line, out)
            else:
                self.text(content, logprobs, line, out)
        if delta.tool_calls:
            for fragment in delta.tool_calls:
                self.tool(fragment, line, out)
        elif delta.function_call is not None and not self.calls.modern:
            self._function_call(delta.function_call, line, out)
        self._rest(delta, line, out)

    def _rest(self, delta: Delta, line: int, out: list[Event]) -> None:
        """Read what few deltas have."""
        if delta.toolCalls or delta.tool_call:
            for fragment in delta.toolCalls or filter(None, [delta.tool_call]):
                self.tool(fragment, line, out)
        if delta.refusal and type(delta.refusal) is str:
            out.append(RefusalDelta(paired(delta.refusal), self.index))
        if delta.images or delta.image or delta.image_url or delta.attachments or delta.multi_mod_content:
            for items in (delta.images, delta.image, delta.image_url, delta.attachments, delta.multi_mod_content):
                self._media(items, "image", out)
        if delta.media or delta.files or delta.image_urls or delta.inline_data or delta.inlineData:
            for media in _rare_media(delta):
                self.media_ready(media, out)
        if delta.videos or delta.video or delta.video_url:
            for items in (delta.videos, delta.video, delta.video_url):
                self._media(items, "video", out)
        if delta.annotations or delta.audio:
            members = {"annotations": delta.annotations, "audio": delta.audio}
            fields = {name: as_raw(value) for name, value in members.items() if value}
            out.append(Extras(fields, self.index))

    def _media(self, items: Any, kind: MediaKind, out: list[Event]) -> None:
        for item in items if type(items) is list else [items]:
            self.media_ready(media_of(item, kind), out)

    def _reasoning(self, plain: Any, details: Any, line: int, out: list[Event]) -> None:
        text = _words(plain)
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

    def tool(self, fragment: ToolFragment, line: int, out: list[Event]) -> None:
        """Read a fragment of a tool call."""
        custom = fragment.custom is not None
        function = fragment.custom or fragment.function
        if function is None:
            arguments = fragment.arguments or fragment.args
            function = Function(fragment.name, arguments or None, fragment.parameters, fragment.input)
        arguments = function.input if custom else function.arguments
        if arguments is None:
            arguments = function.parameters or function.input or function.args
        extra = {"extra_content": as_raw(fragment.extra_content)} if fragment.extra_content else None
        self.calls.feed(
            out,
            index=as_index(fragment.index),
            id=as_name(fragment.id or fragment.call_id or fragment.tool_call_id),
            name=as_text(function.name),
            arguments=arguments,
            line=line,
            kind="custom" if custom else "function",
            extra=extra,
        )

    def _function_call(self, call: Function, line: int, out: list[Event]) -> None:
        name = as_text(call.name)
        if name or call.arguments:
            self._notes.add("function_call_legacy", line)
            self.calls.feed(out, index=0, id="", name=name, arguments=call.arguments, line=line, kind="legacy")

    def finish(self, word: str, line: int, out: list[Event], why: str = "") -> UpstreamError | None:
        """Read why the choice ended, in any spelling; give the error where that word means one."""
        if is_failure(word):
            told = f"the upstream ended the answer with {word!r}"
            return UpstreamError("upstream_error", f"{told}: {why}" if why else told, 502)
        reason = read_finish(word)
        if reason is None:
            return None
        self._release(out)
        if not is_known(word):
            self._notes.add("finish_spelling", line, word)
        if self.calls.pending:
            self.calls.close(out)
            if self.calls.nameless:
                return _NAMELESS
        if self.calls and self.calls.complete and reason in ("stop", "function_call"):
            if reason == "stop":
                self._notes.add("finish_for_tools", line)
            reason = "tool_calls"
        self.reason_told = reason
        out.append(Finished(reason, self.index))
        return None

    def end(self, out: list[Event]) -> UpstreamError | None:
        """Read the end of an answer without a finish: calls are whole, or the answer is cut."""
        self._release(out)
        self.fill(out)
        if self.reason_told is not None or not self.calls.pending:
            return None
        self.calls.settle(out)
        if not self.calls.complete:
            return UpstreamError("upstream_incomplete", "the upstream's answer ends within a tool call", 502)
        self.calls.close(out)
        self.calls.fill(out)
        return _NAMELESS if self.calls.nameless else None

    def fill(self, out: list[Event]) -> None:
        """Give calls without arguments `{}`, when no more comes of a choice that has a finish: some finish early."""
        if self.reason_told is None or self._calls is None:
            return
        self._calls.close(out)
        if self._calls.fill(out):
            called = self.reason_told == "stop" and self._calls.complete
            out.append(Finished("tool_calls" if called else self.reason_told, self.index))

    def close(self, out: list[Event]) -> None:
        """Give what was held back; a call whose arguments never came has begun nevertheless."""
        self._release(out)
        self.calls.tell(out)
        thought = self._thought.close()
        if thought:
            out.append(ReasoningDelta(thought, self.index))
        rest = self.join.close()
        if rest:
            out.append(TextDelta(rest, self.index))

    def media_ready(self, media: Media | None, out: list[Event], *, wait: bool = True) -> None:
        """Give a medium once. A link beside the text waits for the end: it may yet come in the text."""
        if media is None:
            return
        key = _name_of(media.url)
        if key in self.media:
            return
        self.media |= {key}
        if media.url and media.url in "".join(self.recent):
            out.append(MediaReady(msgspec.structs.replace(media, in_text=True), self.index))
        elif wait and media.url.startswith("http") and self.reason_told is None:
            self._links.append(media)
        else:
            out.append(MediaReady(media, self.index))

    def _release(self, out: list[Event]) -> None:
        """Give the text and the links that waited."""
        self._release_reasoning(out)
        watch = self.cumulative
        if watch is not None and (held := watch.close()):
            self.cumulative = None
            for piece in held:
                self.text(piece, None, 0, out)
            self.cumulative = self._watching(watch)
        text = "".join(self.recent) if self._links else ""
        out.extend(
            MediaReady(msgspec.structs.replace(media, in_text=media.url in text), self.index) for media in self._links
        )
        self._links.clear()

    def _release_reasoning(self, out: list[Event]) -> None:
        watch = self._growing
        if watch is not None and (held := watch.close()):
            self._growing = self._watching(watch)
            out.extend(ReasoningDelta(piece, self.index) for piece in held)

    def _watching(self, watch: Cumulative) -> Cumulative | None:
        """Go on watching text that grows."""
        if watch.found:
            self._notes.add("content_cumulative")
        return watch if watch.found else None

    def repeats(self, content: Any, least: int = _LONG) -> bool:
        """Say whether a whole message tells again what was said in pieces, of `least` characters in all."""
        said = "".join(self.recent)
        return type(content) is str and len(content) == self.chars >= least and content.endswith(said)


def _name_of(url: str) -> str:
    """Give what tells a URL from others, and is short; of one that holds a packed picture a part says enough."""
    size = len(url)
    if size < _NAME_CHARS:
        return url
    return f"{size} {url[-64:]} {hash(url if size < _LARGE_CHARS else url[:: size // _PART_CHARS])}"


def _part_said(part: Any) -> tuple[Literal["text", "reasoning", "refusal", "call", "media"], str, Any]:
    """Read a part of content: its kind, and its words, its call or its medium."""
    if type(part) is not dict:
        return "text", str(part) if type(part) in (str, int, float) else "", None
    kind = as_text(part.get("type"))
    if kind in ("thinking", "reasoning", "reasoning_text", "reasoning_content"):
        said = part.get("thinking") or part.get("summary") or part.get("text") or part.get("reasoning")
        return "reasoning", _words(said), None
    if kind == "refusal":
        return "refusal", as_text(part.get("refusal")), None
    if kind in ("tool_use", "tool_call", "function_call", "function"):
        return "call", "", mend({"id": None, **part}, ToolFragment)
    if (media := part_media(part)) is not None:
        return "media", "", media
    return "text", _words(part.get("text")) or as_text(part.get("content")) or as_text(part.get("value")), None


def _words(value: Any) -> str:
    """Read text that may be wrapped: `"…"`, `[{"text": "…"}]`, `{"content": "…"}`."""
    if type(value) is dict:
        return next((text for name in _WORDS if (text := as_text(value.get(name)))), "")
    return parts_text(value)


def _rare_reasoning(delta: Delta) -> Any:
    if not (
        delta.thought or delta.reasoning_text or delta.thinking_content or delta.thinking_blocks
        or delta.reasoningContent
    ):  # fmt: skip
        return None
    if type(delta.thought) is str and delta.thought:
        return delta.thought
    blocks = "".join(as_text(block.get("thinking")) for block in dicts(delta.thinking_blocks))
    return delta.reasoning_text or delta.thinking_content or delta.reasoningContent or blocks


def _rare_media(delta: Delta) -> Iterator[Media | None]:
    """Read media under names that few use; those of files and blobs must say that they are pictures or films."""
    for item in (*as_list(delta.files), *filter(None, [delta.inline_data, delta.inlineData])):
        yield part_media({"type": "file", **item} if type(item) is dict else {})
    yield from media_in({"media": delta.media, "image_urls": delta.image_urls})


def _is_thought(extra: Any) -> bool:
    return as_dict(as_dict(extra).get("google")).get("thought") is True
