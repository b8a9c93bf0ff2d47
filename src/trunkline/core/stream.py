"""The grammar that judges a stream of events, and the normaliser that makes every stream obey it."""

from msgspec import Struct

from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    FinishReason,
    MediaReady,
    Progress,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from trunkline.core.notes import Notes

Said = TextDelta | ReasoningDelta | RefusalDelta | ToolCallStarted | ToolCallDelta | MediaReady
"""What belongs to a choice before its finish."""
_SAID = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallStarted, ToolCallDelta, MediaReady)
ANSWERS = (*_SAID, Finished)
"""What shows that an answer has begun."""


class GrammarError(Exception):
    """A stream of events that is not legal."""


class Grammar:
    """Judges: `Started (said | progress | extras)* Finished+ UsageReported? Ended`, or `Failed` last at any time.

    Tool calls begin before their arguments, numbered 0, 1, 2 in their choice; a choice finishes once, then is silent.
    """

    def __init__(self) -> None:
        self._started = False
        self._over = False
        self._usage = False
        self._finished: dict[int, bool] = {}
        self._calls: dict[int, int] = {}

    def feed(self, event: Event) -> None:
        """Take the next event. Raises GrammarError when it may not come here."""
        if self._over:
            raise GrammarError(f"{event} after the end")
        if isinstance(event, Started):
            self._require(not self._started, "a second start")
            self._started = True
            return
        if isinstance(event, Failed):
            self._over = True
            return
        self._require(self._started, f"{event} before the start")
        if isinstance(event, _SAID):
            self._say(event)
        elif isinstance(event, Finished):
            self._require(not self._finished.get(event.choice), f"choice {event.choice} finishes twice")
            self._require(not self._usage, "a finish after usage")
            self._finished[event.choice] = True
        elif isinstance(event, UsageReported):
            self._require(not self._usage and self._all_finished(), "usage before the finish, or twice")
            self._usage = True
        elif isinstance(event, Ended):
            self._require(self._all_finished(), "an end without a finish")
            self._over = True
        elif isinstance(event, Extras | Progress):
            self._require(not self._usage, f"{event} after usage")

    def close(self) -> None:
        """Raise GrammarError unless the stream has ended."""
        self._require(self._over, "the stream has no end")

    def _say(self, event: Said) -> None:
        self._require(not self._finished.get(event.choice), f"{event} after its finish")
        self._finished.setdefault(event.choice, False)
        calls = self._calls.get(event.choice, 0)
        if isinstance(event, ToolCallStarted):
            self._require(event.call == calls and event.id != "", f"{event} out of order")
            self._calls[event.choice] = calls + 1
        elif isinstance(event, ToolCallDelta):
            self._require(event.call < calls, f"{event} of a call that did not begin")

    def _all_finished(self) -> bool:
        return bool(self._finished) and all(self._finished.values())

    @staticmethod
    def _require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as an assertion
        if not holds:
            raise GrammarError(message)


class _Choice(Struct, eq=False):
    finish: FinishReason | None = None
    early: FinishReason | None = None
    calls: int = 0


class Normaliser:
    """Whatever goes in, what comes out satisfies the Grammar; each repair is noted by name. Never raises.

    Finishes and usage are held until the end: providers say `stop` early, twice, or before their last words.
    """

    def __init__(self, notes: Notes, *, ends_open: bool = False) -> None:
        self._notes = notes
        self._ends_open = ends_open
        self._choices: list[_Choice] = []
        self._started = False
        self._usage: UsageReported | None = None
        self.marked = False
        """Whether the upstream has said that the stream is complete."""
        self.over = False
        """Whether the last event, `Ended` or `Failed`, has been given."""
        self.finished = False
        """Whether the answer is whole, and only numbers may follow: it is marked, or all choices have a finish."""
        self.speaking = False
        """Whether the first choice has begun and may go on: then a piece of its text passes as it is."""

    @property
    def held_usage(self) -> Usage | None:
        """The last usage that was read: an answer that is cut never gives it."""
        return self._usage.usage if self._usage else None

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the decoder's events; give those that are certain."""
        out: list[Event] = []
        choices, plain = self._choices, True
        for event in events:
            if type(event) is TextDelta and not self.over:
                index = event.choice
                if index < len(choices) and choices[index].finish is None:
                    out.append(event)
                    continue
            plain = False
            self._take(event, out)
        if not plain:
            self.finished = self.marked or (bool(choices) and all(choice.finish for choice in choices))
            self.speaking = bool(choices) and choices[0].finish is None and not (self.marked or self.over)
        return out

    def close(self, broken: str = "", *, whole: bool = False) -> list[Event]:
        """Say that the upstream's bytes are at their end.

        `broken` says how the connection broke, if it did; `whole` that the body was complete by its own length or
        shape (an unstreamed answer), so that a missing finish is no cut.
        """
        out: list[Event] = []
        if self.over:
            return out
        if self.finished:
            if not self.marked and not whole:
                self._notes.add("done_missing")
            self._end(out)
        elif not self._choices:
            self._fail(out, broken or "the upstream ended without an answer")
        elif not broken and (whole or self._ends_open):
            self._end(out)
        else:
            self._fail(out, broken or "the upstream's answer ends before its end")
        return out

    def _take(self, event: Event, out: list[Event]) -> None:
        if self.over:
            return
        if type(event) in _SAID:
            self._say(event, out)  # type: ignore[arg-type]
        elif type(event) is Started:
            self._start(event, out)
        elif type(event) is Finished:
            self._finish(event, out)
        elif type(event) is UsageReported:
            if self._usage is not None:
                self._notes.add("usage_repeated")
                event = UsageReported(event.usage.after(self._usage.usage))
            self._usage = event
        elif type(event) is Ended:
            self.marked = True
        elif type(event) is Failed:
            self.over = True
            out.append(event)
        else:
            self._begin(out)
            out.append(event)

    def _start(self, event: Started, out: list[Event]) -> None:
        if not self._started:
            self._started = True
            out.append(event)

    def _begin(self, out: list[Event]) -> None:
        if not self._started:
            self._notes.add("start_missing")
            self._start(Started(), out)

    def _choice(self, index: int) -> _Choice:
        while len(self._choices) <= index:
            self._choices.append(_Choice())
        return self._choices[index]

    def _say(self, event: Said, out: list[Event]) -> None:
        self._begin(out)
        choice = self._choice(event.choice)
        if choice.finish is not None and not isinstance(event, MediaReady):
            if not (isinstance(event, ToolCallDelta) and event.arguments == "{}"):  # what a call without any gets last
                self._notes.add("delta_after_finish")
            choice.early, choice.finish = choice.finish, None
        if isinstance(event, ToolCallStarted):
            if event.call != choice.calls:
                self._notes.add("tool_call_restarted")
                return
            choice.calls += 1
        elif isinstance(event, ToolCallDelta) and event.call >= choice.calls:
            self._notes.add("tool_call_unannounced")
            return
        out.append(event)

    def _finish(self, event: Finished, out: list[Event]) -> None:
        self._begin(out)
        choice = self._choice(event.choice)
        if choice.finish is not None:
            self._notes.add("finish_repeated")
        if choice.finish in {None, "stop"}:  # what is said for want of anything better
            choice.finish = event.reason

    def _end(self, out: list[Event]) -> None:
        if not self._choices and not self._started:
            self._fail(out, "the upstream ended without an answer")
            return
        self._choice(0)  # a complete answer may say nothing
        self.over = True
        self._begin(out)
        for index, choice in enumerate(self._choices):
            if choice.finish is None:
                self._notes.add("finish_missing")
                early = choice.early or "stop"
                choice.finish = "tool_calls" if choice.calls and early == "stop" else early
            out.append(Finished(choice.finish, index))
        if self._usage is not None:
            out.append(self._usage)
        out.append(Ended())

    def _fail(self, out: list[Event], message: str) -> None:
        self.over = True
        self._notes.add("upstream_incomplete", 0, message)
        out.append(Failed("upstream_incomplete", message))
