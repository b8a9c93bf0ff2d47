"""The pure line: bytes of an upstream in, legal events out; no I/O, clock or randomness."""

from collections.abc import Iterable

from msgspec import Raw

from trunkline.core.dialect import ChatDialect, Decoder, Lone, Said
from trunkline.core.events import Ended, Event, Failed, TextDelta, Usage, UsageReported
from trunkline.core.notes import Notes
from trunkline.core.quirk import EventFilter
from trunkline.core.stream import Normaliser
from trunkline.dialects import CHAT_DIALECTS, recognise
from trunkline.quirks import QUIRKS
from trunkline.wire.aws_events import AwsEventReader
from trunkline.wire.chunk_checks import ChunkChecks
from trunkline.wire.error_body import plain_words
from trunkline.wire.frame import UNREADABLE, Frame, Reader
from trunkline.wire.loose import read_loose
from trunkline.wire.openai_chunk import Chunk
from trunkline.wire.opening import lead, opening
from trunkline.wire.plain_lines import CodedLineReader, TextEventReader
from trunkline.wire.read import as_dict

_SHOWN_CHARS = 200
_LARGE = 1024 * 1024
_ENDS = ("too_large", "array_end")


class ChatLine:
    """One answer's way from bytes to events: reader → decoder → quirks → normaliser.

    `n` is the number of choices that were asked for, None when nobody knows; `salt` goes into ids that are made up.
    The events obey `core.stream.Grammar`; the last is `Ended` or `Failed`. Never raises.
    """

    def __init__(
        self, dialect: ChatDialect, notes: Notes, *, quirks: Iterable[str] = (), n: int | None = 1, salt: str = ""
    ) -> None:
        self.notes = notes
        self.dialect = dialect
        self.comments = 0
        """Comments seen so far: the upstream is alive and has nothing to say."""
        self.ending = False
        """Whether the answer is whole, or the last event has been given."""
        self._n = n
        self._salt = salt
        self._reader: Reader | None = None  # an answer that comes whole needs none
        self._fresh = True
        self._array = False  # the whole body is one
        self._certain = False
        self._short: Lone | None = None
        self._lone: Lone | None = None  # the same, while the answer is one that it can read on
        self._head = b""
        self._unread = ""
        self._frames = 0
        self._decoder = dialect.decoder(notes, n, salt)
        self._filters: tuple[EventFilter, ...] = ()
        if quirks:
            self._filters = tuple(each(notes) for name in quirks if (each := QUIRKS[name].events) is not None)
        self._normaliser = Normaliser(notes, ends_open=dialect.ends_open)
        self.checks = ChunkChecks(notes) if notes.thorough else None
        """Sees every frame, for who wants to read the departures one by one."""

    @property
    def over(self) -> bool:
        """Whether the last event has been given."""
        return self._normaliser.over

    @property
    def finished(self) -> bool:
        """Whether the answer is whole and only numbers may follow."""
        return self._normaliser.finished

    @property
    def marked(self) -> bool:
        """Whether the end mark has come."""
        return self._normaliser.marked

    def offer(self, tools: Raw | None) -> None:
        """Say which `tools` the request has: a call of one of them is told as soon as it is named."""
        self._decoder.tools = tools

    def held_usage(self) -> Usage | None:
        """Give the last usage that was read of an answer that was cut; nothing may be fed any more."""
        told = [] if self.over else [event for event in self._decoder.close() if isinstance(event, UsageReported)]
        return told[-1].usage if told else self._normaliser.held_usage

    def lone(self, data: bytes) -> Said | None:
        """Take the next bytes if they are a chunk like those before it, as nearly all are that come slowly."""
        lone = self._lone
        if lone is None:
            return None
        said = lone(data)
        if said is not None:
            self._frames = 2  # or more
        return said

    def feed(self, data: bytes, *, lone: bool = True) -> list[Event]:
        """Take the next bytes, cut anywhere; `lone`: which may be one chunk."""
        said = self.lone(data) if lone else None
        if said is not None:
            return [TextDelta(said)] if isinstance(said, str) else said
        reader = self._reader
        frames = self._open(data) if self._fresh or reader is None else reader.feed(data)
        return self._run(frames) if frames else []

    def close(self, broken: str = "", *, whole: bool = False, labelled: bool = False) -> list[Event]:
        """Say that no more bytes come; see `Normaliser.close`. `labelled`: as one JSON value, which then is whole."""
        self._lone = None
        head, self._head = self._head, b""
        frames = self._reading().feed(head) if head else []
        if self._reader is not None:
            frames += self._reader.close()
        events = self._run(frames) if frames else []
        if self.checks is not None:
            self.checks.close()
        if self.over:
            return events
        bare = self._frames == 1 and "data_prefix_missing" in self.notes.counts  # no event stream under a wrong label
        whole = whole or (labelled and bare)
        ends = whole and self._certain and not (broken or self.finished)
        told = self._decoder.feed([Frame("done")]) if ends else []
        events += self._normaliser.feed(self._filtered(told + self._decoder.close(), last=True))
        if self._unread and not self._certain and not broken:
            broken = f"the upstream's answer is no chat answer: {self._unread}"
        return events + self._normaliser.close(broken, whole=whole)

    def whole(self, body: bytes) -> list[Event]:
        """Read an answer that was asked for unstreamed and has come to its end, as no `ChatDialect.whole` reads it."""
        try:
            value = self.dialect.parse(body)
        except UNREADABLE:
            loose = read_loose(body, Notes())
            if type(loose) is not dict:  # a stream was not asked for, but may have come, and may be cut
                return self.feed(body) + self.close(whole=loose is not None)
            value = None
        events = self._run([Frame("json", body, value, "", 1)])
        return events + self.close(whole=True)

    def fail(self, failed: Failed) -> list[Event]:
        """End the stream with a failure that is not the bytes' own, such as a time limit."""
        self._lone = None
        return self._normaliser.feed([failed])

    def _reading(self) -> Reader:
        if self._reader is None:
            self._reader = self.dialect.reader(self.dialect.parse, self.notes)
        return self._reader

    def _open(self, data: bytes) -> list[Frame]:
        """Read the first bytes: framings that are no JSON events are told by them."""
        data = self._head + data
        at = lead(data)
        frames = self._reading().feed(data[:at]) if at else []
        framing = opening(data[at:])
        if framing is None:
            self._head = data[at:]
            return frames
        self._fresh, self._head = False, b""
        self._array = data[at : at + 64].lstrip()[:1] == b"["
        line = self._reading().line
        if framing == "aws":
            self._reader = AwsEventReader(self.dialect.parse, self.notes)
        elif framing == "texts":
            self._arrive("replicate_stream", line)
            self._reader = TextEventReader(self.dialect.parse, self.notes, line)
        elif framing == "codes":
            self._arrive("ai_sdk_stream", line)
            self._reader = CodedLineReader(self.dialect.parse, self.notes, line)
        return frames + self._reading().feed(data[at:])

    def _arrive(self, name: str, line: int) -> None:
        """Read on in the dialect that the framing tells."""
        if self.dialect.name != name:
            dialect = CHAT_DIALECTS[name]
            self._switch(dialect, self._decoder_of(dialect), line)
        self._certain = True

    def _run(self, frames: list[Frame]) -> list[Event]:
        self._frames += len(frames)
        if self.checks is not None:
            self.checks.feed(frames)
        events = self._decoder.feed(frames) if self._certain else self._begin(frames)
        if self._filters:
            events = self._filtered(events)
        out = self._normaliser.feed(events)
        if frames and (last := frames[-1].kind) in _ENDS and not self.over:
            if last == "too_large":
                told = "the upstream sent an event that is too large"
                out += self._normaliser.feed([Failed("upstream_malformed", told)])
            elif self._array:
                self._frames -= 1  # it says nothing
                if self._normaliser.finished:
                    self._normaliser.feed([Ended()])
        self.ending = self._normaliser.finished or self._normaliser.over
        self._lone = self._short if self._normaliser.speaking else None
        return out

    def _filtered(self, events: list[Event], *, last: bool = False) -> list[Event]:
        for each in self._filters:
            events = each.feed(events)
            if last:
                events += each.close()
        return events

    def _begin(self, frames: list[Frame]) -> list[Event]:
        """Read one frame at a time until it is certain what dialect the answer is in: until something is said."""
        for at, frame in enumerate(frames):
            other = self._look(frame)
            events = self._decoder.feed([frame]) if other is None else self._try(other, frame, frames[at + 1 :])
            if events:
                self._certain = True
                if self.dialect.lone is not None and self.checks is None and not self._filters:
                    self._short = self.dialect.lone(self._reader, self._decoder)
                return events + self._decoder.feed(frames[at + 1 :])
        return []

    def _look(self, frame: Frame) -> ChatDialect | None:
        """Count comments, keep words for a message, recognise another dialect."""
        if frame.kind == "comment":
            self.comments += 1
        elif frame.kind != "json":
            self._keep(frame)
        elif type(frame.value) is not Chunk or frame.value.choices is None:  # else the usual of the usual dialect
            return self._recognise(frame)
        return None

    def _recognise(self, frame: Frame) -> ChatDialect | None:
        """Tell by a frame in whose language it is; None where that is ours, or nobody's."""
        large = len(frame.data) > _LARGE
        if large:
            frame.value = None  # nothing large is held twice
        value = as_dict(read_loose(frame.data, Notes()))
        other = recognise(value, self.dialect.name) if value else None
        known = not value or other is not None or self.dialect.recognises(value)
        value.clear()
        if large and other is None:
            self._reading().use(self.dialect.parse, [frame])
        if not known:
            self._keep(frame)
        return other

    def _keep(self, frame: Frame) -> None:
        if frame.data and len(self._unread) < _SHOWN_CHARS:
            self._unread = f"{self._unread} {plain_words(bytes(frame.data[:_SHOWN_CHARS]))}".strip()

    def _try(self, dialect: ChatDialect, frame: Frame, rest: list[Frame]) -> list[Event]:
        """Read a frame in the dialect it is in, and go on in that one if it says something: a ping may be a relay's."""
        decoder = self._decoder_of(dialect)
        try:
            frame.value = dialect.parse(frame.data)
        except UNREADABLE:
            frame.value = None
        events = decoder.feed([frame])
        if events:
            self._switch(dialect, decoder, frame.line)
            self._reading().use(dialect.parse, rest)
        return events

    def _decoder_of(self, dialect: ChatDialect) -> Decoder:
        decoder = dialect.decoder(self.notes, self._n, self._salt)
        decoder.tools = self._decoder.tools
        return decoder

    def _switch(self, dialect: ChatDialect, decoder: Decoder, line: int) -> None:
        """Read on in the dialect that has arrived."""
        self.notes.add("dialect_recognised", line, dialect.name)
        self.dialect = dialect
        self._decoder = decoder
        self._normaliser = Normaliser(self.notes, ends_open=dialect.ends_open)
