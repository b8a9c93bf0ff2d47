"""A prompt read into a typed scene: subjects, colours, counts, place, time of day, weather, and what is unknown."""

import re
from collections.abc import Iterator

from msgspec import Struct
from msgspec.structs import replace

from trunkline.local.scene.words import Meaning, look_up

MOST = 12
"""No more of one subject than this are drawn."""
MOST_KINDS = 8
"""Subjects beyond are treated as unknown words."""
_PIECE = re.compile(r"[a-z\u00c0-\u024f]+|\d+|[^a-z\u00c0-\u024f\d\s]+")
_LONGEST_PHRASE_WORDS = 4
_LONGEST_PHRASE_CHARS = 12

PEOPLE = dict.fromkeys("👧👩👵👸🤶", "♀") | dict.fromkeys("👦👨👴🤴🎅", "♂") | dict.fromkeys("🧒🧑🧓👶👽", "")
"""Heads that a body is drawn for, and the sign of their kind in the art of actions."""
DOING = {"run": "🏃", "walk": "🚶", "swim": "🏊", "surf": "🏄", "ride": "🚴"}
AFLOAT = set("⛵🚤🛥🚢🛳⛴🛶🦆🦢🏊🏄🚣")
SWIMMING = set("🐟🐠🐡🦈🐙🐬🐳🐋🦑🪼🦭🧜🐚🪸🦀🦞🦐")
COSMIC = set("🚀🪐🛸👽👾🛰🌍🌎🌏☄")
DRIVING = {
    chr(code) for code in (*range(0x1F682, 0x1F69F), *range(0x1F6F4, 0x1F6F7), 0x1F6B2, 0x1F6B4, 0x1F3CD, 0x1F3CE)
}
INDOORS = {
    chr(code) for code in (*range(0x1F345, 0x1F380), *range(0x1F950, 0x1F970), *range(0x1F9C0, 0x1F9CC), 0x1F382)
}
_ANIMALS = (range(0x1F400, 0x1F43F), range(0x1F980, 0x1F9AF), range(0x1FACC, 0x1FAD0))
_HUMANS = (
    *(range(0x1F466, 0x1F488), range(0x1F9B8, 0x1F9BA), range(0x1F9CD, 0x1F9E0), range(0x1F930, 0x1F93F)),
    *(range(0x1F3C2, 0x1F3CD), range(0x1F574, 0x1F57B), range(0x1F6B4, 0x1F6B7), range(0x1F977, 0x1F978)),
    *(range(0x1F385, 0x1F386), range(0x1F916, 0x1F917)),
)


class Subject(Struct, frozen=True):
    """One thing to draw: its emoji, how many, and how they look. Empty: not said."""

    symbol: str
    name: str
    count: int = 1
    colour: str = ""
    hair: str = ""
    action: str = ""
    cute: bool = False


class Scene(Struct, frozen=True):
    """All that was understood of a prompt; `unknown` are the words that were not."""

    subjects: tuple[Subject, ...] = ()
    place: str = "meadow"
    time: str = "day"
    weather: str = "clear"
    unknown: tuple[str, ...] = ()


def is_in(symbol: str, kinds: set[str]) -> bool:
    """Whether the emoji's first sign is one of these."""
    return symbol[0] in kinds


def human(symbol: str) -> bool:
    """Whether the emoji is a person, or a robot."""
    return any(ord(symbol[0]) in block for block in _HUMANS)


def alive(symbol: str) -> bool:
    """Whether the emoji is a person or an animal."""
    return human(symbol) or any(ord(symbol[0]) in block for block in _ANIMALS)


def parse(prompt: str) -> Scene:
    """Read a prompt in English or Chinese; never fails."""
    tokens = list(_tokens(prompt))
    reading = _Reading()
    for index, (word, meaning, plural) in enumerate(tokens):
        following = tokens[index + 1][1] if index + 1 < len(tokens) else None
        reading.take(word, meaning, following, plural=plural)
    return reading.scene()


def describe(scene: Scene) -> str:
    """Tell what is in the picture, and what is not, in English sentences."""
    drawn = ", ".join(
        " ".join(filter(None, [_how_many(one.count), one.colour, one.name]))
        + (f" with {one.hair} hair" if one.hair else "")
        for one in scene.subjects
    )
    around = f"place: {scene.place}, time: {scene.time}, weather: {scene.weather}"
    text = f"Drawn as a storybook scene: {drawn or 'no subject'} ({around})."
    if scene.unknown:
        text += f" Not known, so only lettered in the picture: {', '.join(scene.unknown)[:500]}."
    return text


def _how_many(count: int) -> str:
    return "" if count == 1 else str(count) if count <= MOST else f"{MOST} (of {count})"


def _tokens(prompt: str) -> Iterator[tuple[str, Meaning | None, bool]]:
    """Words and phrases, longest first, each with its meaning (None: unknown) and whether it is a plural."""
    pieces = _PIECE.findall(re.sub(r"['’]s\b|(?<=[a-z])-(?=[a-z])", " ", prompt.lower()))
    while pieces:
        if not (pieces[0][0] <= "\u024f" and pieces[0].isalnum()):
            yield from _signs(pieces.pop(0))
            continue
        for length in range(min(_LONGEST_PHRASE_WORDS, len(pieces)), 0, -1):
            phrase = " ".join(pieces[:length])
            known = look_up(phrase)
            if known:
                yield phrase, *known
                del pieces[:length]
                break
        else:
            word = pieces.pop(0)
            yield word, Meaning("count", word) if word.isdecimal() else None, False


def _signs(run: str) -> Iterator[tuple[str, Meaning | None, bool]]:
    """Do the same for a run of Chinese or emoji, which has no spaces between its words."""
    start = position = 0
    while position < len(run):
        for length in range(min(_LONGEST_PHRASE_CHARS, len(run) - position), 0, -1):
            known = look_up(run[position : position + length])
            if known or not run[position].isalnum():
                if start < position:
                    yield run[start:position], None, False
                if known:
                    yield run[position : position + length], *known
                start = position = position + (length if known else 1)
                break
        else:
            position += 1
    if start < position:
        yield run[start:], None, False


class _Reading:
    """The state of reading: what was said of a subject that is still to come."""

    def __init__(self) -> None:
        self.subjects: list[Subject] = []
        self.around: dict[str, str] = {}
        self.unknown: list[str] = []
        self.last_unknown = False
        self.count = 0
        self.colour = self.clothes = self.hair = self.action = ""
        self.cute = False

    def take(self, word: str, meaning: Meaning | None, following: Meaning | None, *, plural: bool) -> None:
        """One word. An unknown one goes with an unknown neighbour."""
        if meaning and meaning.kind == "subject" and len(self.subjects) == MOST_KINDS:
            meaning = None
        if meaning is None:
            glue = " " if word.isascii() else ""
            self.unknown[-1:] = [self.unknown[-1] + glue + word] if self.last_unknown else [*self.unknown[-1:], word]
        self.last_unknown = meaning is None
        match meaning:
            case Meaning("colour", colour):
                self.colour = colour
            case Meaning("count", number):
                self.count = max(1, int(number[:4]))
            case Meaning("cute"):
                self.cute = True
            case Meaning("place" | "time" | "weather" as kind, value):
                self.around.setdefault(kind, value)
                self.colour, self.count = "", 0
            case Meaning("hair" | "haired" as kind, colour):
                self._hair(colour or self.colour, after=kind == "hair" and word.isascii())
            case Meaning("clothes"):
                if self.subjects and self.colour:
                    self.subjects[-1] = replace(self.subjects[-1], colour=self.colour)
                self.clothes, self.colour = "" if self.subjects else self.colour, ""
            case Meaning("action", action):
                self._act(action, following)
            case Meaning("subject", symbol):
                self._subject(symbol, word, plural=plural)

    def _hair(self, colour: str, *, after: bool) -> None:
        self.hair, self.colour = colour, ""
        if after and self.subjects and alive(self.subjects[-1].symbol):
            self.subjects[-1] = replace(self.subjects[-1], hair=colour)
            self.hair = ""

    def _act(self, action: str, following: Meaning | None) -> None:
        movable = [alive(one.symbol) or is_in(one.symbol, DRIVING | AFLOAT | COSMIC) for one in self.subjects]
        if not any(movable) or (following and following.kind in {"subject", "colour"}):
            self.action = action
            return
        for index, one in enumerate(self.subjects):
            if movable[index] and not one.action:
                self.subjects[index] = replace(one, action=action)

    def _subject(self, symbol: str, name: str, *, plural: bool) -> None:
        rider = self.subjects[-1] if self.subjects else None
        if rider and rider.symbol in PEOPLE and rider.action == "ride" and is_in(symbol, {"🚲", "🐎"}):
            self.subjects[-1] = replace(rider, action="gallop" if symbol == "🐎" else "ride", colour=self.colour)
        else:
            count = self.count or (3 if plural else 1)
            hair = self.hair if alive(symbol) else ""
            colour = self.colour or (self.clothes if alive(symbol) else "")
            self.subjects.append(Subject(symbol, name, count, colour, hair, self.action, self.cute))
            self.hair = "" if hair else self.hair
        self.count, self.colour, self.clothes, self.action, self.cute = 0, "", "", "", False

    def scene(self) -> Scene:
        """Put together what was read; hair said after its owner goes back to her."""
        if self.hair:
            for index, one in reversed(list(enumerate(self.subjects))):
                if alive(one.symbol) and not one.hair:
                    self.subjects[index] = replace(one, hair=self.hair)
                    break
        subjects = tuple(map(_acting, self.subjects))
        place = self.around.get("place") or _place(subjects)
        return Scene(
            subjects, place, self.around.get("time", "day"), self.around.get("weather", "clear"), tuple(self.unknown)
        )


def _acting(subject: Subject) -> Subject:
    """Have a person who does something drawn by the art of doing it."""
    sign = PEOPLE.get(subject.symbol)
    if sign is None or not subject.action:
        return subject
    ending = f"\u200d{sign}\ufe0f" if sign else ""
    if subject.action == "dance":
        return replace(subject, symbol="🕺" if sign == "♂" else "💃")
    if subject.action == "gallop":
        return replace(subject, symbol="🏇")
    art = DOING.get(subject.action)
    return replace(subject, symbol=art + ending) if art else subject


def _place(subjects: tuple[Subject, ...]) -> str:
    """Where such subjects are when the prompt does not say."""
    for place, kinds in (
        ("sea", AFLOAT),
        ("underwater", SWIMMING),
        ("space", COSMIC),
        ("city", DRIVING),
        ("room", INDOORS),
    ):
        if any(is_in(one.symbol, kinds) for one in subjects):
            return place
    if any(one.action == "swim" for one in subjects):
        return "sea"
    return "space" if any("🚀" in one.symbol for one in subjects) else "meadow"
