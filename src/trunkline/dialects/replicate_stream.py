"""Replicate's streams of predictions (wire.md section 8): events whose data are plain text.

Read where an upstream answers so; requests are OpenAI's, for a prediction has to be begun by another call.
"""

from typing import Any

import msgspec
from msgspec import Struct

from trunkline.core.dialect import ChatDialect
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Event
from trunkline.core.notes import Notes
from trunkline.wire.answer import AnswerDecoder
from trunkline.wire.error_body import read_error_body
from trunkline.wire.frame import ERROR_EVENTS, Frame, Parse
from trunkline.wire.loose import read_loose
from trunkline.wire.openai_request import build_openai
from trunkline.wire.plain_lines import TextEventReader
from trunkline.wire.read import as_dict, as_text

_BROKEN = ("error", "canceled")


class _Nothing(Struct):
    """There are no objects in this language."""


class Decoder(AnswerDecoder[_Nothing]):
    """Events `output`, `error` and `done` → events."""

    kind = _Nothing

    def feed(self, frames: list[Frame]) -> list[Event]:
        """Read the next frames: of those that are text, the name says what they are."""
        out: list[Event] = []
        for frame in frames:
            if frame.kind != "text" or frame.event in ERROR_EVENTS:
                out += super().feed([frame])
            elif not self.failed and not self.ended:
                self.line = frame.line
                if frame.event == "output":
                    self.start()
                    self.text(bytes(frame.data).decode("utf-8", "replace"))
                elif frame.event == "done":
                    self._done(frame)
                out += self._take()
        return out

    def read(self, value: _Nothing) -> bool:  # noqa: ARG002 - there is nothing to read
        """Read no object."""
        return False

    def _done(self, frame: Frame) -> None:
        reason = as_text(as_dict(read_loose(frame.data, Notes())).get("reason"))
        if reason in _BROKEN:
            self.fail(UpstreamError("upstream_error", f"the upstream ended the answer with {reason!r}", 502))
            return
        self.finish("stop")
        self.end()


def recognises(_value: dict[str, Any]) -> bool:
    """Look at no object: `wire.opening` tells this language by its first line."""
    return False


def _reader(parse: Parse, notes: Notes) -> TextEventReader:
    return TextEventReader(parse, notes)


DIALECT = ChatDialect(
    "replicate_stream",
    msgspec.json.Decoder(_Nothing).decode,
    _reader,
    Decoder,
    build_openai,
    read_error_body,
    recognises,
)
