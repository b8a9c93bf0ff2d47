"""Media in the answers of text models: what does not stand in the text is appended to it, once (contract section 7)."""

from trunkline.core.events import Event, MediaReady, TextDelta
from trunkline.wire.media_shapes import as_markdown


class InlineMedia:
    """Rewrites `MediaReady` as text; everything else passes. Nothing is downloaded, links stay the provider's."""

    def __init__(self) -> None:
        self._spoken: set[int] = set()

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the line's next events; the same list comes back when there is no medium in it."""
        spoken = self._spoken
        for event in events:
            if type(event) is MediaReady:
                return self._rewritten(events)
        if not spoken:
            for event in events:
                if type(event) is TextDelta:
                    spoken.add(event.choice)
        return events

    def _rewritten(self, events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            if isinstance(event, MediaReady):
                if not event.media.in_text:
                    gap = "\n\n" if event.choice in self._spoken else ""
                    out.append(TextDelta(gap + as_markdown(event.media), event.choice))
                    self._spoken.add(event.choice)
            else:
                if isinstance(event, TextDelta):
                    self._spoken.add(event.choice)
                out.append(event)
        return out
