"""One answer of an upstream, read as its connection brings it (RFC 9112)."""

import asyncio
from collections.abc import Callable
from functools import cached_property
from operator import methodcaller
from typing import Protocol

from trunkline.calls.task import Wake
from trunkline.core.ports import HttpError, HttpFailure
from trunkline.upstream.coding import GZIP_MAGIC, Inflate, Unread

_PACKED = (b"image/", b"video/", b"audio/", b"font/", b"application/zip", b"application/gzip", b"application/pdf")
"""What is as it is, however it begins."""
_text: Callable[[bytes], str] = methodcaller("decode", "latin-1")


class Carrier(Protocol):
    """What an answer needs of its connection."""

    def event(self) -> Wake:
        """Give what is done when something has happened; for one to wait for."""

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand over small reads as they come, until one is large or the last; False: `take` said so."""

    def drained(self) -> None:
        """Read on: all that has come is taken."""

    def fail(self, kind: HttpFailure, message: str) -> None:
        """Close at once; who reads gets what has come, then the error."""


class Response:
    """An answer; `core.ports.HttpResponse`."""

    _kind = b""
    _head: dict[bytes, bytes]

    def __init__(self, connection: Carrier, pieces: list[bytes]) -> None:
        self.status = 0
        self.error: HttpError | None = None
        """How the exchange broke; raised by `read` once all that has come is read."""
        self._coding: Inflate | Unread | None = None
        self._plain = False
        """The body is known to be as it is read: its first bytes were looked at."""
        self.connection: Carrier | None = connection
        """None: the exchange has ended."""
        self.pieces = pieces
        """What has come and is not read yet; the connection's own list until the exchange has ended."""

    def _read_headers(self) -> dict[str, str]:
        head, self._head = self._head, {}
        return dict(zip(map(_text, head), map(_text, head.values()), strict=True))

    headers: dict[str, str] = cached_property(_read_headers)  # type: ignore[assignment]  # the port has an attribute
    """See the port; of most answers nobody reads them."""

    async def read(self) -> bytes:
        """Give everything that has arrived since the last call; wait only when that is nothing; `b""` at the end."""
        pieces = self.pieces
        if pieces and (self._plain or (self._coding is None and pieces[0][0] != GZIP_MAGIC[0])):
            self._plain = True
            data = b"".join(pieces)
            pieces.clear()
            if self.connection is not None:
                self.connection.drained()
            return data
        if not self._plain:
            return await self._read_coded()
        return b"" if self.connection is None and self.error is None else await self._read_plain()

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand over each piece in the callback that brings it; see the port."""
        while True:
            plain = self._plain and not self.pieces
            if plain and self.connection is not None and not await self.connection.pipe(take):
                return False
            data = await self.read()
            if not data:
                return True
            if not take(data):
                return False

    async def body(self, max_bytes: int) -> bytes:
        """Give the rest of the body at once; raises HttpError `too_large` beyond `max_bytes`."""
        pieces, size = [], 0
        while size <= max_bytes and (piece := await self.read()):
            pieces.append(piece)
            size += len(piece)
        if size > max_bytes:
            await self.aclose()
            raise HttpError("too_large", f"the answer is longer than {max_bytes} bytes", sent=True)
        return b"".join(pieces)

    async def aclose(self) -> None:
        """Let the exchange go: an answer that has not come whole takes its connection with it."""
        self.drop()

    def drop(self) -> None:
        """Close at once, without waiting for anything."""
        if self.connection is not None:
            self.connection.fail("reset", "the answer was closed before its end")

    def check(self) -> None:
        """Raise how the exchange broke: each time anew, for what is kept and raised holds whoever it passed through."""
        if self.error is not None:
            raise HttpError(self.error.kind, str(self.error), sent=self.error.sent)

    async def _read_plain(self) -> bytes:
        while not self.pieces:
            if self.connection is None:
                self.check()
                return b""
            await self.connection.event()
        data = b"".join(self.pieces)
        self.pieces.clear()
        if self.connection is not None:
            self.connection.drained()
        return data

    async def _read_coded(self) -> bytes:
        held = b""
        while self._coding is None:
            try:
                data = await self._read_plain()
            except asyncio.CancelledError:
                if held:
                    self.pieces.insert(0, held)
                raise
            held += data
            if self._kind.lower().startswith(_PACKED):
                self._plain = True
                return held
            if held.startswith(GZIP_MAGIC):
                self._coding = Inflate(deflate=False)
            elif not data or not GZIP_MAGIC.startswith(held):
                self._plain = True
                return held
        coding = self._coding
        while True:
            if not held and coding.hungry:
                held = await self._read_plain()
                if not held:
                    if not coding.finished:
                        raise HttpError("incomplete", "the packed body ends too early", sent=True)
                    return b""
            unpacked = coding.feed(held)
            if unpacked:
                return unpacked
            held = b""

    def begin(self, status: int, head: dict[bytes, bytes]) -> None:
        """Take the head, names in lower case; raises HttpError on a content coding that is not known."""
        declared = head.get(b"content-encoding")
        if declared and (coding := declared.lower().replace(b"identity", b"").strip(b" ,\t")):
            if coding in (b"gzip", b"x-gzip", b"deflate"):
                self._coding = Inflate(deflate=coding == b"deflate")
            elif status >= 400:
                self._coding = Unread()
            else:
                told = f"the content coding {_text(declared)!r} was not asked for"
                raise HttpError("protocol", told, sent=True)
        else:
            self._kind = head.get(b"content-type", b"")
        self._head = head
        self.status = status
