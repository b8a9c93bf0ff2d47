import pytest
from browsing import OpenPage, a_file, expect, last, over, say
from fake_gateway import FakeGateway

pytestmark = pytest.mark.browser
CAPTURE = 'data:{"choices":[{"delta":{"content":"<img src=x onerror=window.hacked=1>"}}]}\n\ndata: [DONE]\n'


def test_beside_an_answer_stands_what_the_provider_sent(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "local/text", "hello")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel).to_contain_text("Repairable.")
    expect(panel).to_contain_text("4 of 8 client libraries would have failed")
    first = panel.get_by_role("row").nth(1)
    expect(first.locator("mark")).to_have_text("data:")
    expect(first).to_contain_text("role_missing")
    expect(first.get_by_role("cell").nth(2)).to_contain_text("role")
    expect(panel.get_by_role("row").nth(2)).to_contain_text("content")
    panel.get_by_label("Only what was repaired").check()
    expect(panel.get_by_role("row")).to_have_count(2)
    panel.get_by_role("button", name="Whole event 1").click()
    expect(first).to_contain_text('"object": "chat.completion.chunk"')
    panel.get_by_role("button", name="role_missing").click()
    expect(first).to_be_focused()
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_without_the_admin_key_there_is_what_the_page_got(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.admin.open = False
    page = open_page()
    say(page, "local/text", "hello")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel).to_contain_text("What the provider sent is shown to the operator.")
    expect(panel.get_by_role("columnheader", name="The client got")).to_be_visible()
    expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_hidden()
    panel.get_by_label("Admin key").fill("wrong")
    panel.get_by_role("button", name="Log in").click()
    expect(panel.get_by_role("alert")).to_have_text("The admin key is wrong.")
    panel.get_by_label("Admin key").fill("admin-test-key")
    panel.get_by_role("button", name="Log in").click()
    expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_visible()


def test_a_film_has_no_trace_but_what_the_page_got(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "local/video", "waves")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel).to_contain_text("jobs, which keep no trace")
    expect(panel).to_contain_text("Filming 95 %")


def test_a_capture_is_pasted_dropped_or_chosen(open_page: OpenPage) -> None:
    page = open_page("#/inspect")
    page.get_by_label("A captured stream").fill(CAPTURE)
    page.get_by_role("button", name="Inspect", exact=True).click()
    expect(page.get_by_role("heading", name="Pasted text")).to_be_visible()
    expect(page.locator("mark")).to_have_text("data:")
    expect(page.get_by_role("table")).to_contain_text("onerror=window.hacked=1")
    page.locator("input[type=file]").set_input_files(a_file("<b>grok</b>.txt", "text/plain", CAPTURE.encode()))
    expect(page.get_by_role("heading", name="<b>grok</b>.txt")).to_be_visible()
    drop = """text => {
        const data = new DataTransfer();
        data.items.add(new File([text], "dropped.sse"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop, CAPTURE)
    expect(page.get_by_role("heading", name="dropped.sse")).to_be_visible()
    page.evaluate(drop, "x" * (8 * 1024 * 1024 + 1))
    expect(page.get_by_role("alert")).to_contain_text("dropped.sse has 8.4 MB; at most 8.4 MB are taken.")
