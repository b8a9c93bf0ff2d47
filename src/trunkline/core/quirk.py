"""What a quirk is: one departure of a provider from its dialect, as pure functions."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msgspec import Raw

from trunkline.core.events import Event
from trunkline.core.notes import Notes


class EventFilter(Protocol):
    """Rewrites a stream's events; the result does not depend on where the text was cut."""

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the decoder's next events."""

    def close(self) -> list[Event]:
        """Give what was held back."""


class Quirk(NamedTuple):
    """Every module of `quirks/` exports one as `QUIRK`, under its own name."""

    name: str
    events: Callable[[Notes], EventFilter] | None = None
    request: Callable[[dict[str, Raw]], None] | None = None
    """Changes the members of a request body in place."""
    pictures: Callable[[dict[str, Raw], dict[str, Any]], None] | None = None
    """Tells in a chat request what a picture or film shall be like: the members of `ingress.picture_chat.words_of`."""
    streamed: bool = False
    """Answers are asked for as streams, whatever the client wants."""
