"""The pages as they are served: their size, behind a path prefix, behind nginx, and built by the package's hook."""

import os
import shutil
import subprocess
import zipfile
from pathlib import Path

import pytest
from browsing import STORED, OpenPage, expect, keeps, last, over, say
from real import ADMIN_KEY
from test_films import PLAY

from trunkline.web import DIST

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["", "admin/"])
def test_the_first_load_is_below_150_kb(open_page: OpenPage, page: str) -> None:
    seen = open_page(page)
    seen.wait_for_load_state("networkidle")
    sizes = seen.evaluate("performance.getEntries().map(one => one.encodedBodySize ?? 0)")
    print(f"first load of /{page}: {sum(sizes)} bytes compressed")
    assert 20_000 < sum(sizes) < 150_000


@pytest.mark.parametrize("path", ["", "admin/"])
def test_nothing_but_our_own_scripts_may_run(open_page: OpenPage, path: str) -> None:
    page = open_page(path)
    policy = page.evaluate("fetch(location.href).then(answer => answer.headers.get('content-security-policy'))")
    for rule in (
        "default-src 'self'",
        "script-src 'self'",
        "style-src 'self'",
        "connect-src 'self'",
        "frame-ancestors 'none'",
    ):
        assert rule in policy
    assert "unsafe" not in policy


def test_everything_works_behind_nginx_under_a_prefix(open_page: OpenPage, fronted: str) -> None:
    page = open_page(base=fronted)
    say(page, "up/words", "hello")
    expect(last(page)).to_contain_text("as told.")
    over(page)
    say(page, "up/film", "waves")
    expect(last(page).locator("video")).to_be_visible()
    keeps(page, "turn?.media?.length")
    assert f"{fronted}v1/media/" in page.evaluate(STORED)["media"][0]["url"]
    assert last(page).locator("video").evaluate(PLAY) == pytest.approx(2, abs=0.2)
    page.get_by_role("link", name="Operator").click()
    page.get_by_label("Admin key").fill(ADMIN_KEY)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("link", name="Media").first.click()
    expect(page.get_by_role("main").get_by_role("listitem").first).to_be_visible()
    assert page.url == f"{fronted}admin/#/media"
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Admin key")).to_be_visible()
    page.get_by_role("link", name="Back to the playground").click()
    expect(page.get_by_role("button", name="Model:")).to_be_visible()
    assert page.url == fronted


def copy_of_the_project(folder: Path) -> Path:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith("tests/"):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, folder / name)
    return folder


def wheel_of(folder: Path, **environment: str) -> tuple[set[str], str]:
    done = subprocess.run(
        ["uv", "build", "--wheel", "-o", str(folder / "out")],
        cwd=folder,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    (wheel,) = (folder / "out").glob("*.whl")
    return set(zipfile.ZipFile(wheel).namelist()), done.stderr


def test_the_wheel_has_the_pages(tmp_path: Path) -> None:
    names, _ = wheel_of(copy_of_the_project(tmp_path))
    files = {path for path in DIST.rglob("*") if path.is_file() and path.name not in {"STAMP", "NOT_BUILT"}}
    assert {f"trunkline/web/dist/{path.relative_to(DIST).as_posix()}" for path in files} <= names


def test_without_a_registry_the_package_installs_and_says_so_in_one_line(tmp_path: Path) -> None:
    folder = copy_of_the_project(tmp_path)
    names, said = wheel_of(folder, NPM_CONFIG_REGISTRY="http://127.0.0.1:9/", NPM_CONFIG_CACHE=str(tmp_path / "cache"))
    assert "trunkline/web/dist/NOT_BUILT" in names
    told = [line for line in said.splitlines() if "The pages were not built" in line]
    assert len(told) == 1
    assert "ECONNREFUSED" in told[0]
