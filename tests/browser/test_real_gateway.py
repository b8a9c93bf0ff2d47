"""The playground against the gateway itself, with its embedded models."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browsing import PHONE, STORED, OpenPage, choose, expect, last, over, say
from real import ADMIN_KEY, FLOOD, HOSTILE_NAME, Provider, nginx_before
from test_looks import ROOT, fits, serious
from test_playground import SOME, WATCH

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
FILM_S = 60_000
"""The longest that a film of the embedded model may take, in milliseconds, on a busy machine."""


def most_tokens(page: "Page", number: int) -> None:
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Most tokens of an answer").fill(str(number))
    page.get_by_role("button", name="Save").click()


def test_text_comes_from_the_embedded_model(open_page: OpenPage, real: str) -> None:
    page = open_page(base=real)
    most_tokens(page, 40)
    say(page, "local/text", "Name three colours.")
    over(page)
    expect(last(page).locator(".prose")).to_contain_text(re.compile(r"\w+"))
    for text in ("First token", "tokens/s", "→"):
        expect(last(page)).to_contain_text(text)
    expect(last(page).get_by_role("alert")).to_have_count(0)
    assert serious(page) == []


def test_a_refusal_is_told_in_the_words_it_came_with(open_page: OpenPage, real: str) -> None:
    page = open_page(base=real)
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Tools (JSON)").fill("[1]")
    page.get_by_role("button", name="Save").click()
    say(page, "local/text", "hello")
    expect(last(page).get_by_role("alert")).to_contain_text("This call failed.")


def test_a_picture_comes_from_the_embedded_model(open_page: OpenPage, real: str, tmp_path: Path) -> None:
    page = open_page(base=real, color_scheme="dark")
    choose(page, "local/image")
    page.get_by_text("16:9", exact=True).click()
    page.get_by_label("File type").select_option("png")
    say(page, "local/image", "the sea at sunset")
    picture = last(page).get_by_role("img", name="Picture made by the model")
    expect(picture).to_be_visible(timeout=FILM_S)
    width, height = picture.evaluate("async i => (await i.decode(), [i.naturalWidth, i.naturalHeight])")
    assert width / height == pytest.approx(16 / 9, abs=0.02)
    expect(last(page)).to_contain_text(f"{width} × {height} · PNG")
    with page.expect_download() as download:
        last(page).get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "kept.png")
    assert (tmp_path / "kept.png").read_bytes().startswith(b"\x89PNG")
    assert serious(page) == []


def test_a_film_is_taken_up_again_after_a_reload_and_plays(open_page: OpenPage, real: str) -> None:
    page = open_page(base=real, viewport=PHONE)
    say(page, "local/video", "waves under a red sky")
    expect(last(page).get_by_role("progressbar")).to_have_attribute("aria-valuenow", SOME, timeout=FILM_S)
    stream = page.evaluate(STORED)["streamId"]
    page.reload()
    film = last(page).locator("video")
    expect(film).to_be_visible(timeout=FILM_S)
    assert page.evaluate(STORED)["streamId"] == stream
    assert "/v1/media/cov_" in str(film.get_attribute("poster"))
    play = "async v => { v.muted = true; await v.play(); await new Promise(f => v.onended = f); return v.currentTime }"
    assert film.evaluate(play) > 1
    assert fits(page)
    assert serious(page) == []


def test_everything_works_behind_nginx_under_a_prefix(open_page: OpenPage, real: str, tmp_path: Path) -> None:
    with nginx_before(real, tmp_path) as url:
        page = open_page(base=url)
        say(page, "local/image", "a tree")
        expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible(timeout=FILM_S)
        assert f"{url}v1/media/" in page.evaluate(STORED)["media"][0]["url"]
        page.get_by_role("link", name="Operator").click()
        page.get_by_label("Admin key").fill("nobody")
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("alert")).to_have_text("The admin key is wrong.")
        page.get_by_label("Admin key").fill(ADMIN_KEY)
        page.get_by_role("button", name="Log in").click()
        expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        [cookie] = page.context.cookies()
        assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == ("/ai/gateway/admin/api", True, "Strict")
        page.reload()
        page.get_by_role("link", name="Media").first.click()
        expect(page.get_by_role("main").get_by_role("listitem").first).to_be_visible()
        page.get_by_role("button", name="Log out").click()
        expect(page.get_by_label("Admin key")).to_be_visible()


@pytest.mark.parametrize("model", ["up/hostile", HOSTILE_NAME])
def test_nothing_a_model_says_or_is_called_runs(open_page: OpenPage, real: str, model: str) -> None:
    page = open_page(base=real)
    text = '<img src=x onerror="window.hacked=1">'
    most_tokens(page, 20)
    say(page, model, text)
    over(page)
    inside = last(page).locator(".prose")
    assert inside.locator("script, iframe, svg, form, object, [onerror], [onload], [style]").count() == 0
    for link in inside.locator("a[href]").all():
        assert str(link.get_attribute("href")).startswith("https://")
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel).to_contain_text("Repairable.")
    page.reload()
    expect(page.get_by_role("article", name="You")).to_have_text(text)


def test_three_thousand_chunks_a_second_are_drawn_by_the_frame(open_page: OpenPage, real: str) -> None:
    page = open_page(base=real)
    page.evaluate(WATCH)
    say(page, "up/flood", "as fast as you can")
    expect(last(page)).to_contain_text("word8999", timeout=FILM_S)
    over(page)
    frames, drawn, longest = page.evaluate("[frames_, drawn, longest]")
    print(f"9,000 chunks through the gateway: {frames} frames, {drawn} times drawn, longest frame {longest:.0f} ms")
    assert 10 < drawn <= frames + 20
    assert last(page).locator(".prose").inner_text().split() == "".join(FLOOD).split()


def test_a_call_that_its_operator_ends_says_so(open_page: OpenPage, real: str, provider: Provider) -> None:
    page, admin = open_page(base=real), open_page("admin/#/calls", base=real)
    provider.left.clear()
    say(page, "up/endless", "go on")
    expect(last(page)).to_contain_text("line 3")
    row = admin.get_by_role("main").get_by_role("listitem").filter(has_text="up/endless")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("up")
    row.get_by_role("button", name="End ").click()
    admin.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(row).to_have_count(0)
    expect(last(page)).to_contain_text("The gateway's operator ended this call.")
    assert provider.left.wait(10)


def test_the_readmes_first_picture(open_page: OpenPage, real: str) -> None:
    """Made anew at each run; small enough for a page that many load."""
    page = open_page(base=real, viewport={"width": 1280, "height": 860}, color_scheme="light")
    choose(page, "local/image")
    page.get_by_text("16:9", exact=True).click()
    say(page, "local/image", "two sailing boats on the sea at sunset")
    picture = last(page).get_by_role("img", name="Picture made by the model")
    expect(picture).to_be_visible(timeout=FILM_S)
    over(page)
    picture.evaluate("img => img.decode()")
    page.get_by_label("Message", exact=True).blur()
    page.wait_for_timeout(300)
    shot = ROOT / "docs" / "images" / "playground.png"
    page.screenshot(path=shot)
    assert shot.stat().st_size < 150_000
