"""Lets media go: when their time is over, when they take too much room, when their owner says so."""

from collections.abc import Sequence

from trunkline.core.ports import MediaStore
from trunkline.core.state import MediaIndex

BATCH = 200


class MediaRetention:
    """Deletes records first and bytes after, and those only when no other record has them."""

    def __init__(self, store: MediaStore, index: MediaIndex, *, max_total_bytes: int = 0) -> None:
        """`max_total_bytes` 0: no bound on the whole."""
        self._store = store
        self._index = index
        self._max_total_bytes = max_total_bytes

    async def delete(self, media_ids: Sequence[str]) -> None:
        """Delete media with their covers."""
        records = [record for media_id in media_ids if (record := await self._index.get(media_id))]
        covers = [record.cover_id for record in records if record.cover_id]
        await self._drop(await self._index.delete([*(record.id for record in records), *covers]))

    async def prune(self) -> int:
        """Delete what has expired, then the oldest while all together are too large; gives how many records."""
        gone = 0
        while expired := await self._index.expired(limit=BATCH):
            await self._drop(await self._index.delete(expired))
            gone += len(expired)
        while files := await self._index.expired_files(limit=BATCH):
            await self._drop(await self._index.delete_files(files))
            gone += len(files)
        while self._max_total_bytes:
            surplus = (await self._index.totals())[1] - self._max_total_bytes
            oldest = await self._index.oldest(limit=BATCH) if surplus > 0 else []
            if not oldest:
                break
            chosen: list[str] = []
            for record in oldest:
                if surplus <= 0:
                    break
                chosen.append(record.id)
                surplus -= record.bytes
            await self._drop(await self._index.delete(chosen))
            gone += len(chosen)
        return gone

    async def _drop(self, keys: Sequence[str]) -> None:
        for key in keys:
            if await self._index.by_hash(key) is None:  # the same picture may have been made again just now
                await self._store.delete(key)
