"""Where files are taken in before they are kept: a directory on local disk, every file hashed as it is written."""

import asyncio
import errno
import hashlib
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from trunkline.calls.unbroken import unbroken
from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaFile
from trunkline.core.media_type import EXTENSIONS, FOREIGN, SNIFF_BYTES, sniff

BATCH_BYTES = 1 << 20
LEFTOVER_S = 6 * 3600
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextmanager
def full_disk_named(what: str) -> Iterator[None]:
    """Turn the operating system's refusal to store into a `storage_unavailable`."""
    try:
        yield
    except OSError as error:
        reason = "its disk is full" if error.errno in _FULL else (error.strerror or type(error).__name__)
        raise GatewayError("storage_unavailable", f"The media store cannot {what}: {reason}.") from error


class Workroom:
    """Files being taken in: each is deleted when its block ends; what a killed process left, at a later start.

    Threads that work with them are waited for, whoever leaves: they would write the files anew.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        for leftover in directory.iterdir():
            if time.time_ns() / 1e9 - leftover.stat().st_mtime > LEFTOVER_S:
                leftover.unlink(missing_ok=True)

    @contextmanager
    def file(self) -> Iterator[Path]:
        """Name a new file; whatever lies there at the end is deleted."""
        path = self.directory / secrets.token_hex(12)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    @asynccontextmanager
    async def receive(self, pieces: AsyncIterator[bytes], max_bytes: int) -> AsyncIterator[MediaFile]:
        """Write the pieces to a file; refuse early what is no picture or film, or grows too large."""
        with self.file() as path:
            yield await self._write(path, pieces, max_bytes)

    async def _write(self, path: Path, pieces: AsyncIterator[bytes], max_bytes: int) -> MediaFile:
        digest, total, mime_type, batch = hashlib.sha256(), 0, "", bytearray()

        def flush() -> None:
            digest.update(batch)
            with full_disk_named("take the file in"), path.open("ab") as file:
                file.write(batch)

        async for piece in pieces:
            total += len(piece)
            if total > max_bytes:
                raise GatewayError("media_refused", f"The file is larger than the {max_bytes} bytes allowed.")
            batch += piece
            if not mime_type and total >= SNIFF_BYTES:
                mime_type = type_of(batch)
            if len(batch) >= BATCH_BYTES:
                await unbroken(asyncio.to_thread(flush))
                batch.clear()
        mime_type = mime_type or type_of(batch)
        await unbroken(asyncio.to_thread(flush))
        return MediaFile(path=str(path), sha256=digest.hexdigest(), bytes=total, mime_type=mime_type)


async def hashed(path: Path) -> MediaFile:
    """Describe a file that we wrote ourselves."""

    def read() -> MediaFile:
        with path.open("rb") as file:
            mime_type = type_of(file.read(SNIFF_BYTES))
            file.seek(0)
            return MediaFile(str(path), hashlib.file_digest(file, "sha256").hexdigest(), file.tell(), mime_type)

    return await asyncio.to_thread(read)


def type_of(head: bytes | bytearray) -> str:
    """Tell the type or refuse, quoting how the file begins."""
    mime_type = sniff(bytes(head[:SNIFF_BYTES]))
    if mime_type is None:
        taken = ", ".join((*EXTENSIONS, *sorted(FOREIGN)))
        told = f"The file is no picture or film of a type that is taken ({taken}); it begins {bytes(head[:24])!r}."
        raise GatewayError("media_refused", told)
    return mime_type
