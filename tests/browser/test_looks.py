"""Light and dark, phone and desktop, English and Chinese, for people who see and people who hear."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browsing import PHONE, OpenPage, close_dialog, expect, last, over, say

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]
AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
ADMIN = ["overview", "calls", "jobs", "keys", "usage", "performance", "providers", "media"]
LOOKS: list[dict[str, Any]] = [
    {"color_scheme": "light", "locale": "en-GB"},
    {"color_scheme": "dark", "locale": "zh-CN", "viewport": PHONE},
]


def serious(page: "Page") -> list[str]:
    """What axe finds wrong, as `rule: element`."""
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [f"{rule['id']}: {node['html'][:160]}" for rule in found["violations"] for node in rule["nodes"]]


def fits(page: "Page") -> bool:
    """Wait until nothing is wider than the window: it may still be taking its size."""
    page.wait_for_function("() => document.documentElement.scrollWidth <= innerWidth")
    return True


@pytest.mark.parametrize("look", LOOKS)
def test_the_playground_is_for_everyone(open_page: OpenPage, look: dict[str, Any]) -> None:
    page = open_page(**look)
    expect(page.get_by_role("heading", level=2).first).to_be_visible()
    assert serious(page) == []
    page.locator("button[aria-haspopup=listbox]").click()
    assert serious(page) == []
    page.keyboard.press("Escape")
    for model in ("up/markdown", "up/tools", "up/think", "up/still", "up/wrong", "up/breaks"):
        page.locator("button[aria-haspopup=listbox]").click()
        page.locator("input[role=combobox]").fill(model)
        expect(page.locator("[role=option][aria-selected=true]")).to_contain_text(model)
        page.keyboard.press("Enter")
        page.locator("#prompt").fill("hello")
        page.keyboard.press("Enter")
        page.locator("article.answer:last-of-type .actions").wait_for(state="attached")
    assert serious(page) == []
    assert fits(page)
    for dialog in ("sliders", "code"):
        opener = page.locator(
            "header.top button" if dialog == "sliders" else "article.answer:last-of-type .actions button"
        )
        opener.nth(-1 if dialog == "sliders" else 1).click()
        page.locator("dialog").wait_for()
        assert serious(page) == [], dialog
        assert fits(page), dialog
        close_dialog(page)
    page.locator("article.answer").first.locator("[aria-pressed]").click()
    page.locator("aside [role=table]").wait_for()
    assert serious(page) == []
    assert fits(page)


@pytest.mark.parametrize("look", LOOKS)
def test_the_operators_pages_are_for_everyone(open_page: OpenPage, busy: str, look: dict[str, Any]) -> None:
    page = open_page("admin/", **look)
    for name in ADMIN:
        page.goto(f"{busy}admin/#/{name}")
        expect(page.locator(f"nav [aria-current][href='#/{name}']")).to_be_in_viewport(ratio=0.9)
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator("main [aria-busy]")).to_have_count(0)
        expect(page.get_by_role("alert")).to_have_count(0)
        assert serious(page) == [], name
        assert fits(page), name
        opener = {"keys": "main .top button", "jobs": "main .thumb >> nth=0", "media": "main .open >> nth=0"}.get(name)
        if opener:
            page.locator(opener).click()
            page.locator("dialog").wait_for()
            for more in page.locator("dialog summary").all():
                more.click()
            assert serious(page) == [], name
            assert fits(page), name
            close_dialog(page)


def test_pages_with_nothing_in_them_say_so(open_page: OpenPage, plain: str) -> None:
    page = open_page("admin/", base=plain)
    for name, says in (("calls", "No call is in flight."), ("jobs", "No jobs."), ("media", "No media.")):
        page.goto(f"{plain}admin/#/{name}")
        expect(page.get_by_role("main")).to_contain_text(says)
    page.goto(f"{plain}admin/#/usage")
    page.get_by_text("Last hour").click()
    page.get_by_text("Cost", exact=True).first.click()
    expect(page.get_by_role("figure")).to_contain_text("Nothing yet.")


def test_what_cost_nothing_is_no_lack_of_calls(open_page: OpenPage, plain: str) -> None:
    page = open_page(base=plain)
    say(page, "local/text", "Hi")
    over(page)
    admin = open_page("admin/#/usage", base=plain)
    expect(admin.get_by_role("cell", name="$0.00")).to_be_visible()  # it is booked a little later
    expect(admin.get_by_role("figure").locator(".none")).to_have_text("$0.00")


def test_on_a_phone_a_new_chat_shows_its_beginning(open_page: OpenPage) -> None:
    page = open_page(viewport={"width": 390, "height": 600})
    expect(page.get_by_role("heading", name="Many models")).to_be_visible()
    page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    thread = page.get_by_role("region", name="Conversation")
    assert thread.evaluate("one => [one.scrollTop, one.scrollHeight > one.clientHeight]") == [0, True]


def test_the_inspectors_page_and_the_locked_door_are_for_everyone(open_page: OpenPage, fronted: str) -> None:
    page = open_page("#/inspect")
    page.get_by_label("A captured stream").fill('data: {"choices":[]}\n')
    page.get_by_role("button", name="Inspect", exact=True).click()
    expect(page.get_by_role("table")).to_be_visible()
    assert serious(page) == []
    for path, look in (("admin/", LOOKS[0]), ("admin/", LOOKS[1]), ("#/inspect", LOOKS[0])):
        door = open_page(path, base=fronted, **look)
        expect(door.locator("input[type=password]")).to_be_visible()
        assert serious(door) == []
        assert fits(door)


def test_theme_and_language_are_the_systems_until_chosen(open_page: OpenPage) -> None:
    page = open_page(color_scheme="dark", locale="zh-CN")
    main = page.locator("main")
    background = "main => getComputedStyle(main).backgroundColor"
    expect(page.get_by_text("万千模型，一线相连。")).to_be_visible()
    assert page.evaluate("document.documentElement.lang") == "zh-Hans"
    dark = main.evaluate(background)
    page.get_by_text("浅色").click()
    expect(main).not_to_have_css("background-color", dark)
    page.get_by_text("English").click()
    expect(page.get_by_text("Many models, one line.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("Many models, one line.")).to_be_visible()
    expect(main).not_to_have_css("background-color", dark)
    page.get_by_text("Dark", exact=True).click()
    expect(main).to_have_css("background-color", dark)


def test_every_text_is_there_in_both_languages() -> None:
    english, chinese = ((ROOT / "web/src/lib" / f"words.{name}.ts").read_text("utf-8") for name in ("en", "zh"))
    texts = re.compile(r'^  (\w+): "(.*)",$', re.MULTILINE)
    told, said = dict(texts.findall(english)), dict(texts.findall(chinese))
    assert told.keys() == said.keys()
    names = re.compile(r"\{(\w+)")
    assert {key for key in told if set(names.findall(told[key])) != set(names.findall(said[key]))} == set()
    assert {key for key, text in said.items() if text == told[key]} == set()
    pages = "".join(path.read_text("utf-8") for path in (ROOT / "web/src").rglob("*.svelte"))
    shown = re.findall(
        r">\s*([A-Z][a-z]+(?: [a-z]+)*)\s*<", re.sub(r"<(script|style).*?</\1>", "", pages, flags=re.DOTALL)
    )
    assert set(shown) <= {"Trunkline"}


def test_on_a_phone_the_conversations_are_behind_a_button(open_page: OpenPage) -> None:
    page = open_page(viewport=PHONE)
    expect(page.get_by_role("navigation")).to_be_hidden()
    say(page, "up/words", "hello")
    over(page)
    page.get_by_role("button", name="Conversations and settings").click()
    expect(page.get_by_role("navigation")).to_be_visible()
    page.get_by_role("navigation").get_by_role("button", name="New chat").click()
    expect(page.get_by_role("navigation")).to_be_hidden()
    page.get_by_role("button", name="Conversations and settings").click()
    page.get_by_role("navigation").get_by_role("button", name="API key").click()
    expect(page.get_by_role("dialog")).to_be_visible()
    expect(page.get_by_role("navigation")).to_be_hidden()


def test_the_window_may_be_of_any_width(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "up/markdown", "hello")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    for width in (320, 480, 700, 761, 900, 1100, 1300, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        page.wait_for_function("width => innerWidth === width", arg=width)
        assert fits(page), width
