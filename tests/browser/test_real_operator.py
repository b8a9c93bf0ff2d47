"""The operator's pages and the inspector against the gateway itself."""

from typing import Any

import pytest
from browsing import OpenPage, a_file, expect, last, over, say
from real import LOOK_ALIKES
from test_looks import ADMIN, LOOKS, fits, serious
from test_real_gateway import FILM_S, most_tokens

from trunkline.inspection.examine import examine

pytestmark = pytest.mark.browser
VERDICTS = ["Clean.", "Repairable.", "Broken."]


@pytest.mark.parametrize("name", LOOK_ALIKES)
def test_the_inspector_shows_what_departs_in_a_capture(open_page: OpenPage, real: str, name: str) -> None:
    page = open_page("#/inspect", base=real)
    data = LOOK_ALIKES[name].read_bytes()
    file_name = f'{name} <img src=x onerror="window.hacked=1">.txt'
    page.locator("input[type=file]").set_input_files(a_file(file_name, "text/plain", data))
    expect(page.get_by_role("heading", name=file_name)).to_be_visible()
    report = examine(data)
    expect(page.get_by_text(VERDICTS[report.verdict], exact=True)).to_be_visible()
    for rule in {found.rule for found in report.departures}:
        expect(page.get_by_role("button", name=rule, exact=False).first).to_be_visible()
    broken = sum(client.outcome in {"error", "empty"} for client in report.clients)
    assert broken > 0
    expect(page.get_by_text(f"{broken} of 8 client libraries would have failed")).to_be_visible()
    table = page.get_by_role("table")
    marked = [found for found in report.departures if found.length and found.length < 40]
    shown = "".join(table.locator("mark").all_text_contents())
    for found in marked[:3]:
        bytes_at_fault = data[found.offset : found.offset + found.length].decode().strip()
        assert bytes_at_fault.split("\n")[0] in shown, found
    assert table.get_by_role("row").count() == 1 + len(report.rows)
    assert serious(page) == []


@pytest.mark.parametrize("name", ["capture_relay_zero_usage", "capture_video_wrapper"])
def test_beside_an_answer_stands_what_the_provider_sent(open_page: OpenPage, real: str, name: str) -> None:
    page = open_page(base=real)
    say(page, f"up/{name}", "hello")
    over(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    report = examine(LOOK_ALIKES[name].read_bytes())
    expect(panel).to_contain_text(VERDICTS[report.verdict])
    expect(panel).to_contain_text(f"up · {name} · HTTP 200 · text/event-stream")
    expect(panel.get_by_role("columnheader", name="The provider sent")).to_be_visible()
    expect(panel.locator("mark").first).to_be_visible()
    sent, got = panel.get_by_role("row").nth(1).get_by_role("cell").nth(1), panel.get_by_role("table")
    expect(sent).not_to_be_empty()
    expect(got).to_contain_text("role")
    page.keyboard.press("Escape")
    expect(panel).to_be_hidden()


def test_a_key_is_made_and_its_budget_spent(open_page: OpenPage, real: str) -> None:
    admin = open_page("admin/#/keys", base=real)
    admin.get_by_role("button", name="New key").click()
    name = 'anna <img src=x onerror="window.hacked=1">'
    admin.get_by_role("textbox", name="Name", exact=True).fill(name)
    admin.get_by_label("Budget (US$)").fill("0.03")
    admin.get_by_role("button", name="Make the key").click()
    key = admin.get_by_test_id("new-key").inner_text()
    assert key.startswith("sk-tl-")
    admin.keyboard.press("Escape")
    expect(admin.get_by_text(key)).to_have_count(0)
    row = admin.get_by_role("listitem").filter(has_text=name)
    expect(row).to_contain_text("$0.00 / $0.03 a month")
    page = open_page(base=real)
    page.evaluate("key => localStorage.setItem('trunkline.key', key)", key)
    page.reload()
    most_tokens(page, 20)
    say(page, "priced", "hello")
    over(page)
    expect(last(page)).to_contain_text("$0.02")
    say(page, "priced", "and again")
    expect(last(page).get_by_role("alert")).to_contain_text("402 budget_exceeded")
    admin.reload()
    expect(row).to_contain_text("$0.02 / $0.03 a month")
    expect(row).to_contain_text("· used")
    admin.get_by_role("button", name=f"Block {name}").click()
    expect(row).to_contain_text("blocked")
    admin.get_by_role("button", name=f"Revoke {name}").click()
    admin.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    admin.get_by_role("link", name="Usage").first.click()
    admin.get_by_text("Key", exact=True).click()
    expect(admin.get_by_role("rowheader", name=name)).to_be_visible()


def test_a_job_is_watched_and_cancelled(open_page: OpenPage, real: str) -> None:
    page, admin = open_page(base=real), open_page("admin/#/jobs", base=real)
    say(page, "local/video", "a slow river")
    expect(last(page).get_by_role("progressbar")).to_be_visible(timeout=FILM_S)
    running = admin.get_by_role("button", name="Cancel video_")
    expect(running).to_have_count(1, timeout=FILM_S)
    running.click()
    expect(running).to_have_count(0, timeout=FILM_S)
    over(page)
    expect(last(page).locator("video")).to_have_count(0)


def test_media_are_looked_at_and_deleted(open_page: OpenPage, real: str) -> None:
    page = open_page(base=real)
    say(page, "local/image", "a house to be deleted")
    expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible(timeout=FILM_S)
    admin = open_page("admin/#/media", base=real)
    tiles = admin.get_by_role("main").get_by_role("listitem")
    expect(tiles.first).to_be_visible()
    before = tiles.count()
    newest = tiles.first.get_by_role("button", name="Show ").inner_text().split()[1]
    picture = tiles.first.locator("img")
    assert picture.evaluate("async i => (await i.decode(), i.naturalWidth)") > 0
    admin.get_by_label(f"Mark {newest}").check()
    admin.get_by_role("button", name="Delete 1").click()
    admin.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(tiles).to_have_count(before - 1)
    expect(admin.get_by_label(f"Mark {newest}")).to_have_count(0)


@pytest.mark.parametrize("look", LOOKS)
def test_the_operators_pages_are_for_everyone(open_page: OpenPage, real: str, look: dict[str, Any]) -> None:
    page = open_page("admin/", base=real, **look)
    for name in ADMIN:
        page.goto(f"{real}admin/#/{name}")
        page.wait_for_load_state("networkidle")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        assert serious(page) == [], name
        assert fits(page), name
