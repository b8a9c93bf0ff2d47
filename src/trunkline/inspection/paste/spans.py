"""Bytes taken out of a wrapping, and the way back: which place of the wrapped text each byte came from."""

from array import array
from bisect import bisect_right


class Unwrapped:
    """What was inside a wrapping. Built with `keep` and `put`, in order; then `origin` leads back."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._pieces: list[bytes] = []
        self._size = 0
        self._out = array("q")  # where each span begins inside
        self._from = array("q")  # where it came from
        self._lengths = array("q")  # how many bytes of the source it stands for

    @property
    def data(self) -> bytes:
        """The bytes inside."""
        if len(self._pieces) != 1:
            self._pieces = [b"".join(self._pieces)]
        return self._pieces[0]

    @property
    def size(self) -> int:
        """How many bytes there are inside so far."""
        return self._size

    def keep(self, start: int, end: int) -> None:
        """Take bytes of the source as they are."""
        if end > start:
            self.put(self._source[start:end], start, end)

    def put(self, data: bytes, start: int, end: int) -> None:
        """Take bytes that a part of the source stands for."""
        if not data:
            return
        self._out.append(self._size)
        self._from.append(start)
        self._lengths.append(end - start)
        self._pieces.append(data)
        self._size += len(data)

    def origin(self, offset: int) -> int:
        """Give the place in the source that a byte came from; for the end: the place behind the last byte."""
        if not self._size:
            return len(self._source)
        index = max(0, bisect_right(self._out, offset) - 1)
        inside = offset - self._out[index]
        span = (self._out[index + 1] if index + 1 < len(self._out) else self._size) - self._out[index]
        return self._from[index] + min(inside, span) * self._lengths[index] // span
