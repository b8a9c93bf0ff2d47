"""Pictures that come as a stream of OpenAI's events: partial pictures, then a finished one (wire.md section 2.1)."""

from typing import Any

import msgspec

from trunkline.core.dialect import Ready, Refused, Working
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Usage
from trunkline.core.media import Media
from trunkline.core.notes import Notes
from trunkline.wire.frame import Frame
from trunkline.wire.loose import read_loose
from trunkline.wire.media_answer import Answer, broken_off, failed, medium, nothing, usage_of
from trunkline.wire.read import as_count, as_dict, as_list, as_text
from trunkline.wire.reader import EventReader

Saying = Working | Ready | Refused


class _Event(Answer):
    type: Any = None
    b64_json: Any = None
    url: Any = None
    data: Any = None
    usage: Any = None
    partial_image_index: Any = None


_parse = msgspec.json.Decoder(_Event).decode


class ImageEvents:
    """Reads one answer. The first finished picture ends it: streams are asked for one picture at a time."""

    def __init__(self) -> None:
        self._reader = EventReader(_parse, Notes())
        self._over = False
        self._page = b""

    def feed(self, data: bytes) -> list[Saying]:
        """Read the next bytes."""
        return self._said(self._reader.feed(data))

    def close(self) -> list[Ready | Refused]:
        """Say how it ended, if that was not said yet."""
        said: list[Ready | Refused] = [one for one in self._said(self._reader.close()) if not isinstance(one, Working)]
        if self._over:
            return said
        self._over = True
        return [broken_off(self._page)]

    def _said(self, frames: list[Frame]) -> list[Saying]:
        out: list[Saying] = []
        for frame in frames:
            if self._over:
                break
            if frame.kind == "json":
                event = frame.value or _Event(error=as_dict(read_loose(frame.data, Notes())).get("error"))
                said = self._event(event, frame)
                if said is not None:
                    out.append(said)
                    self._over = not isinstance(said, Working)
            elif frame.kind == "text":
                self._page = self._page or bytes(frame.data)
            elif frame.kind == "too_large":
                self._over = True
                why = "the upstream sent a picture that is too large"
                out.append(Refused(UpstreamError("upstream_malformed", why, 502)))
        return out

    def _event(self, event: _Event, frame: Frame) -> Saying | None:
        kind = as_text(event.type) or frame.event
        if event.error or kind == "error":
            return failed(event, "the upstream reported an error")
        usage = usage_of(event.usage)
        if kind.endswith("partial_image"):
            picture = _picture(event)
            return (
                Working(text=f"sketch {as_count(event.partial_image_index) + 1}", partial=picture) if picture else None
            )
        if kind.endswith("completed"):
            picture = _picture(event)
            return Ready((picture,), usage) if picture else nothing("image")
        if event.data:
            return _whole(event, usage)
        return None


def _picture(event: _Event) -> Media | None:
    return medium({"b64_json": event.b64_json, "url": event.url}, "image")


def _whole(event: _Event, usage: Usage | None) -> Saying:
    """Read an answer that is no stream of events after all, but whole."""
    found = [media for item in as_list(event.data) if (media := medium(item, "image"))]
    return Ready(tuple(found), usage) if found else nothing("image")
