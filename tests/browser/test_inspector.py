"""The inspector: beside an answer, and for captures."""

import pytest
from browsing import OpenPage, a_file, expect, last, over, say
from provider import LOOK_ALIKES, Provider
from real import ADMIN_KEY, running_gateway
from test_looks import serious

from trunkline.inspection.examine import examine

pytestmark = pytest.mark.browser
CAPTURE = (
    'data: {"choices":[{"delta":{"role":null,"content":"<img src=x onerror=window.hacked=1>"}}]}\n\ndata: [DONE]\n'
)
VERDICTS = ["Clean.", "Repairable.", "Broken."]
DROP = """([text, name]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
}"""


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_a_capture_is_judged_and_its_bytes_marked(open_page: OpenPage, name: str) -> None:
    page = open_page("#/inspect")
    data = LOOK_ALIKES[name].read_bytes()
    file_name = f'{name} <img src=x onerror="window.hacked=1">.txt'
    page.evaluate(DROP, [data.decode(), file_name])
    expect(page.get_by_role("heading", name=file_name)).to_be_visible()
    report = examine(data)
    expect(page.get_by_text(VERDICTS[report.verdict], exact=True)).to_be_visible()
    broken = sum(client.outcome in {"error", "empty"} for client in report.clients)
    assert broken > 0
    expect(page.get_by_text(f"it would have broken {broken} of 8 client libraries")).to_be_visible()
    for client in report.clients:
        if client.says:
            expect(page.get_by_text(client.says, exact=True).first).to_be_visible()
    table = page.get_by_role("table")
    expect(table.get_by_role("row")).to_have_count(1 + len(report.rows))
    seen = set()
    for found in report.departures:
        if found.rule in seen:
            continue
        seen.add(found.rule)
        page.get_by_role("button", name=f"{found.rule} ").first.click()  # opens the row, at the bytes
        row = table.locator(".row.open", has=page.get_by_text(found.rule, exact=True)).first
        expect(row).to_be_visible()
        if found.length:
            marked = "".join(row.locator("mark").all_text_contents())
            at_fault = data[found.offset : found.offset + found.length].decode().strip()
            assert at_fault[:30].split("\n")[0] in marked, found
    assert serious(page) == []


def test_a_capture_is_pasted_dropped_or_chosen(open_page: OpenPage) -> None:
    page = open_page("#/inspect")
    page.get_by_label("A captured stream").fill(CAPTURE)
    page.get_by_role("button", name="Inspect", exact=True).click()
    expect(page.get_by_role("heading", name="Pasted text")).to_be_visible()
    expect(page.locator("mark").filter(has_text="role")).to_have_text('"role":null')
    expect(page.get_by_role("table")).to_contain_text("onerror=window.hacked=1")
    page.locator("input[type=file]").set_input_files(a_file("<b>grok</b>.txt", "text/plain", CAPTURE.encode()))
    expect(page.get_by_role("heading", name="<b>grok</b>.txt")).to_be_visible()
    page.evaluate(DROP, [CAPTURE, "dropped.sse"])
    expect(page.get_by_role("heading", name="dropped.sse")).to_be_visible()
    page.evaluate(DROP, ["x" * (8 * 1024 * 1024 + 1), "large.sse"])
    expect(page.get_by_role("alert")).to_contain_text("large.sse has 8.4 MB; at most 8.4 MB are taken.")


@pytest.mark.parametrize("name", ["capture_relay_zero_usage", "capture_video_wrapper"])
def test_beside_an_answer_stands_what_the_provider_sent(open_page: OpenPage, name: str) -> None:
    page = open_page()
    say(page, f"up/{name}", "hello")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    report = examine(LOOK_ALIKES[name].read_bytes())
    expect(panel).to_contain_text(VERDICTS[report.verdict])
    expect(panel).to_contain_text(f"up · {name} · HTTP 200 · text/event-stream")
    expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_visible()
    expect(panel.locator("mark").first).to_be_visible()
    first = panel.get_by_role("row").nth(1)
    expect(first.get_by_role("cell").nth(1)).not_to_be_empty()
    expect(panel.get_by_role("table")).to_contain_text("role")
    panel.get_by_role("button", name="Whole event 1", exact=True).click()
    expect(first.get_by_role("cell").nth(1)).to_contain_text('"object"')
    rows = panel.get_by_role("row").count()
    panel.get_by_label("Only what was repaired").check()
    expect(panel.get_by_role("row")).to_have_count(1 + sum(bool(row.departures) for row in report.rows))
    assert panel.get_by_role("row").count() <= rows
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_any_worker_shows_what_another_kept(
    open_page: OpenPage, provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("workers")
    with running_gateway(folder, provider.url, "--workers", "2") as url:
        page = open_page(base=url)
        for number in range(6):  # whichever of the two it was
            say(page, "up/words", f"hello {number}")
            over(page)
            last(page).get_by_role("button", name="Inspect").click()
            panel = page.get_by_role("complementary", name="Inspector")
            expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_visible()
            page.keyboard.press("Escape")


def test_without_the_admin_key_there_is_what_the_page_got(open_page: OpenPage, fronted: str) -> None:
    page = open_page(base=fronted)
    say(page, "up/words", "hello")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel).to_contain_text("What the provider sent is shown to the operator.")
    expect(panel.get_by_role("columnheader", name="The client got")).to_be_visible()
    expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_hidden()
    panel.get_by_label("Admin key").fill("wrong")
    panel.get_by_role("button", name="Log in").click()
    expect(panel.get_by_role("alert")).to_have_text("The admin key is wrong.")
    panel.get_by_label("Admin key").fill(ADMIN_KEY)
    panel.get_by_role("button", name="Log in").click()
    expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_visible()
