"""Choices beyond those that were asked for: another answer, or the first one under a number that is wrong."""

from collections.abc import Sequence
from typing import Generic, TypeVar

from trunkline.wire.openai_choice import ChoiceReader

T = TypeVar("T")


class Strays(Generic[T]):
    """Tells whose choice it is that is alone in its chunk, under an index that was not asked for.

    Some count chunks by it, some count from 1: that is the first choice. One beside the first is another answer, and
    left out. The first such choice is held until another, or the end, tells which it is.
    """

    __slots__ = ("_finishes", "_held", "_index", "_n", "_others", "_said", "_states")

    def __init__(self, n: int, states: Sequence[ChoiceReader]) -> None:
        self._n = n
        self._states = states  # of the choices that came under their index; the decoder's own list
        self._held: tuple[T, ...] = ()
        self._finishes = False  # what is held
        self._index = 0  # it came under
        self._said = 0  # by the first choice before it
        self._others: bool | None = None

    def take(self, item: T, index: int, *, finishes: bool) -> tuple[T, ...]:
        """Take a choice, which may have a finish; give those that are the first one's."""
        if self._others is None:
            said = self._first_said()
            climbs = index == self._index + 1 and said == self._said
            if self._first_finished():
                self._others = True
            elif self._held:
                begun = said > 0 or (self._n == 1 and len(self._states) > 0)
                self._others = begun and not climbs
            else:
                self._held, self._index, self._said, self._finishes = (item,), index, said, finishes
                return ()
        held, self._held = self._held, ()
        return () if self._others else (*held, item)

    def drop(self) -> None:
        """Say that there is another answer: it came together with the first."""
        self._others, self._held = True, ()

    def close(self) -> tuple[T, ...]:
        """Give what is held, unless it was another answer: the first went on, or each has its finish."""
        held, self._held = self._held, ()
        other = self._first_said() != self._said or (self._finishes and self._first_finished())
        return () if other else held

    def _first_said(self) -> int:
        return self._states[0].chars if self._states else 0

    def _first_finished(self) -> bool:
        return bool(self._states) and self._states[0].reason_told is not None
