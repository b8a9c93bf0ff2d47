import gzip
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

import httpx2
import pytest
from starlette.middleware import Middleware
from starlette.middleware.exceptions import ExceptionMiddleware
from starlette.routing import Router

from trunkline.http import pages

FILES = {
    "index.html": b"<!doctype html>playground",
    "admin/index.html": b"<!doctype html>operator",
    "assets/app.js": b"let a = 1;" * 200,
    "assets/app.js.gz": gzip.compress(b"let a = 1;" * 200),
    "assets/app.js.br": b"as brotli",
}


async def get(path: str, files: Mapping[str, bytes] = FILES, **headers: str) -> httpx2.Response:
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), files)
        async with client(Path(folder)) as asking:
            return await asking.get(
                path, headers={"accept-encoding": "identity"} | {k.replace("_", "-"): v for k, v in headers.items()}
            )


def write(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, body in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(body)


def client(built: Path) -> httpx2.AsyncClient:
    app = Router(pages.routes(built, lambda: "Nobody ran npm."), middleware=[Middleware(ExceptionMiddleware)])
    return httpx2.AsyncClient(transport=httpx2.ASGITransport(app), base_url="http://gateway")


@pytest.mark.parametrize(("path", "body"), [("/", b"playground"), ("/admin/", b"operator")])
async def test_pages_come_under_a_strict_policy(path: str, body: bytes) -> None:
    answer = await get(path)
    assert answer.content.endswith(body)
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-cache"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy


async def test_admin_without_a_slash_goes_to_the_page_behind_any_prefix() -> None:
    assert (await get("/admin")).headers["location"] == "admin/"


async def test_assets_are_kept_for_ever_and_come_compressed() -> None:
    plain = await get("/assets/app.js")
    assert plain.content == FILES["assets/app.js"]
    assert plain.headers["content-type"] == "text/javascript; charset=utf-8"
    assert "immutable" in plain.headers["cache-control"]
    zipped = await get("/assets/app.js", accept_encoding="gzip, br;q=0")
    assert (zipped.headers["content-encoding"], zipped.content) == ("gzip", FILES["assets/app.js"])


@pytest.mark.parametrize(
    "name",
    ["nothing.js", "app.js.gz", "..%2Findex.html", "..%5Cindex.html", "", "%2E%2E", "a%00.js", "%C3%A4", 300 * "a"],
)
async def test_nothing_but_the_built_files_is_served(name: str) -> None:
    assert (await get(f"/assets/{name}")).status_code == 404


async def test_an_unchanged_page_is_not_sent_again() -> None:
    tag = (await get("/")).headers["etag"]
    again = await get("/", if_none_match=tag)
    assert (again.status_code, again.content) == (304, b"")


async def test_without_built_pages_the_page_says_how_to_build_them() -> None:
    answer = await get("/", {})
    assert answer.status_code == 200
    assert "Nobody ran npm." in answer.text
    assert pages.BUILD.replace("&&", "&amp;&amp;") in answer.text


async def test_pages_that_are_built_anew_come_without_a_restart(tmp_path: Path) -> None:
    built = tmp_path / "dist"
    async with client(built) as asking:
        for former, name in (("app-0.js", "app-1.js"), ("app-1.js", "app-2.js")):
            shutil.rmtree(built, ignore_errors=True)
            assert "Nobody ran npm." in (await asking.get("/")).text
            write(built, {"index.html": f"<script src=assets/{name}>".encode(), f"assets/{name}": name.encode()})
            assert name in (await asking.get("/")).text
            assert (await asking.get(f"/assets/{name}")).text == name
            assert (await asking.get(f"/assets/{former}")).status_code == 404
