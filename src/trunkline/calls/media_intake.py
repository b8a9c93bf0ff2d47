"""Takes a provider's picture or film in: fetched or decoded, looked at, converted if need be, kept, listed."""

import asyncio
import hashlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack
from typing import TypeVar

from msgspec import Struct

from trunkline.calls.unbroken import unbroken
from trunkline.core.chat import Target
from trunkline.core.errors import GatewayError
from trunkline.core.inline import data_url, pieces
from trunkline.core.media import FileRecord, Media, MediaFacts, MediaFile, MediaInput, MediaKind, MediaRecord
from trunkline.core.media_type import FOREIGN
from trunkline.core.ports import MediaStore, Upstream
from trunkline.core.state import MediaIndex, StorageError

PREFIX: dict[MediaKind, str] = {"image": "img_", "video": "vid_", "cover": "cov_"}
PASSING = frozenset({"media_unavailable", "media_gone", "storage_unavailable"})
"""What may be otherwise in a moment, and is tried again."""
R = TypeVar("R")
HELD_S = 24 * 3600
log = logging.getLogger(__name__)
DOWNLOADS = 3
"""How often a file that arrives damaged (cut short) is fetched."""


class MediaLimits(Struct, frozen=True):
    """What is taken in, and for how long it is kept."""

    max_bytes: int = 512 << 20
    retain_s: int = 30 * 24 * 3600
    """0: for ever."""
    patience_s: float = 120.0
    """For how long a link that does not answer is tried again."""
    gone_s: float = 20.0
    """For how long one is that leads nowhere: some lead somewhere a moment later."""
    store_s: float = 3600.0
    """For how long a job's medium, which is paid for, waits for a store that is away or full."""


class Origin(Struct, frozen=True, kw_only=True):
    """Whose medium it is, where it came from, and what it shall be."""

    key_id: str = ""
    job_id: str = ""
    model: str = ""
    target: Target | None = None
    credential_id: str = ""
    output_format: str = ""
    """`png`, `jpeg` or `webp`: what the client asked for; empty: as it comes."""
    ordinal: int | None = None
    """The medium's place in its job, so that taking it in twice makes one record; None: a record of its own."""
    passing: bool = False
    """Kept for a day only: a picture that is not finished."""

    @property
    def paid(self) -> bool:
        """Whether it is a job's result, that nobody gets again."""
        return self.ordinal is not None and not self.passing


class MediaIntake:
    """Fetches media once and keeps them; a download is tried again, a generation never."""

    def __init__(self, store: MediaStore, index: MediaIndex, upstream: Upstream, limits: MediaLimits) -> None:
        self._store = store
        self._index = index
        self._upstream = upstream
        self._limits = limits

    def over(self, upstream: Upstream) -> "MediaIntake":
        """Give one that fetches through another door."""
        return MediaIntake(self._store, self._index, upstream, self._limits)

    async def take(self, media: Media, origin: Origin) -> MediaRecord:
        """Keep the medium, with a film's cover, and give its record; again for the same job and ordinal: the same.

        Raises GatewayError `media_refused`, or `media_unavailable`, `storage_unavailable` when patience is over.
        """
        media_id = _id(media.kind, origin)
        if origin.ordinal is not None and (known := await self._index.get(media_id)):
            return known
        limits, loop = self._limits, asyncio.get_running_loop()
        patience_s = {
            "media_gone": min(limits.gone_s, limits.patience_s),
            "storage_unavailable": limits.store_s if origin.paid else limits.patience_s,
        }
        began_s, pause_s, damaged = loop.time(), 0.5, 0
        while True:
            try:
                return await self._take(media.kind, media_id, media, origin)
            except GatewayError as error:
                damaged += error.code == "media_damaged"
                again = error.code in PASSING or 0 < damaged < DOWNLOADS
                give_up = began_s + patience_s.get(error.code, limits.patience_s)
                if not again or (media.data and error.code != "storage_unavailable") or loop.time() + pause_s > give_up:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 15.0)

    async def hold(self, picture: MediaInput, key_id: str) -> MediaInput:
        """Put a client's picture by for a job, for a day; its bytes are then named by their hash.

        Raises GatewayError `invalid_value` for what is no picture.
        """
        record = await self._put_by(
            Media("image", url=picture.url, data=picture.data), key_id=key_id, purpose="job", retain_s=HELD_S
        )
        return MediaInput(mime_type=record.mime_type, role=picture.role, sha256=record.sha256)

    async def upload(self, data: bytes, *, filename: str, purpose: str, key_id: str) -> FileRecord:
        """Keep a picture that a client uploads. Raises GatewayError `invalid_value` for what is none."""
        media = Media("image", data=data)
        retain_s = self._limits.retain_s
        return await self._put_by(media, key_id=key_id, purpose=purpose, retain_s=retain_s, filename=filename)

    async def _put_by(
        self, media: Media, *, key_id: str, purpose: str, retain_s: int, filename: str = ""
    ) -> FileRecord:
        try:
            async with AsyncExitStack() as stack:
                source = self._source(media, Origin())
                file = await stack.enter_async_context(self._store.receive(source, self._limits.max_bytes))
                check_kind("image", file, "The client's")
                file, facts = await self._converted(stack, file, "")
                now_ms = time.time_ns() // 1_000_000
                record = FileRecord(
                    id=f"file-{secrets.token_hex(12)}",
                    key_id=key_id,
                    purpose=purpose,
                    filename=filename,
                    sha256=file.sha256,
                    storage_key=file.sha256,
                    mime_type=file.mime_type,
                    bytes=file.bytes,
                    width=facts.width,
                    height=facts.height,
                    expires_ms=now_ms + retain_s * 1000 if retain_s else None,
                )
                return await unbroken(self._listed(file, self._index.add_file, record))
        except GatewayError as error:
            if not error.code.startswith("media_"):
                raise
            told = error.message.replace("The provider's ", "Its ")
            raise GatewayError("invalid_value", f"The picture cannot be used: {told}") from None

    async def load(self, sha256: str) -> bytes:
        """Give a held picture's bytes."""
        return b"".join([piece async for piece in self._store.read(sha256)])

    async def _take(self, kind: MediaKind, media_id: str, media: Media, origin: Origin) -> MediaRecord:
        async with AsyncExitStack() as stack:
            source = self._source(media, origin)
            file = await stack.enter_async_context(self._store.receive(source, self._limits.max_bytes))
            check_kind(kind, file, "The provider's")
            wanted = f"image/{origin.output_format}" if kind == "image" and origin.output_format else ""
            file, facts = await self._converted(stack, file, wanted)
            cover_id = await self._cover(media.cover_url, file, origin) if kind == "video" else ""
            return await self._keep(kind, media_id, file, facts, cover_id, origin)

    async def _converted(self, stack: AsyncExitStack, file: MediaFile, wanted: str) -> tuple[MediaFile, MediaFacts]:
        """Give the file as it is wanted, or, if it may not stay as it is, in a type that is kept."""
        facts = await self._store.facts(file)
        if (wanted and file.mime_type != wanted) or file.mime_type in FOREIGN:
            file = await stack.enter_async_context(self._store.convert(file, wanted))
            facts = await self._store.facts(file)
        return file, facts

    async def _cover(self, url: str, film: MediaFile, origin: Origin) -> str:
        """Keep the provider's cover if it has a good one, else a frame of the film."""
        cover_id = _id("cover", origin)
        if origin.ordinal is not None:
            known = await self._patiently(origin, lambda: self._index.get(cover_id))
            if known is not None:
                return cover_id
        if url:
            try:
                return (await self._take("cover", cover_id, Media("cover", url=url), origin)).id
            except GatewayError as error:
                if not error.code.startswith("media_"):
                    raise
        async with self._store.cover(film) as frame:
            return (await self._keep("cover", cover_id, frame, await self._store.facts(frame), "", origin)).id

    async def _keep(  # noqa: PLR0913, PLR0917 - the parts of one record
        self, kind: MediaKind, media_id: str, file: MediaFile, facts: MediaFacts, cover_id: str, origin: Origin
    ) -> MediaRecord:
        now_ms = time.time_ns() // 1_000_000
        retain_s = HELD_S if origin.passing else self._limits.retain_s
        record = MediaRecord(
            id=media_id,
            kind=kind,
            key_id=origin.key_id,
            job_id=origin.job_id,
            model=origin.model,
            sha256=file.sha256,
            storage_key=file.sha256,
            mime_type=file.mime_type,
            bytes=file.bytes,
            width=facts.width,
            height=facts.height,
            duration_s=facts.duration_s,
            cover_id=cover_id,
            created_ms=now_ms,
            expires_ms=now_ms + retain_s * 1000 if retain_s else None,
        )
        kept = False

        async def listed() -> MediaRecord:
            nonlocal kept
            if not kept:
                await self._store.keep(file)
                kept = True
            return await self._index.add(record)

        return await self._patiently(origin, lambda: unbroken(listed()))

    async def _patiently(self, origin: Origin, work: Callable[[], Awaitable[R]]) -> R:
        """Wait with a file in hand for a store or database that is away: the provider's link may not live so long."""
        loop = asyncio.get_running_loop()
        give_up, pause_s = loop.time() + (self._limits.store_s if origin.paid else 0.0), 0.5
        while True:
            try:
                return await work()
            except (GatewayError, StorageError) as error:
                away = isinstance(error, StorageError) or error.code == "storage_unavailable"
                if not away or loop.time() + pause_s > give_up:
                    raise
                log.warning("a file waits to be stored: %s", error)
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, 15.0)

    async def _listed(self, file: MediaFile, add: Callable[[R], Awaitable[R]], record: R) -> R:
        """Keep a file and its record: without that it would lie there for ever."""
        await self._store.keep(file)
        return await add(record)

    def _source(self, media: Media, origin: Origin) -> AsyncIterator[bytes]:
        url = media.url
        if media.data:
            return _each(pieces(media.data))
        if url[:5].lower() == "data:":
            try:
                return _each(data_url(url)[1])
            except ValueError as error:
                raise GatewayError("media_refused", f"The data URL cannot be read: {error}.") from None
        return self._upstream.download(
            url,
            max_bytes=self._limits.max_bytes,
            target=origin.target,
            credential_id=origin.credential_id,
            authorized=media.authorized or url.startswith("/"),
        )


def check_kind(kind: MediaKind, file: MediaFile, whose: str) -> None:
    """Refuse a film where a picture should be, and the other way round."""
    if file.mime_type.startswith("video/") != (kind == "video"):
        raise GatewayError("media_refused", f"{whose} {kind} is of type {file.mime_type}.")


async def _each(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Give the parts one by one, letting others run in between."""
    try:
        for part in parts:
            yield part
            await asyncio.sleep(0)
    except ValueError as error:
        raise GatewayError("media_refused", f"The inline data cannot be decoded: {error}.") from None


def _id(kind: MediaKind, origin: Origin) -> str:
    if origin.ordinal is None:
        return PREFIX[kind] + secrets.token_hex(12)
    seed = f"{origin.job_id}\n{origin.ordinal}".encode()
    return PREFIX[kind] + hashlib.blake2s(seed, digest_size=12).hexdigest()
