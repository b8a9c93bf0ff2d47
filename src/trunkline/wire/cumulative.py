"""Telling text that grows (each piece repeats all before it) from text that is added to."""


class Cumulative:
    """Watches the first pieces of a text. Deltas that only look alike (`1`, `10`) must not be taken for growth.

    A second piece that may be growth is held until the third tells.
    """

    __slots__ = ("_held", "_text", "found")

    def __init__(self) -> None:
        self._text = ""
        self._held = ""
        self.found = False
        """Whether the latest piece repeated the text before it."""

    def feed(self, piece: str) -> tuple[str, bool]:
        """Give what is new in a piece, and whether to go on watching."""
        text = self._text
        if not piece:
            return piece, True
        if not text:
            self._text = piece
            return piece, True
        held, self._held = self._held, ""
        self.found = piece.startswith(held or text) and (
            self.found or (len(piece) > len(held) if held else _is_growth(text, piece))
        )
        if self.found:
            self._text = piece
            return piece[len(text) :], True
        if not held and _may_be_growth(text, piece):
            self._held = piece
            return "", True
        return held + piece, False

    def close(self) -> str:
        """Give the piece that is held."""
        held, self._held = self._held, ""
        return held


def _is_growth(text: str, piece: str) -> bool:
    """Say whether a repetition is no accident: words, not digits or marks, and no echo such as `ha`, `haha`."""
    if len(piece) == len(text) or not text[0].isalpha() or piece.removeprefix(text).startswith(text):
        return False
    letters = {letter for letter in text if letter.isalpha()}
    if len(letters) >= 3 or (len(letters) >= 2 and not text.isascii()):
        return True
    return piece[len(text)] == " "


def _may_be_growth(text: str, piece: str) -> bool:
    more = piece.removeprefix(text)
    return piece.startswith(text) and more != "" and text[0].isalnum() and not more.startswith(text)
