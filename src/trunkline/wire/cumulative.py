"""Telling text that grows (each piece repeats all before it) from text that is added to."""

_ENOUGH = 4
"""Characters without a letter that are not said again by accident."""


class Cumulative:
    """Watches the first pieces of a text. Deltas that only look alike (`1`, `10`, or `the`, `them`) are no growth.

    Pieces that may be growth are held until the next one tells: of deltas, three do not repeat one another by accident.
    """

    __slots__ = ("_text", "found", "held")

    def __init__(self) -> None:
        self._text = ""
        self.held: list[str] = []
        """Pieces that may be growth."""
        self.found = False
        """Whether the latest piece repeated the text before it."""

    def feed(self, piece: str) -> tuple[str, bool]:
        """Give what is new in a piece, and whether to go on watching; if not, what is `held` comes before it."""
        text = self._text
        if not piece:
            return piece, True
        if not text:
            self._text = piece
            return piece, True
        held = self.held
        if self.found:
            self.found = piece.startswith(text)
        elif piece.startswith(held[-1]) if held else _may_be_growth(text, piece):
            self.found = bool(held) and _is_repeated(held[-1], piece)
            if not self.found:
                held.append(piece)
                return "", True
        if self.found:
            held.clear()
            self._text = piece
            return piece[len(text) :], True
        return piece, False

    def close(self) -> list[str]:
        """Give what is held: the text ends without a piece that would tell."""
        text, held = self._text, self.held
        if not held:
            return []
        self.held = []
        self.found = _is_growth(text, held[0])
        if not self.found:
            return held
        self._text = held[-1]
        return [self._text[len(text) :]]


def _may_be_growth(text: str, piece: str) -> bool:
    """Say whether a piece repeats the text and goes on otherwise: `ha`, `haha` and a blank, two blanks do not."""
    more = piece.removeprefix(text)
    return piece.startswith(text) and more != "" and not more.startswith(text)


def _is_repeated(text: str, piece: str) -> bool:
    """Say whether a piece that repeats a text which grew before is growth for certain: digits and marks are not."""
    more = piece[len(text) :]
    return more != "" and (len(text) >= _ENOUGH or any(letter.isalpha() for letter in piece))


def _is_growth(text: str, piece: str) -> bool:
    """Say whether two pieces are growth, when there are no more: words are, digits and marks are not."""
    letters = {letter for letter in text if letter.isalpha()}
    if len(letters) >= 3 or (len(letters) >= 2 and not text.isascii()):
        return True
    return text[0].isalpha() and piece[len(text)] == " "
