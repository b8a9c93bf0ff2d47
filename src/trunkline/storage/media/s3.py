"""Media bytes in any S3: `s3://bucket/prefix`, credentials and endpoint from the usual AWS variables."""

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from trunkline.core.errors import GatewayError

PIECE_BYTES = 1 << 18
log = logging.getLogger(__name__)
AWAY_S = 60.0
"""How long who reads a file waits for a store that goes away in the midst of it."""
AGAIN_S = 0.5
if TYPE_CHECKING:
    from obstore import GetOptions
    from obstore.store import ClientConfig, RetryConfig

# By default a request is tried for three minutes, while a client waits; and ended after half a minute, read or not.
_RETRIES: "RetryConfig" = {
    "max_retries": 3,
    "retry_timeout": timedelta(seconds=10),
    "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=2), "base": 2},
}
_TIMEOUTS: "ClientConfig" = {
    "connect_timeout": timedelta(seconds=5),
    "read_timeout": timedelta(seconds=15),
    "timeout": timedelta(days=1),
}
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
            client_options={**_TIMEOUTS, "allow_http": endpoint.startswith("http://")},
            retry_config=_RETRIES,
        )

    async def keep(self, source: Path, sha256: str) -> None:
        """Upload the file, in parts when it is large; the object appears whole or not at all."""
        with self._named("keep the file"):
            await self._api.put_async(self._store, sha256, source)

    async def read(self, sha256: str, start: int, end: int | None) -> AsyncGenerator[bytes, None]:
        """Give the bytes in pieces, going on where the store broke off; raises GatewayError `not_found`."""
        at, away_until = start, 0.0
        while end is None or at < end:
            wanted: GetOptions = {"range": {"offset": at} if end is None else (at, end)}
            try:
                with self._named("read the file"):
                    answer = await self._api.get_async(self._store, sha256, options=wanted)
                    async for piece in answer.stream(min_chunk_size=PIECE_BYTES):
                        at, away_until = at + len(piece), time.monotonic() + AWAY_S
                        yield bytes(piece)
            except GatewayError as error:
                if error.code != "storage_unavailable" or time.monotonic() > away_until:
                    raise
                await asyncio.sleep(AGAIN_S)
            else:
                return

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
            log.warning(
                "S3 cannot %s: %s", what, str(error).partition("\n")[0][:400]
            )  # names what is no client's business
            told = f"The media store cannot {what} now; the gateway's log says why."
            raise GatewayError("storage_unavailable", told) from error
