"""The operator's pages against the gateway's own figures."""

import itertools
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from browsing import SLOW_S, OpenPage, expect, last, most_tokens, over, say
from openai import APIError, OpenAI
from provider import Provider
from real import ADMIN_KEY, Cable, fill, running_gateway
from said import EVIL, HOSTILE
from test_looks import fits

pytestmark = pytest.mark.browser
STORED_MEDIA = 2000
TRACED = {"x-trunkline-trace": "true"}
OPERATOR = {"authorization": f"Bearer {ADMIN_KEY}"}


def test_the_door_opens_to_the_admin_key_alone(open_page: OpenPage, fronted: str) -> None:
    page = open_page("admin", base=fronted)
    assert page.url == f"{fronted}admin/"
    page.get_by_label("Admin key").fill("nobody")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("The admin key is wrong.")
    page.get_by_label("Admin key").fill(ADMIN_KEY)
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    [cookie] = page.context.cookies()
    assert (cookie["path"], cookie["httpOnly"], cookie["sameSite"]) == ("/ai/gateway/admin/api", True, "Strict")
    asked = (
        "async csrf => (await fetch('api/keys', { method: 'POST', body: '{\"name\":\"x\"}', headers: csrf })).status"
    )
    assert page.evaluate(asked, {"x-trunkline-csrf": "guessed"}) == 403
    assert page.evaluate(asked, {}) == 403
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.context.clear_cookies()
    page.get_by_role("link", name="Keys").first.click()
    expect(page.get_by_label("Admin key")).to_be_visible()


@pytest.mark.usefixtures("busy")
def test_the_overview_tells_the_day(open_page: OpenPage, real: str) -> None:
    page = open_page("admin/", extra_http_headers=OPERATOR)
    main = page.get_by_role("main")
    now = page.context.request.get(f"{real}admin/api/overview").json()
    for text in ("Calls in flight", "Providers up", f"${now['today']['cost_microusd'] / 1e6:.2f}"):
        expect(main).to_contain_text(text)
    assert sum(now["last_24h"]["calls"]) >= 6
    expect(page.get_by_role("img", name="Calls an hour")).to_be_visible()
    expect(page.locator("canvas")).to_have_count(2)


def test_a_call_that_its_operator_ends_says_so(open_page: OpenPage, provider: Provider) -> None:
    page, admin = open_page(), open_page("admin/#/calls")
    provider.left.clear()
    say(page, "up/endless", "go on")
    expect(last(page)).to_contain_text("line 3")
    row = admin.get_by_role("main").get_by_role("listitem").filter(has_text="up/endless")
    expect(row).to_have_count(1)
    row.get_by_role("button", name="End ").click()
    admin.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(row).to_have_count(0)
    expect(last(page)).to_contain_text("The gateway's operator ended this call.")
    assert provider.left.wait(SLOW_S)


def test_a_job_is_watched_cancelled_and_its_film_shown(open_page: OpenPage) -> None:
    page, admin = open_page(), open_page("admin/#/jobs")
    say(page, "up/epic", "a slow river")
    expect(last(page).get_by_role("progressbar")).to_be_visible()
    job = admin.get_by_role("listitem").filter(has_text="up/epic").first
    expect(job.get_by_role("progressbar")).to_be_visible()
    job.get_by_role("button", name="Cancel video_").click()
    expect(job).to_contain_text("cancelled")
    over(page)
    expect(last(page).locator("video")).to_have_count(0)
    say(page, "up/film", "a quick one")
    over(page)
    done = admin.get_by_role("listitem").filter(has_text="up/film").filter(has_text="completed").first
    expect(done).to_be_visible()
    done.get_by_role("button", name="Show video_").first.click()
    film = admin.get_by_role("dialog").locator("video")
    assert film.evaluate("async v => { v.muted = true; await v.play(); return v.videoWidth }") == 320
    admin.keyboard.press("Escape")
    admin.get_by_text("Under way").click()
    expect(done).to_have_count(0)


def test_the_first_key_says_that_calls_need_one(open_page: OpenPage, plain: str) -> None:
    admin = open_page("admin/#/keys", base=plain)
    dialog = admin.get_by_role("dialog", name="anna", exact=True)
    for says in (True, False):
        admin.get_by_role("button", name="New key").click()
        admin.get_by_role("textbox", name="Name", exact=True).fill("anna")
        admin.get_by_role("button", name="Make the key").click()
        expect(dialog).to_contain_text("The playground has no key yet")
        assert ("from now on every call needs one" in dialog.inner_text()) == says
        admin.keyboard.press("Escape")
        expect(dialog).to_have_count(0)


def test_a_key_is_made_told_once_and_its_budget_spent(open_page: OpenPage) -> None:
    admin = open_page("admin/#/keys")
    name = f"anna {EVIL}"
    admin.get_by_role("button", name="New key").click()
    admin.get_by_role("textbox", name="Name", exact=True).fill(name)
    admin.get_by_label("Budget (US$)").fill("0.03")
    admin.get_by_role("button", name="Make the key").click()
    key = admin.get_by_test_id("new-key").inner_text()
    assert key.startswith("sk-tl-")
    admin.keyboard.press("Escape")
    expect(admin.get_by_text(key)).to_have_count(0)
    row = admin.get_by_role("listitem").filter(has_text=name)
    expect(row).to_contain_text("$0.00 / $0.03 a month")
    page = open_page()
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
    expect(admin.get_by_role("meter", name=f"Budget of {name}")).to_have_attribute("aria-valuenow", "67")
    expect(row).to_contain_text("· used")
    admin.get_by_role("link", name="Usage").first.click()
    admin.get_by_text("Key", exact=True).click()
    expect(admin.get_by_role("rowheader", name=name)).to_be_visible()


def test_a_long_name_leaves_the_key_in_sight(open_page: OpenPage) -> None:
    page = open_page("admin/#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("x" * 80)
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_test_id("new-key")).to_be_visible()
    assert page.get_by_role("dialog").evaluate("dialog => dialog.scrollWidth <= dialog.clientWidth")


def test_a_group_is_shown_whole_whatever_its_name(open_page: OpenPage) -> None:
    page = open_page("admin/#/keys")
    for name in ("W" * 200, "مجموعة التصميم"):
        page.get_by_role("button", name="New group").click()
        page.get_by_role("textbox", name="Name", exact=True).fill(name)
        page.get_by_role("button", name="Save").click()
        group = page.locator("li", has_text=name)
        expect(group).to_be_visible()
        assert group.locator("p .num").evaluate("count => count.getClientRects().length") == 1
        assert fits(page)


def test_groups_are_there_again_when_the_gateway_is(open_page: OpenPage, cable: Cable) -> None:
    page = open_page("admin/", base=cable.url)
    expect(page.get_by_text("Calls an hour")).to_be_visible()
    cable.cut()
    page.get_by_role("link", name="Keys").first.click()
    expect(page.get_by_role("alert")).to_have_count(2)
    expect(page.get_by_text("No groups.")).to_have_count(0)
    cable.mend()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_keys_are_changed_rotated_blocked_and_revoked(open_page: OpenPage) -> None:
    page = open_page("admin/#/keys")
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("carla")
    page.get_by_label("Allowed models").fill("local/*, fast")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_test_id("new-key")).to_be_visible()
    page.keyboard.press("Escape")
    row = page.get_by_role("listitem").filter(has_text="carla")
    expect(row).to_contain_text("local/*, fast")
    page.get_by_role("button", name="Edit carla").click()
    page.get_by_text("More limits").click()
    page.get_by_label("Calls a minute").fill("1")
    page.get_by_role("button", name="Save").click()
    expect(row).to_contain_text("1 call/min")
    page.get_by_role("button", name="Rotate carla").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
    expect(page.get_by_test_id("new-key")).to_contain_text("sk-")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Block carla").click()
    expect(row).to_contain_text("blocked")
    page.get_by_role("button", name="Unblock carla").click()
    expect(row).to_contain_text("active")
    page.get_by_role("button", name="Revoke carla").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    page.get_by_role("button", name="New group").click()
    page.get_by_role("textbox", name="Name", exact=True).fill(f"research {EVIL}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("listitem").filter(has_text="research")).to_contain_text("0 keys")


@pytest.mark.usefixtures("busy")
def test_usage_is_told_by_model_key_and_provider(open_page: OpenPage) -> None:
    page = open_page("admin/#/usage")
    expect(page.get_by_role("rowheader", name="up/film")).to_be_visible()
    page.get_by_text("Provider", exact=True).click()
    expect(page.get_by_role("rowheader", name="up", exact=True)).to_be_visible()
    page.get_by_role("radio", name="30 days").check(force=True)
    page.get_by_role("radio", name="Calls").check(force=True)
    plot = page.get_by_role("img", name="Calls: ")
    expect(plot).to_be_visible()
    told = page.locator("figcaption span")
    before, until = told.inner_text(), time.monotonic() + SLOW_S
    for at in itertools.cycle((200, 300)):  # the days' figures may come later, and be drawn anew
        plot.hover(position={"x": at, "y": 50})
        if told.inner_text() != before:
            break
        assert time.monotonic() < until


@pytest.mark.usefixtures("busy")
def test_latency_repairs_and_health_are_shown(open_page: OpenPage) -> None:
    page = open_page("admin/#/performance")
    for name in ("First token: p50", "Gap between tokens: p50", "Whole answer: p50", "Repairs by rule: "):
        expect(page.get_by_role("img", name=name)).to_be_visible()
    expect(page.get_by_role("main")).to_contain_text("usage_zero")
    page.get_by_role("link", name="Providers").first.click()
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="up"))
    for text in ("failed", "upstream_incomplete", "Success rate"):
        expect(card).to_contain_text(text)
    expect(page.get_by_text("OPENAI_API_KEY is not set").first).to_be_visible()


def test_media_are_looked_at_and_deleted(open_page: OpenPage) -> None:
    page, admin = open_page(), open_page("admin/#/media")
    tiles = admin.get_by_role("main").get_by_role("listitem")
    for number in range(3):
        say(page, "up/still", f"a house {number}")
        expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible()
    admin.reload()
    expect(tiles.first).to_contain_text("320 × 240")
    before = tiles.count()
    newest = tiles.first.get_by_role("button", name="Show ").inner_text().split()[1]
    assert tiles.first.locator("img").evaluate("async i => (await i.decode(), i.naturalWidth)") > 0
    admin.get_by_label(f"Mark {newest}").check()
    admin.get_by_role("button", name="Delete 1").click()
    admin.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(tiles).to_have_count(before - 1)
    expect(admin.get_by_label(f"Mark {newest}")).to_have_count(0)


def test_two_thousand_pictures_are_looked_through_and_deleted(
    open_page: OpenPage, provider: Provider, tmp_path: Path
) -> None:
    fill(tmp_path / "data", STORED_MEDIA)
    with running_gateway(tmp_path, provider.url) as url:
        page = open_page("admin/#/media", base=url)
        tiles = page.get_by_role("main").get_by_role("listitem")
        for shown in range(60, 301, 60):
            expect(tiles).to_have_count(shown)
            page.get_by_role("button", name="Show older").click()
        expect(tiles).to_have_count(360)
        names = tiles.locator(".hidden-text").all_inner_texts()
        assert len(set(names)) == 360
        tiles.last.scroll_into_view_if_needed()
        assert tiles.last.locator("img").evaluate("async i => (await i.decode(), i.naturalHeight)") == 120
        page.get_by_role("button", name="Mark all 360").click()
        page.get_by_role("button", name="Delete 360").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
        expect(tiles).to_have_count(60)  # the next ones; what was shown below is gone
        assert not set(names) & set(tiles.locator(".hidden-text").all_inner_texts())
        page.get_by_role("link", name="Overview").first.click()
        expect(page.get_by_role("main")).to_contain_text(f"{STORED_MEDIA - 360:,}")
        assert fits(page)


def test_nothing_from_outside_runs_in_the_operators_pages(open_page: OpenPage, real: str) -> None:
    page = open_page("admin/", extra_http_headers=OPERATOR)
    made = page.context.request.post(f"{real}admin/api/keys", data={"name": EVIL, "record": True}).json()
    page.context.request.post(f"{real}admin/api/groups", data={"name": EVIL})
    client = OpenAI(base_url=f"{real}v1", api_key=made["key"], max_retries=0)
    for model in (f"{EVIL} film", "up/evil", "up/still", EVIL):
        said: Any = [{"role": "user", "content": f"{EVIL} {HOSTILE.splitlines()[0]}"}]
        with suppress(APIError):
            list(client.chat.completions.create(model=model, stream=True, messages=said, extra_headers=TRACED))
    inside = page.locator("main, dialog").locator("script, iframe, object, [onerror], [onload], img[src=x]")
    for name in ("overview", "calls", "jobs", "keys", "usage", "performance", "providers", "media"):
        page.goto(f"{real}admin/#/{name}")
        expect(page.locator(f"nav [aria-current][href='#/{name}']")).to_be_visible()
        expect(page.locator("main [aria-busy]")).to_have_count(0)
        if name in {"keys", "usage", "jobs", "media"}:
            expect(page.get_by_role("main")).to_contain_text(EVIL)
        expect(inside).to_have_count(0)
    page.goto(f"{real}admin/#/jobs")
    for model, says in ((f"{EVIL} film", "/content"), ("up/evil", '"failed"')):
        page.get_by_role("listitem").filter(has_text=model).first.get_by_role("button", name="Show").first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(f"{EVIL} <img")  # the prompt
        row = dialog.get_by_role("row").filter(has_text=says).last
        row.get_by_role("button", name="Whole event").click()
        expect(row).to_contain_text("content-type")
        expect(inside).to_have_count(0)
        page.get_by_role("button", name="Close").click()
        expect(dialog).to_have_count(0)
