"""The pages as they are served: their size, behind a path prefix, behind nginx, and built by the package's hook."""

import os
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import OpenPage, expect, last, over, say
from fake_gateway import Running
from real import nginx_before

from trunkline.web import built

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


@pytest.fixture
def nginx(running: Running, tmp_path: Path) -> Iterator[str]:
    """The gateway behind nginx, under `/ai/gateway/`."""
    with nginx_before(running.url, tmp_path) as url:
        yield url


@pytest.mark.parametrize("page", ["", "admin/"])
def test_the_first_load_is_below_150_kb(open_page: OpenPage, page: str) -> None:
    seen = open_page(page)
    seen.wait_for_load_state("networkidle")
    sizes = seen.evaluate("performance.getEntries().map(one => one.encodedBodySize ?? 0)")
    print(f"first load of /{page}: {sum(sizes)} bytes compressed")
    assert 20_000 < sum(sizes) < 150_000


def test_everything_works_under_a_path_prefix(open_page: OpenPage, running: Running) -> None:
    page = open_page("prefix/", base=running.url)
    say(page, "local/image", "a tree")
    expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible()
    assert "/prefix/v1/media/" in str(last(page).locator("img").get_attribute("src"))
    page.get_by_role("link", name="Operator").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.url.startswith(f"{running.url}prefix/admin/")
    page.get_by_role("link", name="Playground").click()
    expect(page.get_by_role("button", name="Model:")).to_be_visible()
    assert page.url == f"{running.url}prefix/"


def test_everything_works_behind_nginx(open_page: OpenPage, nginx: str) -> None:
    page = open_page(base=nginx)
    say(page, "local/text", "hello")
    expect(last(page)).to_contain_text("A trunk line")
    over(page)
    say(page, "local/video", "waves")
    expect(last(page).locator("video")).to_be_visible(timeout=15_000)
    page = open_page("admin", base=nginx)
    assert page.url == f"{nginx}admin/"
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()


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
    assert {f"trunkline/web/dist/{name}" for name in built()} <= names


def test_without_a_registry_the_package_installs_and_says_so_in_one_line(tmp_path: Path) -> None:
    folder = copy_of_the_project(tmp_path)
    names, said = wheel_of(folder, NPM_CONFIG_REGISTRY="http://127.0.0.1:9/", NPM_CONFIG_CACHE=str(tmp_path / "cache"))
    assert "trunkline/web/dist/NOT_BUILT" in names
    told = [line for line in said.splitlines() if "The pages were not built" in line]
    assert len(told) == 1
    assert "ECONNREFUSED" in told[0]
