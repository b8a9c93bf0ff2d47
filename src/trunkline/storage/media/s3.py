"""Media bytes in any S3: `s3://bucket/prefix`, credentials and endpoint from the usual AWS variables."""

import os
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline.core.errors import GatewayError

PIECE_BYTES = 1 << 18
if TYPE_CHECKING:
    from obstore import GetOptions

_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


class S3Blobs:
    """Objects named by their hash below the prefix."""

    def __init__(self, url: str) -> None:
        """Open the bucket; the first request is the first proof that it is there."""
        try:
            import obstore  # noqa: PLC0415 - an extra, and only S3 needs it
            from obstore.exceptions import BaseError  # noqa: PLC0415 - the same
        except ImportError:
            raise GatewayError("storage_unavailable", "S3 needs the extra: pip install 'trunkline[scale]'.") from None
        endpoint = next((os.environ[name] for name in _ENDPOINTS if os.environ.get(name)), "")
        self._api = obstore
        self._errors = (BaseError, OSError, ValueError)
        self._store = obstore.store.from_url(
            url,
            config={"endpoint": endpoint} if endpoint else {},
            client_options={"allow_http": endpoint.startswith("http://")},
        )

    async def keep(self, source: Path, sha256: str) -> None:
        """Upload the file, in parts when it is large; the object appears whole or not at all."""
        with self._named("keep the file"):
            await self._api.put_async(self._store, sha256, source)

    async def read(self, sha256: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        """Give the bytes in pieces; raises GatewayError `not_found`."""
        if end is not None and end <= start:
            return
        wanted: GetOptions = {"range": {"offset": start} if end is None else (start, end)}
        with self._named("read the file"):
            answer = await self._api.get_async(self._store, sha256, options=wanted)
            async for piece in answer.stream(min_chunk_size=PIECE_BYTES):
                yield bytes(piece)

    async def delete(self, sha256: str) -> None:
        """Delete the object, if it is there."""
        with self._named("delete the file"):
            try:
                await self._api.delete_async(self._store, sha256)
            except FileNotFoundError:
                return

    @contextmanager
    def _named(self, what: str) -> Iterator[None]:
        try:
            yield
        except FileNotFoundError:
            raise GatewayError("not_found", "The medium is no longer kept.") from None
        except self._errors as error:
            reason = str(error).partition("\n")[0][:200]
            raise GatewayError("storage_unavailable", f"The media store cannot {what}: {reason}") from error
