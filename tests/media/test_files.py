"""`GET /v1/media/{id}` over real sockets."""

import hashlib
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from gateway import Gateway, gateway
from media_samples import picture, pieces

from trunkline.calls.media_links import MediaLinks
from trunkline.config.secret_file import server_secret
from trunkline.core.media import MediaRecord
from trunkline.http.media import read_range
from trunkline.storage.media.store import media_store
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.media import SqlMediaIndex

DATA = picture("PNG", (400, 300))


def a_record(**changes: object) -> MediaRecord:
    sha256 = hashlib.sha256(DATA).hexdigest()
    values = {"id": f"img_{1:024x}", "kind": "image", "sha256": sha256, "storage_key": sha256, "bytes": len(DATA)}
    times = {"created_ms": 1, "expires_ms": time.time_ns() // 1_000_000 + 60_000}
    return MediaRecord(**{**values, "mime_type": "image/png", **times, **changes})  # type: ignore[arg-type]


async def kept(data_dir: Path, record: MediaRecord) -> str:
    """Keep a picture, and give the path and query of its link."""
    store = media_store(data_dir, "")
    async with store.receive(pieces(DATA), 1 << 30) as file:
        await store.keep(file)
    database = Database.at(data_dir / "trunkline.db")
    await SqlMediaIndex(database).add(record)
    await database.close()
    url = urlsplit(MediaLinks(server_secret(data_dir), 0).url("http://x", record))
    return f"{url.path}?{url.query}"


async def get(gate: Gateway, link: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], bytes]:
    answer = await gate.get(link, method, **headers)
    return answer.status, answer.headers, b"" if method == "HEAD" or answer.status == 304 else await answer.body()


async def test_a_link_shows_the_picture_and_nothing_more(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        link = await kept(tmp_path, a_record())
        status, headers, body = await get(gate, link)
        assert (status, body) == (200, DATA)
        assert headers["content-type"] == "image/png"
        assert headers["content-disposition"] == f'inline; filename="img_{1:024x}.png"'
        assert headers["x-content-type-options"] == "nosniff"
        assert "sandbox" in headers["content-security-policy"]
        status, head, body = await get(gate, link, "HEAD")
        assert (status, body) == (200, b"")
        assert head["content-length"] == str(len(DATA))
        assert (await get(gate, link, if_none_match=headers["etag"]))[0] == 304
        assert (await get(gate, link, if_none_match='"other"'))[0] == 200


async def test_parts_of_it_can_be_had(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        link = await kept(tmp_path, a_record())
        status, headers, body = await get(gate, link, range="bytes=10-19")
        assert (status, body) == (206, DATA[10:20])
        assert headers["content-range"] == f"bytes 10-19/{len(DATA)}"
        assert (await get(gate, link, range="bytes=-5"))[2] == DATA[-5:]
        assert (await get(gate, link, range="bytes=100000-"))[2] == DATA[100000:]
        status, headers, _ = await get(gate, link, range=f"bytes={len(DATA)}-")
        assert (status, headers["content-range"]) == (416, f"bytes */{len(DATA)}")
        assert (await get(gate, link, range="bytes=0-1", if_range='"old"'))[0] == 200


@pytest.mark.parametrize(
    ("header", "found"),
    [
        ("bytes=0-", (0, 100)),
        ("bytes=0-0", (0, 1)),
        ("bytes=90-500", (90, 100)),
        ("bytes=-500", (0, 100)),
        ("bytes=-0", (100, 100)),
        ("bytes=100-", (100, 100)),
        ("bytes=5-4", None),
        ("bytes=1-2,5-6", None),
        ("bytes=a-b", None),
        ("bytes=-", None),
        ("lines=1-2", None),
        ("bytes=" + "9" * 400 + "-", None),
    ],
)
def test_ranges(header: str, found: tuple[int, int] | None) -> None:
    assert read_range(header, 100) == found


async def test_who_has_no_right_sees_nothing(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        link = await kept(tmp_path, a_record(key_id="key_1"))
        path = link.partition("?")[0]
        assert (await get(gate, link[:-1] + ("0" if link[-1] != "0" else "1")))[0] == 403
        assert (await get(gate, path))[0] == 403
        assert (await get(gate, path + "?exp=&sig="))[0] == 403
        assert (await get(gate, "/v1/media/../../secret"))[0] == 403
        assert (await get(gate, link))[0] == 200


async def test_an_expired_link_is_gone_and_so_is_a_deleted_medium(tmp_path: Path) -> None:
    async with gateway(tmp_path, {}) as gate:
        link = await kept(tmp_path, a_record(expires_ms=2000))
        answer = await gate.get(link)
        assert (answer.status, (await answer.json())["error"]["code"]) == (410, "link_expired")
        record = a_record(id=f"img_{2:024x}")
        url = urlsplit(MediaLinks(server_secret(tmp_path), 0).url("http://x", record))
        assert (await gate.get(f"{url.path}?{url.query}")).status == 410


def test_links_live_as_long_as_the_medium_unless_told_otherwise() -> None:
    record = a_record(created_ms=1_000_000, expires_ms=9_000_000)
    assert MediaLinks(b"s", 0).expires_at(record) == 9_000
    assert MediaLinks(b"s", 60).expires_at(record) == 1_060
    assert MediaLinks(b"s", 0).expires_at(a_record(expires_ms=None)) is None


def test_our_own_links_are_recognised() -> None:
    links, record = MediaLinks(b"s", 0), a_record()
    seen = links.recognise(links.url("https://a.example/base", record), "http://elsewhere")
    assert seen is not None
    assert (seen.media_id, seen.signed) == (record.id, True)
    bare = links.recognise(f"http://here/v1/media/{record.id}", "http://here/")
    assert bare is not None
    assert not bare.signed
    for url in (f"http://there/v1/media/{record.id}", "http://here/v1/media/../x", "data:,", "http://[", "x"):
        assert links.recognise(url, "http://here") is None
