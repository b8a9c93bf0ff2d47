"""Runs a capture through the pure line, a line at a time: what departs where, and what comes of each frame."""

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any

from trunkline.core.chat import ChatRequest
from trunkline.core.events import (
    Event,
    Failed,
    Finished,
    MediaReady,
    ReasoningDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    UsageReported,
)
from trunkline.core.notes import Departure, Notes
from trunkline.core.rules import RULES
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.ingress.openai_chat import ChunkEncoder, usage_members
from trunkline.inspection.clients import judge
from trunkline.inspection.media import media_in_text
from trunkline.inspection.paste import Capture, unwrap
from trunkline.inspection.paste.text import lines_of
from trunkline.inspection.report import Found, Report, Row
from trunkline.inspection.spec_reader import see
from trunkline.inspection.where import locate
from trunkline.pipeline import ChatLine
from trunkline.wire.aws_events import PRELUDE_BYTES, is_prelude
from trunkline.wire.frame import Frame

_LEFT_TO_CHECKS = ("usage_zero", "finish_missing")
"""What the checks of chunks see better: zeros alone in the last chunk are no fault, nor is a finish that came early."""
_OWN_WAYS = ("tool_arguments_object", "tool_index_missing", "tool_id_missing", "finish_for_tools", "finish_spelling")
"""How other languages than OpenAI's say it: that the answer is in one of them is told once."""
_REQUEST = re.compile(rb"\s*(?:curl\s+['\"-]|(?:await )?fetch\(|Invoke-WebRequest\b|(?:GET|POST) \S+ HTTP/[^<]*\Z)")
_RAW_BYTES = 4096
_BLANK = b" \t\r\n\x00"


def start_line(notes: Notes) -> ChatLine:
    """Make the line that a capture runs through: nobody says what was asked, nor of whom."""
    return ChatLine(CHAT_DIALECTS["openai_chat"], notes, n=None, salt="capture")


def finish_line(line: ChatLine, capture: Capture) -> list[Event]:
    """Say to the line that the capture is at its end."""
    data = capture.data
    whole = data.lstrip()[:1] == b"{" and data.count(b'"chat.completion"') == 1
    return line.close("the upstream's connection broke" if capture.broken else "", whole=whole)


def read_events(capture: Capture) -> list[Event]:
    """Run a capture through the line, for its events alone."""
    line, inline = start_line(Notes()), InlineMedia()
    events = line.feed(capture.data)
    return inline.feed(events + finish_line(line, capture))


def examine(data: bytes) -> Report:
    """Say everything that there is to say about a capture, as it was pasted. Never raises."""
    return examine_capture(unwrap(data), data)


def examine_capture(capture: Capture, given: bytes) -> Report:
    """Do so for a capture whose wrappings are off; `given` is the file that places are told in."""
    run = _Run(capture)
    run.read()
    report = Report(dialect=run.line.dialect.name, wrappings=capture.wrappings, data=capture.data)
    report.departures = run.places(given)
    if all(RULES[each.rule].severity == "harmless" for each in report.departures):
        report.departures = []  # a clean stream is told to be clean
    report.rows = run.rows(report.departures, given)
    _tell(report, [event for events in run.events for event in events])
    if report.error is not None and _REQUEST.match(given):
        report.error = report.error[0], "this is a request, as browsers copy it; what can be read is its answer"
    told = {medium["url"] for medium in run.media}
    report.media = run.media + [medium for medium in media_in_text(report.text) if medium["url"] not in told]
    report.clients = judge(report, run.seen, capture.head.status if capture.head else 200)
    return report


class _Inline(InlineMedia):
    """Keeps the media that it writes into the text."""

    def __init__(self) -> None:
        super().__init__()
        self.media: list[dict[str, str]] = []

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the line's next events."""
        shown = (event.media for event in events if isinstance(event, MediaReady) and event.media.url)
        self.media += [{"type": medium.kind, "url": medium.url} for medium in shown]
        return super().feed(events)


class _Run:
    """One capture on its way. A span is the place of a frame's bytes; `events` are what came of it."""

    def __init__(self, capture: Capture) -> None:
        self.line = start_line(Notes(thorough=True))
        self.events: list[list[Event]] = []
        self.media: list[dict[str, str]] = []
        self.seen = see(capture.data)
        self._capture = capture
        self._data = capture.data
        self._lines = _units(capture.data)
        self._spans: list[tuple[int, int]] = []
        self._noticed: list[tuple[Departure, int]] = []  # with its frame, -1: not known

    def read(self) -> None:
        """Read the capture to its end."""
        inline = _Inline()
        for number, (start, _, end) in enumerate(self._lines, 1):
            noted = len(self.line.notes.departures)
            self._cut(inline.feed(self.line.feed(self._data[start:end])), end)
            self._note(noted, number)
        noted = len(self.line.notes.departures)
        self._cut(inline.feed(finish_line(self.line, self._capture)), len(self._data), last=True)
        self._note(noted, 0)
        self.media = inline.media
        alone = sorted(self.seen.alone + self.seen.alone_events)
        self._noticed += [(Departure("field_alone", number, ""), -1) for number in alone]

    def _frames(self) -> list[Frame]:
        checks = self.line.checks
        return checks.frames if checks else []

    def _cut(self, events: list[Event], end: int, *, last: bool = False) -> None:
        """Find the bytes of the frames that have become whole, up to `end`."""
        frames = self._frames()
        for index in range(len(self._spans), len(frames)):
            following = frames[index + 1] if index + 1 < len(frames) else None
            self._spans.append(self._span(frames[index], following, end))
            self.events.append([] if following else events)
            events = events if following else []
        if events and (last or not self.events):
            self._spans.append((len(self._data), len(self._data)) if last else (0, 0))
            self.events.append(events)
        elif events:
            self.events[-1] = self.events[-1] + events

    def _span(self, frame: Frame, following: Frame | None, end: int) -> tuple[int, int]:
        begin = self._spans[-1][1] if self._spans else 0
        if following is not None and following.line > frame.line > 0:
            end = self._lines[min(following.line, len(self._lines)) - 1][0]
        elif following is not None:
            found = self._data.find(bytes(frame.data), begin, end) if frame.data else -1
            end = found + len(frame.data) if found >= 0 else begin
        text = self._data[begin:end]
        begin += len(text) - len(text.lstrip(_BLANK))
        return begin, max(begin, end - len(text) + len(text.rstrip(_BLANK)))

    def _note(self, since: int, number: int) -> None:
        """Keep what was noted of a line; what the checks have seen with its frame is not said twice."""
        checks, departures = self.line.checks, self.line.notes.departures
        own = checks.noted if checks else {}
        left = _LEFT_TO_CHECKS if self.line.dialect.name == "openai_chat" else _OWN_WAYS
        seen = {departures[index].rule for index in range(since, len(departures)) if index in own}
        for index in range(since, len(departures)):
            found = departures[index]
            if index in own:
                self._noticed.append((found, own[index]))
            elif found.rule not in seen and found.rule not in left:
                self._noticed.append((Departure(found.rule, found.line or number, found.message), -1))

    def places(self, given: bytes) -> list[Found]:
        """Give the departures with their places, in the order of the stream."""
        starts = self._starts(given)
        row_starts = array("q", [start for start, _ in self._spans])
        found = []
        for departure, frame in self._noticed:
            begin, end = self._region(departure.line, frame, row_starts)
            offset, length = locate(departure.rule, departure.message, self._data[begin:end])
            place = begin + offset
            origin = self._capture.origin(place)
            found.append(
                Found(
                    line=max(1, bisect_right(starts, origin)),
                    offset=origin,
                    length=self._capture.origin(place + length) - origin if length else 0,
                    rule=departure.rule,
                    detail=departure.message,
                    place=place,
                    size=length,
                )
            )
        return sorted(found, key=lambda each: each.place)

    def _starts(self, given: bytes) -> Sequence[int]:
        """Give where the lines of the file begin; messages are the lines of binary framing."""
        binary = given is self._data and is_prelude(given[:PRELUDE_BYTES])
        return array("q", [start for start, _, _ in (self._lines if binary else lines_of(given))])

    def _region(self, line: int, frame: int, row_starts: Sequence[int]) -> tuple[int, int]:
        """Give the bytes that a departure is about: of a line and of the frame in it, or the stream's end."""
        if not 0 < line <= len(self._lines):
            return len(self._data), len(self._data)
        begin, end, _ = self._lines[line - 1]
        begin += len(self._data[begin:end]) - len(self._data[begin:end].lstrip(_BLANK))
        if frame < 0:
            row = bisect_right(row_starts, begin) - 1
            return begin, max(end, self._spans[row][1]) if row >= 0 else end
        return max(begin, self._spans[frame][0]), self._spans[frame][1]

    def rows(self, departures: list[Found], given: bytes) -> list[Row]:
        """Give the frames with what departs in them and what the client gets of them."""
        starts = self._starts(given)
        rows = [self._row(*span) for span in self._spans]
        if not rows or rows[-1].raw:
            rows.append(self._row(len(self._data), len(self._data)))
            self.events.append([])
        ends = array("q", [end for _, end in self._spans])
        for index, found in enumerate(departures):
            row = bisect_left(ends, found.place + min(found.size, 1))
            rows[min(row, len(rows) - 1)].departures.append(index)
        events = [event for each in self.events for event in each]
        started = next((event for event in events if isinstance(event, Started)), Started())
        counted = any(isinstance(event, UsageReported) for event in events)
        request = ChatRequest(started.model or "unknown", {}, stream=True, include_usage=counted)
        encoder = ChunkEncoder(request, id=started.id or "chatcmpl-capture", created=started.created)
        for each, came in zip(rows, self.events, strict=True):
            each.line = max(1, bisect_right(starts, each.offset))
            text = b"".join(encoder.encode(came)).decode()
            each.chunks = [chunk.removeprefix("data: ") for chunk in text.split("\n\n") if chunk]
        return rows

    def _row(self, begin: int, end: int) -> Row:
        origin = self._capture.origin
        reads = self._capture.reads
        read = bisect_left(reads, end, key=lambda read: read[1])
        at_s = reads[min(read, len(reads) - 1)][0] if reads else None
        return Row(
            t_ms=None if at_s is None else round(at_s * 1000, 1),
            line=0,
            offset=origin(begin),
            end=origin(end),
            raw=self._data[begin : min(end, begin + _RAW_BYTES)].decode("utf-8", "replace"),
        )


def _units(data: bytes) -> list[tuple[int, int, int]]:
    """Give start, end of text and next start of each line, or of each message of a binary stream."""
    if not is_prelude(data[:PRELUDE_BYTES]):
        return list(lines_of(data))
    units, start = [], 0
    while start < len(data):
        known = is_prelude(data[start : start + PRELUDE_BYTES])
        end = min(start + int.from_bytes(data[start : start + 4], "big"), len(data)) if known else len(data)
        units.append((start, end, end))
        start = end
    return units


def _tell(report: Report, events: list[Event]) -> None:
    """Put together what the stream says."""
    report.events = len(events)
    calls: dict[tuple[int, int], dict[str, Any]] = {}
    for event in events:
        if isinstance(event, TextDelta) and event.choice == 0:
            report.text += event.text
        elif isinstance(event, ReasoningDelta) and event.choice == 0:
            report.reasoning += event.text
        elif isinstance(event, ToolCallStarted):
            calls[event.choice, event.call] = {
                "index": event.call, "id": event.id, "name": event.name, "arguments": "",
            }  # fmt: skip
        elif isinstance(event, ToolCallDelta):
            calls[event.choice, event.call]["arguments"] += event.arguments
        elif isinstance(event, Finished) and event.choice == 0:
            report.finish_reason = event.reason
        elif isinstance(event, UsageReported):
            report.usage = usage_members(event.usage)
        elif isinstance(event, Failed):
            report.error = event.code, event.message
    report.tool_calls = list(calls.values())
