"""Media bytes on local disk: `ab/abcdef…` under one directory."""

import asyncio
import os
from collections.abc import AsyncGenerator
from pathlib import Path

from trunkline.core.errors import GatewayError
from trunkline.storage.media.workroom import full_disk_named

PIECE_BYTES = 1 << 18


class LocalBlobs:
    """Files named by their hash; a file is there whole or not at all."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def path(self, sha256: str) -> Path:
        """Say where the bytes lie."""
        return self.directory / sha256[:2] / sha256

    async def keep(self, source: Path, sha256: str) -> None:
        """Move the file in (both lie on one file system), on disk before this returns."""
        with full_disk_named("keep the file"):
            await asyncio.to_thread(_move, source, self.path(sha256))

    async def read(self, sha256: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        """Give the bytes in pieces; raises GatewayError `not_found`."""
        try:
            file = await asyncio.to_thread(self.path(sha256).open, "rb")
        except FileNotFoundError:
            raise GatewayError("not_found", "The medium is no longer kept.") from None
        with file:
            file.seek(start)
            left = (1 << 62) if end is None else end - start
            while left > 0 and (piece := await asyncio.to_thread(file.read, min(left, PIECE_BYTES))):
                left -= len(piece)
                yield piece

    async def delete(self, sha256: str) -> None:
        """Delete the file, if it is there."""
        await asyncio.to_thread(self.path(sha256).unlink, missing_ok=True)


def _move(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with source.open("rb") as file:
        os.fsync(file.fileno())
    source.replace(target)
    directory = os.open(target.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
