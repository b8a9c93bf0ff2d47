"""Reasoning tokens that are counted beside the completion, not within it: they are added, as OpenAI counts them."""

from msgspec.structs import replace

from trunkline.core.events import Event, UsageReported
from trunkline.core.notes import Notes
from trunkline.core.quirk import Quirk


class ReasoningOutsideTotal:
    """Adds reasoning to the completion where prompt and completion alone do not make the total."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the decoder's next events."""
        return [self._counted(event) if isinstance(event, UsageReported) else event for event in events]

    def close(self) -> list[Event]:
        """Give what was held back: nothing ever is."""
        return []

    def _counted(self, event: UsageReported) -> UsageReported:
        usage = event.usage
        if usage.total_tokens != usage.prompt_tokens + usage.completion_tokens + usage.reasoning_tokens:
            return event
        if not usage.reasoning_tokens:
            return event
        self._notes.add("usage_odd")
        return UsageReported(replace(usage, completion_tokens=usage.completion_tokens + usage.reasoning_tokens))


QUIRK = Quirk("reasoning_outside_total", events=ReasoningOutsideTotal)
