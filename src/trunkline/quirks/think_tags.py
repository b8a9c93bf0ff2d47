"""Reasoning that a model writes into its text: a leading `<think>…</think>` becomes reasoning."""

from trunkline.core.events import Ended, Event, Failed, Finished, ReasoningDelta, TextDelta
from trunkline.core.notes import Notes
from trunkline.core.quirk import Quirk

_TAGS = ("<think>", "<thinking>", "<reasoning>", "<thought>")
_LONGEST = max(map(len, _TAGS)) + 1


class _Text:
    """Where one choice is: before its first text, in its reasoning, behind it."""

    def __init__(self) -> None:
        self.held = ""
        self.close_tag = ""
        self.state = "start"

    def feed(self, text: str, choice: int) -> list[Event]:
        if self.state == "text":
            return [TextDelta(text, choice)]
        self.held += text
        if self.state == "start":
            return self._start(choice)
        return self._reason(choice)

    def close(self, choice: int) -> list[Event]:
        held, self.held = self.held, ""
        if not held:
            return []
        reasoning = self.state == "reasoning"
        self.state = "text"
        return [ReasoningDelta(held, choice) if reasoning else TextDelta(held, choice)]

    def _start(self, choice: int) -> list[Event]:
        bare = self.held.lstrip()
        for tag in _TAGS:
            if bare.startswith(tag):
                self.close_tag = f"</{tag[1:]}"
                self.held = bare[len(tag) :].lstrip("\n")
                self.state = "reasoning"
                return self._reason(choice)
        if not bare or any(tag.startswith(bare) for tag in _TAGS):
            return []
        return self.close(choice)

    def _reason(self, choice: int) -> list[Event]:
        end = self.held.find(self.close_tag)
        if end >= 0:
            reasoning, rest = self.held[:end], self.held[end + len(self.close_tag) :].lstrip("\n")
            self.state, self.held = "text", ""
            out: list[Event] = [ReasoningDelta(reasoning, choice)] if reasoning else []
            return [*out, TextDelta(rest, choice)] if rest else out
        keep = next(
            (n for n in range(min(_LONGEST, len(self.held)), 0, -1) if self.close_tag.startswith(self.held[-n:])), 0
        )
        ready = self.held[: len(self.held) - keep]
        self.held = self.held[len(self.held) - keep :]
        return [ReasoningDelta(ready, choice)] if ready else []


class ThinkTags:
    """Splits the leading block off each choice's text."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._texts: dict[int, _Text] = {}

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the decoder's next events."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                text = self._texts.setdefault(event.choice, _Text())
                if text.state == "text":
                    out.append(event)
                else:
                    out.extend(text.feed(event.text, event.choice))
            else:
                if isinstance(event, Finished | Ended | Failed):
                    out.extend(self.close())
                out.append(event)
        return out

    def close(self) -> list[Event]:
        """Give what was held back."""
        return [event for choice, text in self._texts.items() for event in text.close(choice)]


QUIRK = Quirk("think_tags", events=ThinkTags)
