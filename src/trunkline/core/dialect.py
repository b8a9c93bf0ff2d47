"""What a dialect is: a wire language that providers speak, in chats or for pictures and films, as pure functions."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

from msgspec import Raw, Struct

from trunkline.core.chat import ChatRequest, Target, UpstreamRequest
from trunkline.core.errors import UpstreamError
from trunkline.core.events import Event, Usage
from trunkline.core.media import Media, MediaRequest
from trunkline.core.notes import Notes


class Decoder(Protocol):
    """Frames in, events out; one per stream. Never raises, whatever comes in."""

    tools: Raw | None
    """The request's `tools`, if it had any: a call of one of them is told by its name alone."""

    def feed(self, frames: list[Any]) -> list[Event]:
        """Read the next frames (`wire.frame.Frame`)."""

    def close(self) -> list[Event]:
        """Give what was held back; the upstream's bytes are at their end."""


Said = str | list[Event]
"""What a read says: events, or the text of choice 0 that is all of it."""
Lone = Callable[[bytes], Said | None]
"""What a read says, at one go; None: nothing was read, go the long way."""


class ChatDialect(NamedTuple):
    """One wire language. Every module of `dialects/` exports one as `DIALECT`, under its own name."""

    name: str
    parse: Callable[[Any], Any]
    """A frame's bytes → this dialect's typed value; raises msgspec.DecodeError."""
    reader: Callable[[Callable[[Any], Any], Notes], Any]
    """(parse, notes) → what cuts the upstream's bytes into frames."""
    decoder: Callable[[Notes, int | None, str], Decoder]
    """(notes, n of the request or None, salt for ids that the provider left out) → decoder."""
    build: Callable[[ChatRequest, Target], UpstreamRequest]
    """Path and body; no credentials. Raises GatewayError for what this dialect cannot say."""
    error: Callable[[int, bytes, str], UpstreamError]
    """(HTTP status, body, `retry-after`) → the error in our words."""
    recognises: Callable[[dict[str, Any]], bool]
    """Whether an answer's first JSON object is of this dialect (an upstream may be configured wrongly)."""
    whole: Callable[[bytes], list[Event] | None] | None = None
    """The events of a usual unstreamed answer, at one go and as the long way would give them; None: go the long way."""
    lone: Callable[[Any, Decoder], Lone | None] | None = None
    """(reader, decoder) → reads a chunk that comes alone and is like those before it, as the long way would."""
    ends_open: bool = False
    """Whether a stream of this dialect may end without a finish reason and an end mark."""


class Submitted(Struct, frozen=True):
    """The provider took the work on and will be polled."""

    task: str
    """Whatever `poll` and `cancel` need to name the work again; kept in the job, not read by anyone else. Not empty."""
    poll_after_s: float | None = None
    """When the provider wants to be asked, if it says so in the body (headers are read by the engine)."""


class Working(Struct, frozen=True):
    """The work goes on."""

    percent: float | None = None
    """0 … 100; None where the provider does not say."""
    text: str = ""
    """For a person, one line: `queued, 3 before you`."""
    poll_after_s: float | None = None
    task: str = ""
    """Not empty: go on polling with this in place of the former task (a queue's `response_url`)."""
    partial: Media | None = None
    """A picture as far as it is drawn, to be shown as progress."""


class Ready(Struct, frozen=True):
    """The work is done. An empty `media` is never Ready: it is Refused, and says why."""

    media: tuple[Media, ...]
    """In the provider's order; thought images and the like left out."""
    usage: Usage | None = None
    text: str = ""
    """What the model said beside its pictures."""


class Refused(Struct, frozen=True):
    """There will be no medium: an error answer, a failed task, a filtered result.

    `upstream_malformed` (an answer that cannot be read) is final for a submit; of a poll it is asked again.
    """

    error: UpstreamError


class MediaDecoder(Protocol):
    """Reads a submit's answer that is a stream (`text/event-stream`, NDJSON). Never raises."""

    def feed(self, data: bytes) -> Sequence[Working | Ready | Refused]:
        """Read the next bytes, cut anywhere. After `Ready` or `Refused` nothing more is said."""

    def close(self) -> Sequence[Ready | Refused]:
        """Say how it ended, if that was not said yet: a stream that breaks off is `Refused(upstream_incomplete)`."""


class MediaDialect(NamedTuple):
    """A wire language for pictures and films. All of it is pure: the job engine makes the requests.

    A provider that answers at once needs only `submit` and `submitted`. Answers come with any status and any bytes;
    none of the functions raises. The engine itself retries a poll that met 408, 425, 429 or 5xx, and one cut short.
    """

    name: str
    submit: Callable[[MediaRequest, Target, str], UpstreamRequest]
    """The str is the job's id (of one submit), to be sent as idempotency key where the provider knows one.

    Every `MediaInput` has its bytes or a public link. Raises GatewayError (`invalid_value`, naming the spelling) when
    the provider cannot take what is asked: called once before the job exists, so that it is a 400.
    """
    submitted: Callable[[int, bytes], Submitted | Ready | Refused]
    """Status and whole body of the answer to `submit`."""
    poll: Callable[[str, Target], UpstreamRequest] | None = None
    progress: Callable[[str, int, bytes], Working | Ready | Refused] | None = None
    """Task, status and whole body of the answer to `poll`; an empty body (202) is Working."""
    cancel: Callable[[str, Target], UpstreamRequest] | None = None
    """None: the provider knows no cancel; its work is left to end unseen."""
    stream: Callable[[], MediaDecoder] | None = None
    """One decoder an answer, when `submit` asks for a stream; read by it if a 2xx answer says that it is one."""
    takes_links: bool = False
    """The provider fetches pictures to go by itself; False: `submit` needs their bytes."""
    lacks: frozenset[str] = frozenset()
    """What a request has no place for: `mask`, `inputs`, or any of `ingress.media_fit.TELLING`. Who asks for it is told
    so before there is a job."""
    submit_is_idempotent: bool = False
    """The same id submitted twice makes, and bills, one piece of work: a submit may be repeated after a crash."""
