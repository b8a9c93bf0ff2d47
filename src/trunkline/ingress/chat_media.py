"""Answers of image and video models over chat: words, media and progress told apart (wire.md section 9, L2)."""

import re
from collections.abc import Iterator

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
    UsageReported,
)
from trunkline.core.media import Media
from trunkline.core.provider import ModelKind
from trunkline.wire.media_text import read_media_text

LONGEST_CHARS = 192 << 20
"""An answer's text, with the pictures in it."""
LONGEST_LINE = 200
TOO_LONG = "-" * (LONGEST_LINE + 1)
"""Stands for the beginning of a line that is none of progress."""
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,4})?)\s?[%％]")
_PROGRESS = re.compile(
    r"(?:>|⌛|⏳|🏃|🔥|🕐|🎨|🖌)|(?:generating|processing|queued|queueing|in queue|waiting|drawing|rendering|progress|"
    r"生成中|正在生成|排队|进度|任务|处理中)[^.!?。\n]{0,120}(?:[.…]{0,6}|\([^)\n]{0,60}\))\s*\Z",
    re.IGNORECASE,
)
_MARK_UP = frozenset(("", *'[`{}"<|!'))
"""What lines begin with that say nothing to a person."""
_FAILURE = re.compile(r"❌|\bfail(?:ed|ure)\b|失败|\bviolat|违规|违反", re.IGNORECASE)


_AT_ONCE = (Started, ReasoningDelta, RefusalDelta, Progress, Failed)


class Spoken(Struct, frozen=True):
    """What one choice has come to."""

    choice: int
    words: str
    media: tuple[Media, ...]
    reason: FinishReason


class _Choice:
    """One choice's text, as it comes."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.chars = 0
        self.line = ""
        self.ready: list[tuple[int, Media]] = []
        self.reason: FinishReason = "stop"


class ChatMedia:
    """Takes the line's events; gives at once what may be told at once, and holds the rest until the end.

    After `Ended` was fed, `spoken` gives what there is, and `usage` what was counted.
    """

    def __init__(self, kind: ModelKind) -> None:
        self._film = kind == "video"
        self._choices: dict[int, _Choice] = {}
        self.usage: UsageReported | None = None
        self.ended = False
        self._told: set[str] = set()

    def feed(self, events: list[Event]) -> list[Event]:
        """Take the next events. `Progress` among what comes out says that the work goes on; a `Failed` ends all."""
        out: list[Event] = []
        for event in events:
            if isinstance(event, TextDelta):
                out += self._text(event)
            elif isinstance(event, MediaReady):
                choice = self._choice(event.choice)
                choice.ready.append((choice.chars, event.media))
            elif isinstance(event, Finished):
                self._choice(event.choice).reason = event.reason
            elif isinstance(event, UsageReported):
                self.usage = event
            elif isinstance(event, Ended):
                self.ended = True
            elif isinstance(event, _AT_ONCE) or (isinstance(event, Extras) and event.choice is None):
                out.append(event)
        return out

    def spoken(self) -> Iterator[Spoken]:
        """Give each choice's words, without its progress, and its media in order, each once."""
        kind = "video" if self._film else "image"
        for number in sorted(self._choices):
            choice = self._choices[number]
            text = "".join(choice.pieces)
            choice.pieces.clear()
            read = read_media_text(text, kind)  # type: ignore[arg-type]
            placed = [(one.start, one.media) for one in read.media]
            known = [url for _, media in placed for url in (media.url, media.cover_url) if url]  # too long to be hashed
            placed += [(at, media) for at, media in choice.ready if media.url not in known]
            media = tuple(medium for _, medium in sorted(placed, key=lambda one: one[0]))
            yield Spoken(number, self._words(read.words, media), media, choice.reason)

    def _choice(self, number: int) -> _Choice:
        return self._choices.setdefault(number, _Choice())

    def _text(self, event: TextDelta) -> Iterator[Event]:
        choice = self._choice(event.choice)
        choice.pieces.append(event.text)
        choice.chars += len(event.text)
        if choice.chars > LONGEST_CHARS:
            yield Failed("upstream_malformed", "the provider's answer is too large", status=502)
            return
        *whole, rest = f"{choice.line}{event.text}".split("\n") if len(event.text) < 4096 else (TOO_LONG,)
        for line in whole:
            if (told := self._progress(line)) is not None:
                yield told
        choice.line = rest if len(rest) <= LONGEST_LINE else TOO_LONG
        if self._film and not whole:
            yield Progress()

    def _progress(self, line: str) -> Progress | None:
        """Read a whole line as progress, each but once; None: it is none."""
        line = line.strip()
        if len(line) > LONGEST_LINE or "://" in line or line in self._told or not self._is_progress(line):
            return None
        self._told.add(line)
        percent = _PERCENT.search(line)
        if percent is not None and float(percent[1]) <= 100:
            return Progress(float(percent[1]))
        text = line.lstrip("> ").strip()
        return None if text[:1] in _MARK_UP else Progress(text=text)

    def _is_progress(self, line: str) -> bool:
        return bool(line) and (self._film or _PROGRESS.match(line) is not None)

    def _words(self, words: str, media: tuple[Media, ...]) -> str:
        """Leave out what was progress: of a film's answer everything, when there is a film."""
        if not media:
            return words
        if self._film:
            return ""
        kept = [line for line in words.split("\n") if not (line.strip() and _PROGRESS.match(line.strip()))]
        return "\n".join(kept).strip()


def failure_of(spoken: list[Spoken], kind: ModelKind) -> Failed | None:
    """Say why there is no medium; None: there is one, or an image model has only answered in words."""
    if any(one.media for one in spoken):
        return None
    words = " ".join(" ".join(one.words for one in spoken).split())
    told = f": {words[:500]}" if words else ""
    if any(one.reason == "content_filter" for one in spoken):
        return Failed(
            "content_filter", f"The provider's content rules stood in the way{told}", "invalid_request_error", 400
        )
    if kind == "video":
        return Failed("upstream_no_video", f"the model gave no film{told}", status=502)
    if not words or _FAILURE.search(words[:2000]):
        return Failed("upstream_no_image", f"the model gave no picture{told}", status=502)
    return None
