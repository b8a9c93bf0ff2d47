"""Media in the answers of text models: what does not stand in the text is appended to it, once (contract section 7)."""

from trunkline.core.events import Event, MediaReady, TextDelta
from trunkline.wire.media_shapes import as_markdown


class InlineMedia:
    """Rewrites `MediaReady` as text; everything else passes. Nothing is downloaded, links stay the provider's."""

    def __init__(self) -> None:
        self.spoken: list[int] = []  # a set would be four times as large in every stream
        """The choices whose text has begun."""

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the line's next events; the same list comes back when there is no medium in it."""
        if MediaReady in map(type, events):
            return self._rewritten(events)
        spoken = self.spoken
        for choice in {event.choice for event in events if type(event) is TextDelta}:
            if choice not in spoken:
                spoken.append(choice)
        return events

    def _rewritten(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, MediaReady):
                if not event.media.in_text:
                    gap = "\n\n" if event.choice in self.spoken else ""
                    out.append(TextDelta(gap + as_markdown(event.media), event.choice))
            else:
                out.append(event)
            last = out[-1] if out else None
            if isinstance(last, TextDelta) and last.choice not in self.spoken:
                self.spoken.append(last.choice)
        return out
