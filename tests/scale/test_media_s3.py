"""Media bytes in a real S3 server."""

import tracemalloc
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from media_samples import film, picture, pieces

from trunkline.core.errors import GatewayError
from trunkline.storage.media.store import FileMediaStore, media_store

pytestmark = pytest.mark.scale


@pytest.fixture
def store(tmp_path: Path, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> FileMediaStore:
    for name, value in (
        ("AWS_ENDPOINT_URL_S3", s3_endpoint),
        ("AWS_ACCESS_KEY_ID", "key"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AWS_REGION", "us-east-1"),
    ):
        monkeypatch.setenv(name, value)
    return media_store(tmp_path, "s3://media/some/prefix")


def left_on_disk(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


async def everything(source: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in source])


async def test_media_are_kept_read_in_ranges_and_deleted(store: FileMediaStore, tmp_path: Path) -> None:
    data = film(noisy=True, frames=48)
    for _ in range(2):
        async with store.receive(pieces(data), 1 << 30) as file:
            assert (await store.facts(file)).codec == "h264"
            await store.keep(file)
    assert await everything(store.read(file.sha256)) == data
    assert await everything(store.read(file.sha256, 10, 20)) == data[10:20]
    assert await everything(store.read(file.sha256, len(data) - 7)) == data[-7:]
    assert left_on_disk(tmp_path) == []
    await store.delete(file.sha256)
    await store.delete(file.sha256)
    with pytest.raises(GatewayError) as caught:
        await everything(store.read(file.sha256))
    assert caught.value.code == "not_found"


async def test_a_film_is_never_whole_in_memory(store: FileMediaStore) -> None:
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
    assert read == file.bytes
    assert peak < 24 << 20


async def test_a_bucket_that_refuses_is_said(
    tmp_path: Path, s3_endpoint: str, monkeypatch: pytest.MonkeyPatch, store: FileMediaStore
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wrong")
    refused = media_store(tmp_path, "s3://media/some/prefix")
    async with refused.receive(pieces(picture()), 1 << 30) as file:
        with pytest.raises(GatewayError, match="cannot keep the file") as caught:
            await refused.keep(file)
    assert caught.value.code == "storage_unavailable"
    assert "wrong" not in caught.value.message
