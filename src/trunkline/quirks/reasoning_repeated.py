"""Reasoning deltas that come twice in a row: the second is left out (wire.md section 5.1)."""

from trunkline.core.events import Event, ReasoningDelta
from trunkline.core.notes import Notes
from trunkline.core.quirk import Quirk


class ReasoningRepeated:
    """Drops a reasoning delta that equals the one just before it."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._last: Event | None = None

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the decoder's next events."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, ReasoningDelta) and event == self._last:
                self._notes.add("reasoning_repeated")
            else:
                out.append(event)
                self._last = event
        return out

    def close(self) -> list[Event]:
        """Give what was held back: nothing ever is."""
        return []


QUIRK = Quirk("reasoning_repeated", events=ReasoningRepeated)
