"""The pages against the gateway itself, with its embedded models."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import OpenPage, expect, last, over, say

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def gateway_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where `trunkline serve` says that it serves."""
    folder: Path = tmp_path_factory.mktemp("gateway")
    log = (folder / "log").open("w")
    command = [
        sys.executable,
        "-m",
        "trunkline",
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data-dir",
        str(folder / "data"),
    ]
    with log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT) as process:
        told = None
        while not (told := re.search(r"serving on (http://\S+)", (folder / "log").read_text())):
            assert process.poll() is None, (folder / "log").read_text()
        yield told[1] + "/"
        process.terminate()


def test_text_comes_from_the_embedded_model(open_page: OpenPage, gateway_url: str) -> None:
    page = open_page(base=gateway_url)
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Most tokens of an answer").fill("40")
    page.get_by_role("button", name="Save").click()
    say(page, "local/text", "Name three colours.")
    over(page)
    expect(last(page).locator(".prose")).to_contain_text(re.compile(r"\w+"))
    for text in ("First token", "tokens/s", "→"):
        expect(last(page)).to_contain_text(text)
    expect(last(page).get_by_role("alert")).to_have_count(0)


def test_a_refusal_is_told_in_the_words_it_came_with(open_page: OpenPage, gateway_url: str) -> None:
    page = open_page(base=gateway_url)
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Tools (JSON)").fill("[1]")
    page.get_by_role("button", name="Save").click()
    say(page, "local/text", "hello")
    expect(last(page).get_by_role("alert")).to_contain_text("This call failed. Failed to parse tools")
