from collections.abc import AsyncIterator, Callable

import pytest

from trunkline.upstream.unrepeated import Unrepeated

SECRET = b"sk-abcab"
BODY = b"the key sk-abcab, not sk-abc, is wrong: sk-abcabsk-abcab sk-"
WITHOUT = b"the key ***, not sk-abc, is wrong: ****** sk-"


class Pieces:
    """An answer that comes in these pieces."""

    status: int = 200

    def __init__(self, *pieces: bytes) -> None:
        self.headers: dict[str, str] = {}
        self._pieces = list(pieces)

    async def read(self) -> bytes:
        return self._pieces.pop(0) if self._pieces else b""

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        while piece := await self.read():
            if not take(piece):
                return False
        return True

    async def body(self, max_bytes: int) -> bytes:
        rest, self._pieces = b"".join(self._pieces), []
        assert len(rest) <= max_bytes
        return rest

    async def aclose(self) -> None:
        """Nothing is open."""


@pytest.mark.parametrize("size", range(1, len(BODY) + 1))
async def test_the_key_is_taken_out_however_the_answer_is_cut(size: int) -> None:
    pieces = [BODY[at : at + size] for at in range(0, len(BODY), size)]
    answer = Unrepeated(Pieces(*pieces), SECRET)
    read = [piece async for piece in all_of(answer)]
    assert b"".join(read) == WITHOUT
    assert await answer.read() == b""
    answer = Unrepeated(Pieces(*pieces), SECRET)
    assert await answer.read() + await answer.body(1000) == WITHOUT
    answer, piped = Unrepeated(Pieces(*pieces), SECRET), bytearray()
    assert not await answer.pipe(lambda piece: len(piped.__iadd__(piece)) == 0)
    assert await answer.pipe(lambda piece: len(piped.__iadd__(piece)) > 0)
    assert piped == WITHOUT


async def all_of(answer: Unrepeated) -> AsyncIterator[bytes]:
    while piece := await answer.read():
        yield piece
