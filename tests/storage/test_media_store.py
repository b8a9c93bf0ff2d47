import asyncio
import hashlib
import io
import subprocess
import sys
import textwrap
import threading
import tracemalloc
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from media_samples import bomb, film, picture, pieces
from PIL import Image

from trunkline.core.errors import GatewayError
from trunkline.core.media import MediaFacts
from trunkline.storage.media.pictures import picture_facts
from trunkline.storage.media.store import DECODERS, FileMediaStore, media_store

MAX = 50_000_000
TYPES = {
    "image/png": lambda: picture("PNG"),
    "image/jpeg": lambda: picture("JPEG"),
    "image/webp": lambda: picture("WEBP"),
    "image/gif": lambda: picture("GIF"),
    "video/mp4": lambda: film("mp4"),
    "video/quicktime": lambda: film("mov"),
    "video/webm": lambda: film("webm"),
}


@pytest.fixture
def store(tmp_path: Path) -> FileMediaStore:
    return media_store(tmp_path, "")


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def read(path: str) -> bytes:
    return Path(path).read_bytes()


async def everything(source: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in source])


async def facts_of(store: FileMediaStore, data: bytes) -> MediaFacts:
    async with store.receive(pieces(data), MAX) as file:
        return await store.facts(file)


async def refused(store: FileMediaStore, data: bytes) -> str:
    with pytest.raises(GatewayError) as caught:
        await facts_of(store, data)
    assert caught.value.code in {"media_refused", "media_damaged"}
    return caught.value.message


@pytest.mark.parametrize("mime_type", TYPES)
async def test_each_type_is_told_by_its_bytes_and_kept(store: FileMediaStore, mime_type: str, tmp_path: Path) -> None:
    data = TYPES[mime_type]()
    async with store.receive(pieces(data), MAX) as file:
        facts = await store.facts(file)
        assert (file.mime_type, file.bytes, file.sha256) == (mime_type, len(data), hashlib.sha256(data).hexdigest())
        assert (facts.width, facts.height) == (64, 48)
        assert (facts.duration_s is not None) == mime_type.startswith("video/")
        await store.keep(file)
    assert await everything(store.read(file.sha256)) == data
    assert await everything(store.read(file.sha256, 10, 20)) == data[10:20]
    assert await everything(store.read(file.sha256, len(data) - 5)) == data[-5:]
    assert len(files(tmp_path)) == 1


async def test_a_film_has_duration_and_codec(store: FileMediaStore) -> None:
    facts = await facts_of(store, film("mp4", frames=36))
    assert facts.duration_s == pytest.approx(3.0, abs=0.1)
    assert facts.codec == "h264"


async def test_the_same_bytes_are_kept_once_and_deleted(store: FileMediaStore, tmp_path: Path) -> None:
    for _ in range(2):
        async with store.receive(pieces(picture()), MAX) as file:
            await store.keep(file)
    assert len(files(tmp_path)) == 1
    await store.delete(file.sha256)
    await store.delete(file.sha256)
    assert files(tmp_path) == []
    with pytest.raises(GatewayError) as caught:
        await everything(store.read(file.sha256))
    assert caught.value.code == "not_found"


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "begins b''"),
        (b"<!doctype html><html>not found</html>" * 9, "doctype"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "svg"),
        (b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n" * 9, "EXTM3U"),
        (b"\x00\x00\x00\x20ftypavif\x00\x00\x00\x00" + bytes(100), "cannot be decoded"),
        (bomb(), "50000x50000"),
        (b"\x00\x00\x00\x18ftypisom" + bytes(200), "cannot be decoded"),
        (b"\x1aE\xdf\xa3\x9fB\x82\x84webm" + bytes(200), "cannot be decoded"),
    ],
)
async def test_what_is_no_medium_is_refused(store: FileMediaStore, data: bytes, told: str, tmp_path: Path) -> None:
    assert told in await refused(store, data)
    assert files(tmp_path) == []


@pytest.mark.parametrize("mime_type", TYPES)
async def test_half_a_file_is_refused(store: FileMediaStore, mime_type: str) -> None:
    data = TYPES[mime_type]()
    await refused(store, data[: len(data) // 2])


@pytest.mark.parametrize("form", ["mp4", "webm"])
async def test_a_film_that_begins_well_and_is_cut_is_refused(store: FileMediaStore, form: str) -> None:
    data = film(form, frames=96, noisy=True)
    assert (await facts_of(store, data)).duration_s == pytest.approx(8.0, abs=0.2)
    assert "cut short" in await refused(store, data[: len(data) * 2 // 3])


async def test_too_many_bytes_are_refused_before_the_end(store: FileMediaStore, tmp_path: Path) -> None:
    sent = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal sent
        yield picture()
        while True:
            sent += 100_000
            yield bytes(100_000)

    with pytest.raises(GatewayError, match="larger than the 5000000 bytes"):
        async with store.receive(endless(), 5_000_000):
            pass
    assert sent <= 5_200_000
    assert files(tmp_path) == []


async def test_a_file_is_never_whole_in_memory(store: FileMediaStore) -> None:
    async def long() -> AsyncIterator[bytes]:
        yield film()
        for _ in range(64):
            yield bytes(1 << 20)

    tracemalloc.start()
    async with store.receive(long(), 1 << 30) as file:
        await store.keep(file)
    read = sum([len(piece) async for piece in store.read(file.sha256)])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert read == file.bytes > 64 << 20
    assert peak < 8 << 20


async def test_a_picture_is_converted_without_its_metadata(store: FileMediaStore) -> None:
    out = io.BytesIO()
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by 90 degrees
    exif[0x010F] = "a camera"
    Image.new("RGB", (60, 40), (250, 0, 0)).save(out, "JPEG", exif=exif, comment=b"a secret")
    for wanted in ("image/png", "image/webp", "image/jpeg"):
        async with store.receive(pieces(out.getvalue()), MAX) as file, store.convert(file, wanted) as other:
            assert other.mime_type == wanted
            data = read(other.path)
            assert other.sha256 == hashlib.sha256(data).hexdigest()
            assert b"camera" not in data
            assert b"secret" not in data
            with Image.open(other.path) as seen:
                assert seen.size == (40, 60)


async def test_what_is_transparent_becomes_white_in_a_jpeg(store: FileMediaStore) -> None:
    for mode, colour in (("RGBA", (0, 0, 0, 0)), ("LA", (0, 0))):
        out = io.BytesIO()
        Image.new(mode, (8, 8), colour).save(out, "PNG")
        async with store.receive(pieces(out.getvalue()), MAX) as file, store.convert(file, "image/jpeg") as other:
            with Image.open(other.path) as seen:
                assert seen.getpixel((4, 4)) == (255, 255, 255)


async def test_a_cover_is_the_first_frame_that_shows_something(store: FileMediaStore) -> None:
    for dark in (0, 8):
        async with store.receive(pieces(film(dark=dark)), MAX) as file, store.cover(file) as cover:
            with Image.open(cover.path) as seen:
                pixel = seen.getpixel((30, 20))
                assert isinstance(pixel, tuple)
                assert pixel[0] > 150
                assert (seen.format, seen.size) == ("JPEG", (64, 48))


def test_a_full_disk_is_said_and_leaves_nothing(tmp_path: Path) -> None:
    script = """
        import asyncio, resource, sys
        from pathlib import Path
        from media_samples import pieces, picture
        from trunkline.core.errors import GatewayError
        from trunkline.storage.media.store import media_store

        async def main():
            store = media_store(Path(sys.argv[1]), "")
            resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, 1_500_000))
            try:
                async with store.receive(pieces(picture() + bytes(4_000_000), 100_000), 10_000_000) as file:
                    print("kept", file.bytes)
            except GatewayError as error:
                print(error.status, error.code, error.message)

        asyncio.run(main())
    """
    support = str(Path(__file__).parent.parent / "support")
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {support!r})\n" + textwrap.dedent(script), tmp_path],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "503 storage_unavailable The media store cannot take the file in: its disk is full.\n"
    assert files(tmp_path) == []


async def test_of_a_file_whose_client_leaves_nothing_is_left(
    store: FileMediaStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, go = threading.Event(), threading.Event()

    @contextmanager
    def slow(_what: str) -> Iterator[None]:
        begun.set()
        go.wait(60)
        yield

    monkeypatch.setattr("trunkline.storage.media.workroom.full_disk_named", slow)
    taking = asyncio.ensure_future(facts_of(store, picture("PNG")))
    await asyncio.to_thread(begun.wait, 60)
    taking.cancel()
    for _ in range(5):
        await asyncio.sleep(0)
    go.set()
    await asyncio.wait([taking])
    await asyncio.get_running_loop().shutdown_default_executor()
    assert taking.cancelled()
    assert files(tmp_path) == []


async def test_no_more_files_are_decoded_at_a_time_for_clients_that_leave(
    store: FileMediaStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoding: list[str] = []
    go = threading.Event()

    def look(path: Path, mime_type: str) -> MediaFacts:
        decoding.append(path.name)
        go.wait(60)
        return picture_facts(path, mime_type)

    monkeypatch.setattr("trunkline.storage.media.store.picture_facts", look)
    taking = [asyncio.ensure_future(facts_of(store, picture("PNG"))) for _ in range(DECODERS + 1)]
    while len(decoding) < DECODERS:  # noqa: ASYNC110 - they are in threads
        await asyncio.sleep(0.01)
    for one in taking[:DECODERS]:
        one.cancel()
    await asyncio.sleep(0.1)
    assert len(decoding) == DECODERS
    go.set()
    await asyncio.wait(taking)
    assert [one.cancelled() for one in taking] == [True] * DECODERS + [False]
