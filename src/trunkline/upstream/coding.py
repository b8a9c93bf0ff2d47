"""Content codings undone piece by piece, so that a small body cannot become a large one in memory."""

import codecs
import re
import zlib

from trunkline.core.ports import HttpError

PIECE_BYTES = 256 * 1024
"""The most that one call gives back."""

GZIP_MAGIC = b"\x1f\x8b"
_HEAD_BYTES = 1024
_CONTROL = re.compile(r"[^\t\n\r -\U0010ffff]")


class Inflate:
    """Undoes gzip or deflate; what one call does not give back waits, still packed, for the next.

    The first bytes say which it is: some say gzip of zlib, or the reverse, or either of a body that is not packed.
    """

    __slots__ = ("_decoder", "_deflate", "_gzip", "_packed", "_plain", "_started", "hungry")

    def __init__(self, *, deflate: bool) -> None:
        self._deflate = deflate
        self._gzip = False
        self._plain = False
        self._decoder = zlib.decompressobj(wbits=31)
        self._packed = b""
        self._started = False
        self.hungry = True
        """Whether the next call needs bytes from the wire."""

    def feed(self, data: bytes) -> bytes:
        """Unpack at most PIECE_BYTES of what is there; raises HttpError `protocol`."""
        if self._plain:
            return data
        data = self._packed + data
        self._packed = b""
        if not self._started:
            if len(data) < 2:
                self._packed = data
                return b""
            self._started = True
            self._open(data)
            if self._plain:
                return data
        if self._decoder.eof:
            if not self._gzip or not data.startswith(GZIP_MAGIC[: len(data)]):
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

    def _open(self, data: bytes) -> None:
        """Tell the format by the first bytes; RFC 9110 means zlib by "deflate", some send it bare (section 8.4.1.2)."""
        if data.startswith(GZIP_MAGIC):
            self._gzip = True
        elif data[0] & 0x0F == 8 and (data[0] << 8 | data[1]) % 31 == 0:
            self._decoder = zlib.decompressobj(wbits=15)
        elif _is_bare(data[:_HEAD_BYTES], may_be_text=not self._deflate):
            self._decoder = zlib.decompressobj(wbits=-15)
        else:
            self._plain = True

    @property
    def finished(self) -> bool:
        """Whether the body may end here."""
        return self._plain or (not self._packed and (not self._started or self._decoder.eof))


class Unread:
    """Stands for a coding that nobody asked for: of an error answer the status says enough."""

    hungry = finished = True

    @staticmethod
    def feed(_data: bytes) -> bytes:
        """Give nothing."""
        return b""


def _is_bare(head: bytes, *, may_be_text: bool) -> bool:
    """Say whether bytes are deflate without any head, and no body that is not packed; a few of it may be text, too."""
    try:
        text = codecs.getincrementaldecoder("utf-8")().decode(head) if may_be_text else "\0"
    except UnicodeDecodeError:
        text = "\0"
    if _CONTROL.search(text) is None:
        return False
    try:
        zlib.decompressobj(wbits=-15).decompress(head)
    except zlib.error:
        return False
    return True
