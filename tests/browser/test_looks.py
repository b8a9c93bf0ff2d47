from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import PHONE, OpenPage, expect, over, say
from fake_gateway import FakeGateway

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
ADMIN = ["overview", "calls", "jobs", "keys", "usage", "performance", "providers", "media"]
LOOKS = [
    {"color_scheme": "light", "locale": "en-GB"},
    {"color_scheme": "dark", "locale": "zh-CN", "viewport": PHONE},
]


def serious(page: "Page") -> list[str]:
    """What axe finds wrong, as `rule: element`."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found["violations"] for node in rule["nodes"]]


def fits(page: "Page") -> bool:
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


@pytest.mark.parametrize("look", LOOKS)
def test_the_playground_is_for_everyone(open_page: OpenPage, look: dict[str, Any]) -> None:
    page = open_page(**look)
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    assert serious(page) == []
    page.locator("button[aria-haspopup=listbox]").click()
    assert serious(page) == []
    page.keyboard.press("Escape")
    for model in ("test/markdown", "test/tools", "local/image", "local/video", "test/cut"):
        page.locator("button[aria-haspopup=listbox]").click()
        page.locator("input[role=combobox]").fill(model)
        page.keyboard.press("Enter")
        page.locator("#prompt").fill("hello")
        page.keyboard.press("Enter")
        page.locator("article.answer:last-of-type .actions").wait_for(state="attached")
    assert serious(page) == []
    assert fits(page)
    page.locator("article.answer").first.locator("[aria-pressed]").click(force=True)
    page.locator("aside [role=table]").wait_for()
    assert serious(page) == []
    assert fits(page)


@pytest.mark.parametrize("look", LOOKS)
@pytest.mark.parametrize("name", ADMIN)
def test_the_operators_pages_are_for_everyone(open_page: OpenPage, name: str, look: dict[str, Any]) -> None:
    page = open_page(f"admin/#/{name}", **look)
    page.wait_for_load_state("networkidle")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    assert serious(page) == []
    assert fits(page)
    if name == "keys":
        page.locator("main .top button").click()
        page.locator("dialog summary").click()
        assert serious(page) == []
        assert fits(page)


def test_the_inspectors_page_is_for_everyone(open_page: OpenPage) -> None:
    page = open_page("#/inspect")
    page.get_by_label("A captured stream").fill('data: {"choices":[]}\n')
    page.get_by_role("button", name="Inspect", exact=True).click()
    expect(page.get_by_role("table")).to_be_visible()
    assert serious(page) == []


def test_the_locked_door_is_for_everyone(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.admin.open = False
    page = open_page("admin/")
    expect(page.get_by_label("Admin key")).to_be_visible()
    assert serious(page) == []


def test_theme_and_language_are_the_systems_until_chosen(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark", locale="zh-CN")
    background = "getComputedStyle(document.querySelector('main')).backgroundColor"
    expect(page.get_by_text("万千模型，一线相连。")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    dark = page.evaluate(background)
    page.get_by_text("浅色").click()
    assert page.evaluate(background) != dark
    page.get_by_text("English").click()
    expect(page.get_by_text("Many models, one line.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Many models, one line.")).to_be_visible()
    assert page.evaluate(background) != dark
    page.get_by_text("Dark", exact=True).click()
    assert page.evaluate(background) == dark


def test_on_a_phone_the_conversations_are_behind_a_button(open_page: OpenPage) -> None:
    page = open_page(viewport=PHONE)
    expect(page.get_by_role("navigation")).to_be_hidden()
    say(page, "local/text", "hello")
    over(page)
    page.get_by_role("button", name="Conversations and settings").click()
    expect(page.get_by_role("navigation")).to_be_visible()
    page.get_by_role("navigation").get_by_role("button", name="New chat").click()
    expect(page.get_by_role("navigation")).to_be_hidden()


def test_the_readmes_second_picture(open_page: OpenPage) -> None:
    """Made anew at each run, of invented numbers; small enough for a page that many load."""
    page = open_page("admin/#/overview", viewport={"width": 1280, "height": 860}, color_scheme="dark")
    expect(page.locator("canvas")).to_have_count(2)
    page.wait_for_timeout(300)
    shot = ROOT / "docs" / "images" / "operator.png"
    page.screenshot(path=shot)
    assert shot.stat().st_size < 150_000


def test_the_window_may_be_of_any_width(open_page: OpenPage) -> None:
    page = open_page()
    for width in (320, 480, 700, 761, 900, 1100, 1300, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        assert fits(page), width
