"""The AI SDK's streams: UI messages as events (version 5 on), and lines `0:"text"` before that.

Read where an upstream answers so; requests are OpenAI's.
"""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.dialect import ChatDialect
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Event
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.error_body import read_error, read_error_body
from trunkline.wire.frame import Frame
from trunkline.wire.loose import read_loose
from trunkline.wire.media_shapes import media_of
from trunkline.wire.mend import mend
from trunkline.wire.openai_request import build_openai
from trunkline.wire.read import as_text
from trunkline.wire.reader import EventReader
from trunkline.wire.usage import read_usage

_CODES = {
    "0": "text-delta", "2": "data", "3": "error", "8": "data", "9": "tool-input-available", "a": "tool-output",
    "b": "tool-input-start", "c": "tool-input-delta", "d": "finish", "e": "finish-step", "f": "start", "g": "reasoning",
    "h": "source", "i": "reasoning-part", "j": "reasoning-part", "k": "file",
}  # fmt: skip
"""What the codes before lines stand for, as types of UI messages."""
_TYPES = frozenset((
    "start", "start-step", "text-start", "text-delta", "reasoning-start", "reasoning-delta", "tool-input-start",
    "tool-input-delta", "tool-input-available", "source-url", "source-document", "finish-step", "message-metadata",
))  # fmt: skip


class _Part(Struct, rename="camel"):
    """One part; a string after a code is its `delta`."""

    type: str = ""
    message_id: str | None = None
    delta: str | None = None
    text_delta: str | None = None
    error_text: Any = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    input_text_delta: str | None = None
    args_text_delta: str | None = None
    input: Any = None
    args: Any = None
    url: str | None = None
    data: Any = None
    media_type: str | None = None
    mime_type: str | None = None
    finish_reason: str | None = None
    usage: Any = None
    total_usage: Any = None


class Decoder(AnswerDecoder[_Part]):
    """Parts → events."""

    kind = _Part

    def feed(self, frames: list[Frame]) -> list[Event]:
        """Read the next frames: a code says the type of what stands behind it."""
        for frame in frames:
            if frame.event in _CODES and frame.kind == "json":
                frame.value = self._coded(frame)
        return super().feed(frames)

    def _coded(self, frame: Frame) -> _Part:
        said = read_loose(frame.data, self.notes, frame.line)
        part = mend(said, _Part) or _Part(delta=as_text(said))
        part.type = _CODES[frame.event]
        return part

    def read(self, value: _Part) -> bool:
        """Read one part."""
        said = value.delta or value.text_delta
        match value.type:
            case "start":
                self.start(value.message_id)
            case "text-delta":
                self.start()
                self.text(said)
            case "reasoning" | "reasoning-delta":
                self.start()
                self.reasoning(said)
            case "tool-input-start" | "tool-input-delta" | "tool-input-available":
                self.start()
                self._tool(value)
            case "file":
                self.start()
                self._file(value)
            case "error" if value.error_text or said:
                self.fail(read_error(value.error_text or said))
            case "abort":
                self.fail(UpstreamError("upstream_error", "the upstream ended the answer with 'abort'", 502))
            case "finish":
                self.start()
                self.usage(read_usage(value.total_usage or value.usage))
                self.finish(value.finish_reason or "stop")
                self.end()
            case _:
                return "-" in value.type or value.type in {"data", "source"}
        return True

    def _tool(self, value: _Part) -> None:
        pieces = value.input_text_delta or value.args_text_delta
        whole = value.args if value.input is None else value.input
        self.tool(
            index=None,
            id=value.tool_call_id,
            name=value.tool_name,
            arguments=whole if pieces is None else pieces,
        )

    def _file(self, value: _Part) -> None:
        mime = value.media_type or value.mime_type or ""
        url = value.url or f"data:{mime};base64,{value.data}"
        if mime.startswith(("image/", "video/")):
            self.media(media_of(url, "video" if mime.startswith("video/") else "image"))


def recognises(value: dict[str, Any]) -> bool:
    """UI messages begin with one of their types; lines are told by `wire.opening`."""
    return as_text(value.get("type")) in _TYPES


DIALECT = ChatDialect(
    "ai_sdk_stream",
    msgspec.json.Decoder(_Part).decode,
    EventReader,
    Decoder,
    build_openai,
    read_error_body,
    recognises,
)
