"""Telling text that grows (each piece repeats all before it) from text that is added to."""


class Cumulative:
    """Watches the first pieces of a text. Deltas that only look alike (`1`, `10`) must not be taken for growth."""

    __slots__ = ("_text", "found")

    def __init__(self) -> None:
        self._text = ""
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
        if self.found:
            if piece.startswith(text):
                self._text = piece
                return piece[len(text) :], True
            self.found = False
            return piece, False
        # an equal piece is no growth: models do say the same twice
        if len(piece) > len(text) and piece.startswith(text) and _is_growth(text, piece):
            self.found = True
            self._text = piece
            return piece[len(text) :], True
        return piece, False


def _is_growth(text: str, piece: str) -> bool:
    """Say whether a repetition is no accident: words, not digits or marks, and no echo such as `ha`, `haha`."""
    if not text[0].isalpha() or piece.removeprefix(text).startswith(text):
        return False
    letters = {letter for letter in text if letter.isalpha()}
    if len(letters) >= 3 or (len(letters) >= 2 and not text.isascii()):
        return True
    return piece[len(text)] == " "
