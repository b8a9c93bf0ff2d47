"""What the browser tests do again and again."""

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

PHONE = {"width": 390, "height": 844}
DESKTOP: dict[str, Any] = {"width": 1280, "height": 800}
OpenPage = Callable[..., "Page"]
SLOW_S = 90.0
"""The longest that anything may take on a busy machine."""

STORED = """() => new Promise((done) => {
    indexedDB.open("trunkline").onsuccess = (event) => {
        const all = event.target.result.transaction("conversations").objectStore("conversations").getAll();
        all.onsuccess = () => done(all.result[0]?.turns.at(-1));
    };
})"""
"""The last answer as the page keeps it."""
COPIED = """button => {
    window.copied_ = new Promise((done) => {
        const look = () => button.textContent.includes("Copied") && done();
        new MutationObserver(look).observe(button, { childList: true, characterData: true, subtree: true });
    });
}"""
"""Watch a button for its word that it has copied: that stands there for a moment only."""


def expect(seen: Any) -> Any:
    """Playwright's waiting assertions; it is installed only with the group `browser`."""
    from playwright.sync_api import expect as waiting  # noqa: PLC0415

    waiting.set_options(timeout=SLOW_S * 1000)
    return waiting(seen)


def a_file(name: str, mime_type: str, data: bytes) -> Any:
    """Give a file as a page's file input takes it."""
    return {"name": name, "mimeType": mime_type, "buffer": data}


def choose(page: "Page", model: str) -> None:
    page.get_by_role("button", name="Model:").click()
    page.get_by_role("combobox", name="Find a model").fill(model)
    expect(page.locator("[role=option][aria-selected=true]")).to_contain_text(model)  # the list may still be on its way
    page.keyboard.press("Enter")


def say(page: "Page", model: str, text: str) -> None:
    """Choose a model, write, and send."""
    choose(page, model)
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")


def last(page: "Page") -> Any:
    return page.get_by_role("article", name="Answer of").last


def over(page: "Page") -> None:
    """Wait until the last answer is over."""
    expect(last(page).get_by_role("button", name="Try again")).to_be_attached()


def keeps(page: "Page", such: str) -> None:
    """Wait until the page keeps a last answer `turn` (undefined: none) that is such."""
    until = time.monotonic() + SLOW_S
    while not page.evaluate(f"({STORED})().then((turn) => Boolean({such}))"):
        assert time.monotonic() < until, such
        page.wait_for_timeout(50)


def reload(page: "Page") -> None:
    """Load the page again, once it keeps the end of the last answer."""
    keeps(page, "turn && !['waiting', 'streaming'].includes(turn.status)")
    page.reload()


def sent_by(page: "Page", act: Callable[[], object]) -> Any:
    """Do something that asks a model; gives the request."""
    with page.expect_request("**/v1/chat/completions") as asked:
        act()
    return asked.value


def copied_by(page: "Page", button: Any) -> str:
    """Press a button that copies, and says so; gives what is in the clipboard."""
    button.evaluate(COPIED)
    button.click()
    page.evaluate("copied_")
    return str(page.evaluate("navigator.clipboard.readText()"))


def close_dialog(page: "Page") -> None:
    """Close what is open by the keyboard, and wait until it is gone."""
    page.keyboard.press("Escape")
    expect(page.locator("dialog")).to_have_count(0)


def most_tokens(page: "Page", number: int) -> None:
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Most tokens of an answer").fill(str(number))
    page.get_by_role("button", name="Save").click()
