"""What the decoders of all languages but OpenAI's have in common: from typed objects to events."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Raw, Struct

from trunkline.core.errors import UpstreamError
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Progress,
    RefusalDelta,
    Started,
    ToolKind,
    Usage,
    UsageReported,
)
from trunkline.core.media import Media
from trunkline.core.notes import Notes
from trunkline.wire.error_body import is_error, is_error_text, read_error
from trunkline.wire.frame import ERROR_EVENTS, Frame
from trunkline.wire.loose import as_raw, paired, read_loose
from trunkline.wire.mend import mend
from trunkline.wire.openai_choice import ChoiceReader
from trunkline.wire.openai_chunk import Delta
from trunkline.wire.read import as_dict
from trunkline.wire.strays import Strays

S = TypeVar("S", bound=Struct)
C = TypeVar("C", bound="Numbered")
MAX_CHOICES = 128
_LARGE = 1024 * 1024


class Numbered(Protocol):
    """A choice with its index."""

    @property
    def index(self) -> int | None:
        """Its number, if it has one."""

    @property
    def reason(self) -> str:
        """Why it ended, if it has."""


class AnswerDecoder(ABC, Generic[S]):
    """Frames → events. A language says in `read` what one of its objects means; it calls the verbs below."""

    kind: ClassVar[type[Any]]
    """The Struct of an object; all members have defaults."""

    def __init__(self, notes: Notes, n: int | None, salt: str) -> None:
        self.notes = notes
        self.line = 0
        """The line of the object that is being read."""
        self.event = ""
        """The name of its event, if it has one."""
        self.tools: Raw | None = None
        self.ended = False
        self.failed = False
        self._n = n
        self._salt = salt
        self._out: list[Event] = []
        self._states: list[ChoiceReader] = []
        self._started = False
        self._strays: Strays[tuple[Any, Callable[[Any, int], None]]] | None = None  # made when there is one

    def feed(self, frames: list[Frame]) -> list[Event]:
        """Read the next frames."""
        for frame in frames:
            if self.failed:
                break
            if frame.kind == "json":
                self._object(frame)
            elif frame.kind == "done":
                self.end()
            elif frame.kind == "text" and not self.ended and (frame.event in ERROR_EVENTS or is_error_text(frame.data)):
                self.line = frame.line
                self.fail(read_error(bytes(frame.data).decode("utf-8", "replace")))
        return self._take()

    def close(self) -> list[Event]:
        """Give what was held back."""
        if self._strays is not None:
            self._as_first(self._strays.close())
        for state in self._states:
            state.fill(self._out)
            state.close(self._out)
        return self._take()

    @abstractmethod
    def read(self, value: S) -> bool:
        """Read one object; say whether it meant anything in this language."""

    def start(self, id: str | None = "", model: str | None = "", created: int = 0) -> None:  # noqa: A002 - the wire's
        """Begin the answer, if it has not begun."""
        if not self._started:
            self._started = True
            self._out.append(Started(id or "", (model or "").strip(), created))

    def text(self, text: str | None, choice: int = 0, logprobs: Any = None) -> None:
        """Say a piece of text."""
        if text:
            self.choice(choice).text(text, logprobs, self.line, self._out)

    def reasoning(self, text: str | None, choice: int = 0, details: list[dict[str, Any]] | None = None) -> None:
        """Say a piece of reasoning; `details` is the provider's own account, to be sent back in the next turn."""
        if text or details:
            self.choice(choice).reason(text or "", self.line, self._out, as_raw(details) if details else None)

    def choices(self, items: Sequence[C], read: Callable[[C, int], None]) -> None:
        """Read the choices of one object, each under its index, or its place where it has none."""
        for position, item in enumerate(items):
            index = position if item.index is None else item.index
            if 0 <= index < (MAX_CHOICES if self._n is None else self._n):
                read(item, index)
                continue
            self.notes.add("choice_index_wrong", self.line)
            strays = self._strays = self._strays or Strays(self._n or 1, self._states)
            if len(items) > 1:
                strays.drop()
            else:
                self._as_first(strays.take((item, read), index, finishes=item.reason != ""))

    def _as_first(self, strays: tuple[tuple[Any, Callable[[Any, int], None]], ...]) -> None:
        for item, read in strays:
            read(item, 0)

    def parts(self, parts: list[Any], choice: int = 0) -> None:
        """Say what parts of content say, such as OpenAI's."""
        self.choice(choice).parts(parts, self.line, self._out)

    def refusal(self, text: str | None) -> None:
        """Say a piece of a refusal."""
        if text:
            self._out.append(RefusalDelta(paired(text), self.choice(0).index))

    def progress(self, text: str) -> None:
        """Say that the work goes on."""
        self._out.append(Progress(text=paired(text)))

    def tool(  # noqa: PLR0913 - the members of one fragment
        self,
        *,
        index: int | None,
        id: str | None = "",  # noqa: A002 - the wire's name
        name: str | None = "",
        arguments: Any = None,
        choice: int = 0,
        kind: ToolKind = "function",
        extra: dict[str, Any] | None = None,
    ) -> None:
        """Say a fragment of a tool call, or a whole one; `index` None: a call of its own, unless the id is known."""
        state = self.choice(choice)
        state.calls.feed(
            self._out,
            index=index,
            id=id or "",
            name=name or "",
            arguments=arguments,
            line=self.line,
            kind=kind,
            extra={key: as_raw(value) for key, value in extra.items()} if extra else None,
        )

    def media(self, media: Media | None, choice: int = 0) -> None:
        """Say a picture or film."""
        self.choice(choice).media_ready(media, self._out, wait=False)

    def extras(self, fields: dict[str, Any], choice: int | None = None) -> None:
        """Keep members as they are."""
        self._out.append(Extras({name: as_raw(value) for name, value in fields.items()}, choice))

    def delta(self, delta: Delta, choice: int = 0) -> None:
        """Say what a delta of OpenAI's says."""
        self.choice(choice).delta(delta, None, self.line, self._out)

    def usage(self, usage: Usage | None) -> None:
        """Say what was counted; nothing but zeros is unknown."""
        if usage is not None and (usage.prompt_tokens or usage.completion_tokens or usage.total_tokens):
            self._out.append(UsageReported(usage))

    def finish(self, word: str | None, choice: int = 0, why: str = "") -> None:
        """Say why a choice ended, in the provider's own word."""
        error = self.choice(choice).finish(word or "", self.line, self._out, why)
        if error is not None:
            self.fail(error)

    def end(self) -> None:
        """Say that the answer is complete."""
        if self.ended or self.failed:
            return
        if self._strays is not None:
            self._as_first(self._strays.close())
        self.ended = True
        for state in self._states:
            error = state.end(self._out)
            if error is not None:
                self.fail(error)
                return
        self._out.append(Ended())

    def fail(self, error: UpstreamError) -> None:
        """Say that the answer is broken."""
        if not self.failed:
            self.failed = True
            self.notes.add("upstream_failed", self.line, error.message)
            for state in self._states:
                state.close(self._out)
            self._out.append(
                Failed(error.code, error.message, error.type, error.status, error.param, error.retry_after_s)
            )

    def choice(self, index: int) -> ChoiceReader:
        """Give what is remembered of a choice."""
        most = MAX_CHOICES if self._n is None else self._n
        if not 0 <= index < most:
            self.notes.add("choice_index_wrong", self.line)
            index = 0
        states = self._states
        while len(states) <= index:
            states.append(ChoiceReader(len(states), self._salt, self.notes, self.tools))
        return states[index]

    def _object(self, frame: Frame) -> None:
        if self.ended:
            self.notes.add("data_after_done", frame.line)
            return
        self.line, self.event = frame.line, frame.event
        value = frame.value
        if value is None:
            value = mend(read_loose(frame.data, self.notes, frame.line), self.kind)
        elif len(frame.data) > _LARGE and not self.notes.thorough:
            frame.data = b""  # a picture in it is not held once more
        if value is not None and frame.event not in ERROR_EVENTS and self.read(value):
            return
        whole = as_dict(read_loose(frame.data, Notes()))
        if frame.event in ERROR_EVENTS or is_error(whole):
            self.fail(read_error(whole))
        elif whole:
            self.notes.add("member_dropped", frame.line)

    def _take(self) -> list[Event]:
        out, self._out = self._out, []
        return out
