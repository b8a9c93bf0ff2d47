"""Poe's own event stream of bots (wire.md section 6.2), which may take back what it said."""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.dialect import ChatDialect
from trunkline.core.events import Event
from trunkline.core.media import Media, MediaKind
from trunkline.core.notes import Notes
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.asked import Asked, Tools, compact, merged, openai_tools
from trunkline.wire.error_body import read_error_body
from trunkline.wire.openai_chunk import Choice
from trunkline.wire.reader import EventReader
from trunkline.wire.turns import Attached, Turn, openai_calls, refuse

_EVENTS = ("meta", "text", "replace_response", "file", "json", "suggested_reply", "ping", "done")
_STATE_CHARS = 120  # what is replaced and longer than a line is an answer that grows, not a state


class _Said(Struct):
    text: str | None = None
    url: str | None = None
    content_type: str | None = None
    choices: list[Choice] | None = None


class Decoder(AnswerDecoder[_Said]):
    """Events by name → events. From the first replaced text on, text is held until it can no longer be replaced."""

    kind = _Said

    def __init__(self, notes: Notes, n: int | None, salt: str) -> None:
        super().__init__(notes, n, salt)
        self._sent = ""
        self._held: str | None = None
        self._files: list[Media] = []  # said last: then it is known which links stand in the text

    def read(self, value: _Said) -> bool:
        """Read one event."""
        if self.event not in _EVENTS:
            return False
        self.start()
        text = value.text or ""
        match self.event:
            case "text":
                self._add(text)
            case "replace_response":
                self._held = text
                if not self._sent and text.strip() and len(text) < _STATE_CHARS:
                    self.progress(f"{text.strip()}\n")
            case "file" if value.url:
                video = (value.content_type or "").startswith("video/")
                kind: MediaKind = "video" if video else "image"
                self._files.append(Media(kind, url=value.url, mime_type=value.content_type or ""))
            case "json":
                self._chunk(value.choices or [])
            case "done":
                self._release()
                self.finish("stop")
                self.end()
        return True

    def _add(self, text: str) -> None:
        if self._held is None:
            self._sent += text
            self.text(text)
        else:
            self._held += text

    def close(self) -> list[Event]:
        """Give what was held back."""
        self._release()
        return super().close()

    def _release(self) -> None:
        """Say what is held; what was sent before cannot be taken back, and is gone on from if it is the beginning."""
        held, self._held = self._held, None
        if held is not None:
            known = held.startswith(self._sent)
            self.text(held[len(self._sent) :] if known else f"\n\n{held}")
        for media in self._files:
            self.media(media)
        self._files.clear()

    def _chunk(self, choices: list[Choice]) -> None:
        """Read a chunk of OpenAI's: tool calls come so."""
        for choice in choices:
            if choice.delta is not None:
                self.delta(choice.delta)
            if isinstance(choice.finish_reason, str):
                self.finish(choice.finish_reason)


def build(request: ChatRequest, target: Target) -> UpstreamRequest:
    """Build the request: always streamed, for a bot answers no other way."""
    asked = Asked(request, target)
    turns = asked.turns()
    tools = asked.tools()
    body = {
        "version": "1.2",
        "type": "query",
        "query": [_message(turn) for turn in turns if turn.role != "tool"],
        "user_id": asked.take("user", str, "a string") or "",
        "conversation_id": "",
        "message_id": "",
    } | compact(
        temperature=asked.number("temperature"),
        stop_sequences=asked.stop(),
        logit_bias=asked.take("logit_bias", dict[str, float], "an object of numbers"),
        **_tools(tools, turns),
    )
    return UpstreamRequest(target.path or "/bot/{model}", msgspec.json.encode(merged(body, asked.rest())))


def _tools(tools: Tools, turns: list[Turn]) -> dict[str, Any]:
    if tools.mode == "none":
        return {}
    if tools.mode == "required":
        refuse("tool_choice", "it cannot be made to call a function")
    if tools.tools and not tools.parallel:
        refuse("parallel_tool_calls", "it cannot be kept from calling several functions at once")
    results = [
        {"role": "tool", "name": turn.name or "tool", "tool_call_id": turn.call_id, "content": turn.only_text("it")}
        for turn in turns
        if turn.role == "tool"
    ]
    called = [call for turn in turns for call in openai_calls(turn)]
    return {"tools": openai_tools(tools), "tool_calls": called, "tool_results": results}


def _message(turn: Turn) -> dict[str, Any]:
    return {
        "role": "bot" if turn.role == "assistant" else turn.role,
        "content": turn.text,
        "content_type": "text/markdown",
        "attachments": [_attachment(part) for part in turn.parts if isinstance(part, Attached)],
    }


def _attachment(part: Attached) -> dict[str, Any]:
    if not part.url:
        refuse(part.where, "it takes files only as links (https://…)")
    name = part.name or part.url.rpartition("/")[2].partition("?")[0] or part.kind
    return {"url": part.url, "content_type": part.mime_type or f"{part.kind}/*", "name": name}


def recognises(value: dict[str, Any]) -> bool:
    """Look for the first event, which says how the text is to be shown."""
    return "content_type" in value and ("linkify" in value or "suggested_replies" in value)


DIALECT = ChatDialect(
    "poe_bot",
    msgspec.json.Decoder(_Said).decode,
    EventReader,
    Decoder,
    build,
    read_error_body,
    recognises,
)
