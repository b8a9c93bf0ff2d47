"""Taking media in and letting them go, over a real store, a real index and a real socket."""

import asyncio
import base64
import io
import shutil
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from film_provider import FilmProvider
from job_tools import Rig, opened
from media_samples import bomb, film, picture
from msgspec.structs import replace
from PIL import Image
from sqlalchemy import select

from trunkline.calls.media_intake import Origin
from trunkline.calls.media_retention import MediaRetention
from trunkline.core.errors import GatewayError
from trunkline.core.media import Media, MediaFile, MediaInput
from trunkline.storage.sql.tables import files, media


@pytest_asyncio.fixture
async def rig(tmp_path: Path, migrated: Path) -> AsyncIterator[Rig]:
    shutil.copy(migrated, tmp_path / "t.db")
    async with opened(tmp_path / "t.db") as database:
        rig = Rig(database, tmp_path)
        yield rig
        await rig.client.aclose()


def blobs(rig: Rig) -> list[str]:
    return sorted(path.name for path in (rig.data_dir / "media").glob("??/*"))


def data_url(data: bytes, parameters: str = "image/png;base64") -> str:
    return f"data:{parameters}," + base64.b64encode(data).decode()


async def test_a_data_url_is_kept_with_its_facts(rig: Rig) -> None:
    record = await rig.intake.take(Media("image", url=data_url(picture())), Origin(key_id="k", model="m"))
    assert (record.kind, record.mime_type, record.width, record.height) == ("image", "image/png", 64, 48)
    assert record.bytes == len(picture())
    assert record.id.startswith("img_")
    assert await rig.index.get(record.id) == record


@pytest.mark.parametrize(
    "url",
    [
        "data:image/png;base64,%%%",
        "data:image/png;base64,AAAA",
        "data:,hello",
        "data:nothing",
        data_url(bomb()),
        data_url(film()),
    ],
)
async def test_a_bad_data_url_is_refused(rig: Rig, url: str) -> None:
    with pytest.raises(GatewayError) as caught:
        await rig.intake.take(Media("image", url=url), Origin())
    assert caught.value.code in {"media_refused", "media_damaged"}
    assert blobs(rig) == []


async def test_base64_is_read_as_it_comes_in_the_wild(rig: Rig) -> None:
    text = base64.urlsafe_b64encode(picture()).decode().rstrip("=")
    lines = "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    record = await rig.intake.take(Media("image", url=f"data:image/png;charset=utf-8;BASE64,{lines}"), Origin())
    assert record.bytes == len(picture())


async def test_the_same_picture_twice_is_two_records_and_one_file(rig: Rig) -> None:
    first, second = [await rig.intake.take(Media("image", data=picture()), Origin()) for _ in range(2)]
    assert first.id != second.id
    assert blobs(rig) == [first.sha256]
    retention = MediaRetention(rig.store, rig.index)
    await retention.delete([first.id])
    assert blobs(rig) == [first.sha256]
    await retention.delete([second.id, "img_unknown"])
    assert blobs(rig) == []


async def test_the_same_medium_of_a_job_is_taken_once(rig: Rig) -> None:
    async with FilmProvider() as provider:
        provider.tasks["t1"] = {}
        origin = Origin(job_id="job_1", ordinal=0)
        media = Media("video", url=f"{provider.url}/files/t1")
        first, second = [await rig.intake.take(media, origin) for _ in range(2)]
        assert first == second
        assert provider.seen["GET /files/t1"] == 1


async def test_a_providers_cover_is_taken_and_a_bad_one_replaced(rig: Rig) -> None:
    async with FilmProvider() as provider:
        provider.tasks |= {"t1": {}, "t2": {"file": "dead"}, "t3": {"file": "html"}}
        film_url = f"{provider.url}/files/t1"
        for cover, mime_type in (
            (data_url(picture("WEBP")), "image/webp"),
            (f"{provider.url}/files/t2", "image/jpeg"),
            (f"{provider.url}/files/t3", "image/jpeg"),
            ("", "image/jpeg"),
        ):
            record = await rig.intake.take(Media("video", url=film_url, cover_url=cover), Origin(job_id=cover))
            kept = await rig.index.get(record.cover_id)
            assert kept is not None
            assert (kept.kind, kept.mime_type) == ("cover", mime_type)


async def test_what_a_client_sends_along_must_be_a_picture(rig: Rig) -> None:
    for data in (
        b"%PDF-1.7",
        b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        b"BMW is no bitmap, however it begins",
        film(),
    ):
        with pytest.raises(GatewayError) as caught:
            await rig.intake.hold(MediaInput(data=data), "k")
        assert (caught.value.status, caught.value.code) == (400, "invalid_value")


@pytest.mark.parametrize(
    ("form", "mode", "mime_type"),
    [
        ("AVIF", "RGB", "image/jpeg"),
        ("AVIF", "RGBA", "image/png"),
        ("BMP", "RGB", "image/jpeg"),
        ("TIFF", "RGB", "image/jpeg"),
        ("TIFF", "RGBA", "image/png"),
    ],
)
async def test_a_picture_of_a_type_that_few_providers_read_is_converted(
    rig: Rig, form: str, mode: str, mime_type: str
) -> None:
    held = await rig.intake.hold(MediaInput(data=picture(form, mode=mode)), "k")
    assert held.mime_type == mime_type
    with Image.open(io.BytesIO(await rig.intake.load(held.sha256))) as kept:
        assert (kept.size, kept.get_format_mimetype()) == ((64, 48), mime_type)
    record = await rig.intake.take(Media("image", data=picture(form, mode=mode)), Origin())
    assert record.mime_type == mime_type
    assert blobs(rig) == [held.sha256]


@pytest.mark.parametrize("data", [picture("BMP")[:900], picture("TIFF")[:900], picture("AVIF")[:900]])
async def test_a_torn_one_is_told(rig: Rig, data: bytes) -> None:
    with pytest.raises(GatewayError) as caught:
        await rig.intake.hold(MediaInput(data=data), "k")
    assert (caught.value.status, caught.value.code) == (400, "invalid_value")
    assert "cannot be decoded" in caught.value.message


async def test_a_bitmap_that_claims_too_many_pixels_is_not_decoded(rig: Rig) -> None:
    data = bytearray(picture("BMP"))
    data[18:26] = (200_000).to_bytes(4, "little") * 2
    with pytest.raises(GatewayError, match="claims 200000x200000 pixels"):
        await rig.intake.hold(MediaInput(data=bytes(data)), "k")


async def test_expired_media_go_with_their_bytes(rig: Rig) -> None:
    record = await rig.intake.take(Media("image", data=picture()), Origin())
    held = await rig.intake.hold(MediaInput(data=picture("JPEG")), "k")
    retention = MediaRetention(rig.store, rig.index)
    assert await retention.prune() == 0
    await rig.index.delete([record.id])
    await rig.index.add(replace(record, expires_ms=time.time_ns() // 1_000_000 - 1))
    assert await retention.prune() == 1
    assert blobs(rig) == [held.sha256]


async def test_the_oldest_media_make_room(rig: Rig) -> None:
    sizes = [(64, 48), (64, 49), (64, 50)]
    records = [await rig.intake.take(Media("image", data=picture("PNG", size)), Origin()) for size in sizes]
    room = records[1].bytes + records[2].bytes
    assert await MediaRetention(rig.store, rig.index, max_total_bytes=room).prune() == 1
    assert blobs(rig) == sorted(record.sha256 for record in records[1:])
    assert await MediaRetention(rig.store, rig.index, max_total_bytes=1).prune() == 2
    assert blobs(rig) == []


async def test_whoever_leaves_as_its_picture_is_kept_leaves_no_file_without_a_record(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep, kept = rig.intake._store.keep, asyncio.Event()

    async def slow(file: MediaFile) -> None:
        await keep(file)
        kept.set()
        await asyncio.sleep(0.1)

    monkeypatch.setattr(rig.intake._store, "keep", slow)
    for taking in (
        rig.intake.take(Media("image", url=data_url(picture())), Origin(key_id="k", model="m")),
        rig.intake.upload(picture(size=(32, 32)), filename="", purpose="vision", key_id="k"),
    ):
        kept.clear()
        task = asyncio.ensure_future(taking)
        await kept.wait()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
    async with rig.database.read() as connection:
        told = [*(await connection.execute(select(media.c.sha256))).scalars()]
        told += (await connection.execute(select(files.c.sha256))).scalars()
    assert blobs(rig) == sorted(told)
    assert len(told) == 2
