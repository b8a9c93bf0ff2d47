"""Content codings undone piece by piece, so that a small body cannot become a large one in memory."""

import zlib

from trunkline.core.ports import HttpError

PIECE_BYTES = 256 * 1024
"""The most that one call gives back."""

GZIP_MAGIC = b"\x1f\x8b"


class Inflate:
    """Undoes gzip or deflate; what one call does not give back waits, still packed, for the next."""

    __slots__ = ("_decoder", "_deflate", "_packed", "_started", "hungry")

    def __init__(self, *, deflate: bool) -> None:
        self._deflate = deflate
        self._decoder = zlib.decompressobj(wbits=31)
        self._packed = b""
        self._started = False
        self.hungry = True
        """Whether the next call needs bytes from the wire."""

    def feed(self, data: bytes) -> bytes:
        """Unpack at most PIECE_BYTES of what is there; raises HttpError `protocol`."""
        data = self._packed + data
        self._packed = b""
        if not self._started:
            if self._deflate:
                if len(data) < 2:
                    self._packed = data
                    return b""
                # RFC 9110 means zlib by "deflate", some servers send it bare (section 8.4.1.2), or say it of gzip.
                zlib_head = data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0
                wbits = 31 if data[:2] == GZIP_MAGIC else 15 if zlib_head else -15
                self._decoder = zlib.decompressobj(wbits=wbits)
            self._started = True
        if self._decoder.eof:
            if self._deflate or not data.startswith(GZIP_MAGIC[: len(data)]):
                self.hungry = True
                return b""  # padding after the end
            self._decoder = zlib.decompressobj(wbits=31)  # another member (RFC 1952, section 2.2)
        try:
            unpacked = self._decoder.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise HttpError("protocol", f"the body is not in its content coding: {error}", sent=True) from error
        self._packed = self._decoder.unconsumed_tail or self._decoder.unused_data
        self.hungry = not self._packed and len(unpacked) < PIECE_BYTES
        return unpacked

    @property
    def finished(self) -> bool:
        """Whether the body may end here."""
        return not self._packed and (not self._started or self._decoder.eof)
