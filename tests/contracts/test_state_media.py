"""The media index: records that may share a blob, and which blobs nobody uses any longer."""

import pytest

from trunkline.core.media import FileRecord, MediaRecord
from trunkline.core.state import MediaIndex
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.media import SqlMediaIndex


@pytest.fixture
def index(database: Database) -> MediaIndex:
    return SqlMediaIndex(database)


def a_picture(name: str, blob: str = "blob_1", **changes: object) -> MediaRecord:
    facts = {"sha256": blob, "storage_key": blob, "mime_type": "image/png", "bytes": 10, "width": 3, "height": 2}
    return MediaRecord(**({"id": name, "kind": "image"} | facts | changes))  # type: ignore[arg-type]


async def test_a_record_comes_back_as_it_was_stored(index: MediaIndex) -> None:
    film = a_picture("vid_1", kind="video", duration_s=4.0, cover_id="cov_1", key_id="key_1", job_id="job_1", model="m")
    stored = await index.add(film)
    assert stored == await index.get("vid_1")
    assert (stored.kind, stored.duration_s, stored.cover_id, stored.width) == ("video", 4.0, "cov_1", 3)
    assert stored.created_ms > 0
    assert await index.of_job("job_1") == [stored]
    assert await index.by_hash("blob_1") == stored
    assert await index.get("vid_2") is await index.by_hash("other") is None


async def test_a_blob_is_free_when_its_last_record_goes(index: MediaIndex) -> None:
    await index.add(a_picture("img_1"))
    await index.add(a_picture("img_2"))
    await index.add(a_picture("img_3", "blob_2"))
    await index.add_file(
        FileRecord(id="file_1", purpose="vision", sha256="b", storage_key="blob_2", mime_type="image/png", bytes=10)
    )
    assert await index.totals() == (3, 20)
    assert await index.delete(["img_1", "img_3", "unknown"]) == []
    assert await index.delete(["img_2"]) == ["blob_1"]
    assert await index.delete_files(["file_1"]) == ["blob_2"]
    assert await index.totals() == (0, 0)
    assert await index.delete([]) == []


async def test_pages_and_expiry(index: MediaIndex) -> None:
    for n in range(5):
        await index.add(a_picture(f"img_{n}", key_id="key_1" if n % 2 else "", expires_ms=1 if n < 2 else None))
    newest = [record.id for record in await index.page(limit=2)]
    rest = [record.id for record in await index.page(limit=9, after=newest[-1])]
    assert [record.id for record in await index.oldest()] == (newest + rest)[::-1]
    assert {record.id for record in await index.page(key_id="key_1", kinds=["image"])} == {"img_1", "img_3"}
    assert await index.page(kinds=["video"]) == []
    assert sorted(await index.expired()) == ["img_0", "img_1"]


async def test_uploads(index: MediaIndex) -> None:
    upload = FileRecord(
        id="file_1", key_id="k", purpose="vision", filename="ä.png", sha256="s", storage_key="b", mime_type="x",
        bytes=1, expires_ms=1,
    )  # fmt: skip
    stored = await index.add_file(upload)
    assert await index.get_file("file_1") == stored
    assert stored.filename == "ä.png"
    assert await index.get_file("file_2") is None
    assert await index.expired_files() == ["file_1"]
