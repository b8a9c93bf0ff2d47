"""The media store: a workroom where files are looked at, and the place where they are kept."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from trunkline.calls.unbroken import unbroken
from trunkline.core.media import MediaFacts, MediaFile
from trunkline.storage.media.films import film_cover, film_facts
from trunkline.storage.media.local import LocalBlobs
from trunkline.storage.media.pictures import FORMATS, convert_picture, picture_facts
from trunkline.storage.media.s3 import S3Blobs
from trunkline.storage.media.workroom import Workroom, full_disk_named, hashed

DECODERS = 2
"""Files decoded at a time: what bounds the memory that pixels take."""


class Blobs(Protocol):
    """Where files are kept."""

    async def keep(self, source: Path, sha256: str) -> None:
        """Keep the file; it may be moved away."""

    def read(self, sha256: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        """Give the bytes in pieces."""

    async def delete(self, sha256: str) -> None:
        """Delete the file, if it is there."""


class FileMediaStore:
    """Implements `core.ports.MediaStore`."""

    def __init__(self, workroom: Workroom, blobs: Blobs) -> None:
        self._workroom = workroom
        self._blobs = blobs
        self._decoders = asyncio.Semaphore(DECODERS)
        self.receive = workroom.receive
        self.delete = blobs.delete

    async def facts(self, file: MediaFile) -> MediaFacts:
        """See the port."""
        look = picture_facts if file.mime_type in FORMATS else film_facts
        async with self._decoders:
            return await unbroken(asyncio.to_thread(look, Path(file.path), file.mime_type))

    @asynccontextmanager
    async def convert(self, file: MediaFile, mime_type: str) -> AsyncIterator[MediaFile]:
        """See the port."""
        with self._workroom.file() as path:
            async with self._decoders:
                with full_disk_named("convert the picture"):
                    work = asyncio.to_thread(convert_picture, Path(file.path), file.mime_type, path, mime_type)
                    await unbroken(work)
            yield await hashed(path)

    @asynccontextmanager
    async def cover(self, file: MediaFile) -> AsyncIterator[MediaFile]:
        """See the port."""
        with self._workroom.file() as path:
            async with self._decoders:
                with full_disk_named("write the cover"):
                    await unbroken(asyncio.to_thread(film_cover, Path(file.path), file.mime_type, path))
            yield await hashed(path)

    async def keep(self, file: MediaFile) -> None:
        """See the port."""
        await self._blobs.keep(Path(file.path), file.sha256)

    def read(self, sha256: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """See the port."""
        return self._blobs.read(sha256, start, end)


def media_store(data_dir: Path, url: str) -> FileMediaStore:
    """Open the store: `s3://bucket/prefix`, or local disk below `data_dir` when `url` is empty."""
    blobs: Blobs = S3Blobs(url) if url else LocalBlobs(data_dir / "media")
    return FileMediaStore(Workroom(data_dir / "media" / "incoming"), blobs)
