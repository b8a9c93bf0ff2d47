"""Pictures and films: made, taken up again, stopped, kept."""

import re
from pathlib import Path
from typing import Any

import pytest
from browsing import PHONE, STORED, OpenPage, choose, expect, keeps, last, over, say, sent_by
from provider import Provider
from real import Cable
from test_looks import fits, serious

pytestmark = pytest.mark.browser
SOME = re.compile(r"[1-9]")
"""Some percent."""
PLAY = "async v => { v.muted = true; await v.play(); await new Promise(f => v.onended = f); return v.currentTime }"


def has_begun(answer: Any) -> None:
    expect(answer.get_by_role("progressbar")).to_have_attribute("aria-valuenow", SOME)


def test_a_picture_is_made_as_asked_and_can_be_kept(open_page: OpenPage, tmp_path: Path) -> None:
    page = open_page(color_scheme="dark")
    choose(page, "local/image")
    page.get_by_text("16:9", exact=True).click()
    page.get_by_label("File type").select_option("png")
    asked = sent_by(page, lambda: say(page, "local/image", "the sea at sunset")).post_data_json
    assert (asked["aspect_ratio"], asked["output_format"]) == ("16:9", "png")
    picture = last(page).get_by_role("img", name="Picture made by the model")
    expect(picture).to_be_visible()
    width, height = picture.evaluate("async i => (await i.decode(), [i.naturalWidth, i.naturalHeight])")
    assert width / height == pytest.approx(16 / 9, abs=0.02)
    expect(last(page)).to_contain_text(f"{width} × {height} · PNG")
    with page.expect_download() as download:
        last(page).get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "kept.png")
    assert (tmp_path / "kept.png").read_bytes().startswith(b"\x89PNG")
    assert serious(page) == []


def test_a_film_is_taken_up_again_after_a_reload(open_page: OpenPage, provider: Provider) -> None:
    page = open_page()
    with provider.at_work():
        say(page, "up/film", "waves")
        has_begun(last(page))
        keeps(page, "turn?.streamId")
        stream = page.evaluate(STORED)["streamId"]
        page.reload()
        has_begun(last(page))
    expect(last(page).locator("video")).to_be_visible()
    assert page.evaluate(STORED)["streamId"] == stream


def test_a_film_of_the_embedded_model_plays(open_page: OpenPage) -> None:
    page = open_page(viewport=PHONE)
    say(page, "local/video", "waves under a red sky")
    film = last(page).locator("video")
    expect(film).to_be_visible()
    assert "/v1/media/cov_" in str(film.get_attribute("poster"))
    assert film.evaluate(PLAY) > 1
    assert fits(page)
    assert serious(page) == []


def test_a_reload_before_anything_came_joins_the_same_job(open_page: OpenPage, provider: Provider) -> None:
    page = open_page()
    held: list[object] = []
    # The first request never leaves: were the route taken away, it would.
    page.route("**/v1/chat/completions", lambda route: route.continue_() if held else held.append(route))
    asked = sent_by(page, lambda: say(page, "up/film", "waves"))
    expect(last(page).get_by_role("progressbar")).to_be_visible()
    keeps(page, "turn?.role === 'assistant'")
    films = len(provider.films)
    again = sent_by(page, page.reload)
    expect(last(page).locator("video")).to_be_visible()
    assert asked.headers["idempotency-key"] == again.headers["idempotency-key"] == page.evaluate(STORED)["id"]
    assert len(provider.films) == films + 1


def test_a_lost_connection_in_mid_film_is_taken_up_without_a_double(
    open_page: OpenPage, provider: Provider, cable: Cable
) -> None:
    page = open_page(base=cable.url)
    films = len(provider.films)
    with provider.at_work():
        say(page, "up/film", "waves")
        has_begun(last(page))
        cable.drop()
    expect(last(page).locator("video")).to_be_visible()
    assert len(provider.films) == films + 1
    keeps(page, "turn?.status === 'done'")
    lines = page.evaluate(STORED)["reasoning"].splitlines()
    assert len(lines) == len(set(lines)) > 0


def test_a_gateway_that_is_long_away_is_asked_again_and_the_work_is_not(
    open_page: OpenPage, provider: Provider, cable: Cable
) -> None:
    page = open_page(base=cable.url)
    films = len(provider.films)
    with provider.at_work():
        say(page, "up/film", "waves")
        has_begun(last(page))
        cable.cut()
        expect(last(page)).to_contain_text("the work may go on at the gateway")
    cable.mend()
    last(page).get_by_role("button", name="Take it up again").click()
    expect(last(page).locator("video")).to_be_visible()
    assert len(provider.films) == films + 1


def test_a_picture_that_cannot_be_reached_is_not_called_gone(open_page: OpenPage, cable: Cable) -> None:
    page = open_page(base=cable.url)
    page.route("**/v1/media/**", lambda asked: asked.abort())
    say(page, "up/still", "a tree")
    expect(last(page)).to_contain_text("The gateway cannot be reached.")
    page.unroute_all()
    last(page).get_by_role("figure").get_by_role("button", name="Try again").click()
    expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible()


def test_stop_ends_the_film_at_the_provider(open_page: OpenPage) -> None:
    page, admin = open_page(), open_page("admin/#/jobs")
    say(page, "up/epic", "waves")
    has_begun(last(page))  # and has ten minutes to go
    page.get_by_role("button", name="Stop").click()
    expect(last(page)).to_contain_text("Stopped.")
    job = admin.get_by_role("listitem").filter(has_text="up/epic").first
    expect(job).to_contain_text("cancelled")


def test_try_again_asks_anew_in_the_place_of_the_old_answer(open_page: OpenPage) -> None:
    page = open_page()
    first = sent_by(page, lambda: say(page, "up/still", "a tree"))
    second = sent_by(page, page.get_by_role("button", name="Try again").click)
    expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible()
    expect(page.get_by_role("article", name="Answer of")).to_have_count(1)
    assert first.post_data_json == second.post_data_json
    assert first.headers["idempotency-key"] != second.headers["idempotency-key"]


def test_beside_a_film_stands_what_its_provider_sent(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "up/film", "waves")
    expect(last(page).locator("video")).to_be_visible()
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    for column in ("The provider sent", "The client got"):
        expect(panel.get_by_role("columnheader", name=column)).to_be_visible()
    expect(panel).to_contain_text("up · film")
    submit = panel.get_by_role("row").filter(has_text="POST ").first
    expect(submit).to_contain_text("/v1/videos")
    expect(submit).to_contain_text('"queued"')
    submit.get_by_role("button", name="Whole event").click()
    expect(submit).to_contain_text("content-type: application/json")
    expect(panel.get_by_role("row").filter(has_text='"completed"').first).to_be_visible()
    expect(panel.get_by_role("row").filter(has_text="/content").first).to_contain_text("200")
    expect(panel.get_by_role("row").filter(has_text="finish_reason")).to_have_count(1)
    assert serious(page) == []
    assert fits(page)
    page.get_by_role("button", name="Close").click()
    admin = open_page("admin/#/jobs")
    admin.get_by_role("listitem").filter(has_text="up/film").first.get_by_role("button", name="Show").first.click()
    dialog = admin.get_by_role("dialog")
    expect(dialog.get_by_role("row").filter(has_text="POST ")).to_contain_text("/v1/videos")
    assert serious(admin) == []
    assert fits(admin)
