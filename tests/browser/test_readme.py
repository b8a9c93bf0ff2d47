"""The README's two pictures: of the gateway with nothing but its embedded models, made anew at each run."""

from pathlib import Path

import pytest
from browsing import OpenPage, choose, expect, last, over, say
from test_films import has_begun

pytestmark = pytest.mark.browser
IMAGES = Path(__file__).parents[2] / "docs" / "images"
MOST_BYTES = 150_000
"""They are on a page that many load."""
SCREEN = {"width": 1280, "height": 860}


def test_a_picture_in_a_chat(open_page: OpenPage, plain: str) -> None:
    page = open_page(base=plain, viewport=SCREEN, color_scheme="light")
    choose(page, "local/image")
    page.get_by_text("16:9", exact=True).click()
    say(page, "local/image", "two sailing boats on the sea at sunset")
    picture = last(page).get_by_role("img", name="Picture made by the model")
    expect(picture).to_be_visible()
    over(page)
    picture.evaluate("img => img.decode()")
    page.get_by_label("Message", exact=True).blur()
    shot = IMAGES / "playground.png"
    page.screenshot(path=shot, animations="disabled")
    assert shot.stat().st_size < MOST_BYTES


def test_an_operators_jobs(open_page: OpenPage, plain: str) -> None:
    page = open_page(base=plain)
    for words in ("a lighthouse at night", "a red bicycle in the rain", "a balloon over mountains", "a cat on a roof"):
        page.get_by_role("button", name="New chat").click()
        say(page, "local/image", words)
        over(page)
    page.get_by_role("button", name="New chat").click()
    say(page, "local/video", "a dog running on the beach at sunset")
    over(page)
    page.get_by_role("button", name="New chat").click()
    admin = open_page("admin/#/jobs", base=plain, viewport=SCREEN, color_scheme="dark")
    choose(page, "local/video")
    page.get_by_label("Length").select_option("12")  # long enough for the operator to see it in the making
    say(page, "local/video", "a steam train in the snow")
    has_begun(admin)
    for thumb in admin.locator(".thumb img").all():
        thumb.evaluate("img => img.decode()")
    shot = IMAGES / "operator.png"
    admin.screenshot(path=shot)
    assert shot.stat().st_size < MOST_BYTES
