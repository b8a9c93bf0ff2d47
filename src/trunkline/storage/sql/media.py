"""The index of media and uploads on SQL: the port `core.state.MediaIndex`."""

from collections.abc import Sequence

from sqlalchemy import Table, bindparam, delete, func, select, union

from trunkline.core.media import FileRecord, MediaRecord
from trunkline.storage.sql.database import Database, among, now_ms, upsert
from trunkline.storage.sql.records import Records, paged
from trunkline.storage.sql.tables import files, media

MEDIA = Records(media, MediaRecord)
FILES = Records(files, FileRecord)
GET = select(*MEDIA.columns).where(media.c.id == bindparam("which"))
GET_FILE = select(*FILES.columns).where(files.c.id == bindparam("which"))
OLDEST = select(*MEDIA.columns).order_by(media.c.created_ms, media.c.id).limit(bindparam("limit"))
OF_JOB = OLDEST.limit(None).where(media.c.job_id == bindparam("which"))
BY_HASH = OLDEST.limit(1).where(media.c.sha256 == bindparam("which"))
BLOBS = select(func.max(media.c.bytes).label("bytes")).group_by(media.c.storage_key).subquery()
TOTALS = select(
    select(func.count()).select_from(media).scalar_subquery(),
    select(func.coalesce(func.sum(BLOBS.c.bytes), 0)).scalar_subquery(),
)


class SqlMediaIndex:
    """See `core.state.MediaIndex`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add(self, record: MediaRecord) -> MediaRecord:
        values = MEDIA.values(record) | {"created_ms": now_ms()}
        async with self._database.write() as connection:
            statement = upsert(connection, media).values(values).on_conflict_do_nothing().returning(*MEDIA.columns)
            row = (await connection.execute(statement)).one_or_none()
            return MEDIA.read(row or (await connection.execute(GET, {"which": record.id})).one())

    async def get(self, media_id: str) -> MediaRecord | None:
        row = await self._database.first(GET, {"which": media_id})
        return None if row is None else MEDIA.read(row)

    async def page(
        self, *, key_id: str | None = None, kinds: Sequence[str] = (), after: str = "", limit: int = 50
    ) -> list[MediaRecord]:
        query = select(*MEDIA.columns).limit(limit)
        if key_id is not None:
            query = query.where(media.c.key_id == key_id)
        if kinds:
            query = query.where(media.c.kind.in_(kinds))
        return [MEDIA.read(row) for row in await self._database.rows(paged(query, media, after))]

    async def of_job(self, job_id: str) -> list[MediaRecord]:
        return [MEDIA.read(row) for row in await self._database.rows(OF_JOB, {"which": job_id})]

    async def by_hash(self, sha256: str) -> MediaRecord | None:
        row = await self._database.first(BY_HASH, {"which": sha256})
        return None if row is None else MEDIA.read(row)

    async def oldest(self, *, limit: int = 200) -> list[MediaRecord]:
        return [MEDIA.read(row) for row in await self._database.rows(OLDEST, {"limit": limit})]

    async def totals(self) -> tuple[int, int]:
        [(count, size)] = await self._database.rows(TOTALS)
        return int(count), int(size)

    async def delete(self, media_ids: Sequence[str]) -> list[str]:
        return await self._delete(media, media_ids)

    async def expired(self, *, limit: int = 200) -> list[str]:
        return await self._expired(media, limit)

    async def add_file(self, record: FileRecord) -> FileRecord:
        values = FILES.values(record) | {"created_ms": now_ms()}
        async with self._database.write() as connection:
            return FILES.read((await connection.execute(files.insert().values(values).returning(*FILES.columns))).one())

    async def get_file(self, file_id: str) -> FileRecord | None:
        row = await self._database.first(GET_FILE, {"which": file_id})
        return None if row is None else FILES.read(row)

    async def delete_files(self, file_ids: Sequence[str]) -> list[str]:
        return await self._delete(files, file_ids)

    async def expired_files(self, *, limit: int = 200) -> list[str]:
        return await self._expired(files, limit)

    async def _expired(self, table: Table, limit: int) -> list[str]:
        query = select(table.c.id).where(table.c.expires_ms <= now_ms()).order_by(table.c.expires_ms).limit(limit)
        return [row.id for row in await self._database.rows(query)]

    async def _delete(self, table: Table, ids: Sequence[str]) -> list[str]:
        async with self._database.write() as connection:
            statement = delete(table).where(among(table.c.id, ids)).returning(table.c.storage_key)
            blobs = set((await connection.execute(statement)).scalars())
            used = union(
                select(media.c.storage_key).where(among(media.c.storage_key, blobs)),
                select(files.c.storage_key).where(among(files.c.storage_key, blobs)),
            )
            return sorted(blobs - set((await connection.execute(used)).scalars()))
