import pytest
from browsing import OpenPage, expect
from fake_gateway import FakeGateway

pytestmark = pytest.mark.browser


def test_the_door_opens_to_the_admin_key_alone(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.admin.open = False
    page = open_page("admin/")
    page.get_by_label("Admin key").fill("nobody")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_have_text("The admin key is wrong.")
    page.get_by_label("Admin key").fill("admin-test-key")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    assert page.evaluate("document.cookie") == ""
    page.reload()
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    page.get_by_role("button", name="Log out").click()
    expect(page.get_by_label("Admin key")).to_be_visible()


def test_a_session_that_is_over_leads_back_to_the_door(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page("admin/")
    expect(page.get_by_role("heading", name="Overview")).to_be_visible()
    gateway.admin.open = False
    page.context.clear_cookies()
    page.get_by_role("link", name="Keys").first.click()
    expect(page.get_by_label("Admin key")).to_be_visible()


def test_the_overview_tells_the_day(open_page: OpenPage) -> None:
    page = open_page("admin")
    assert page.url.endswith("/admin/")
    for text in ("Calls in flight", "812", "$0.8123", "24 s of film", "1 down", "1 over budget"):
        expect(page.get_by_role("main")).to_contain_text(text)
    expect(page.get_by_role("img", name="Calls an hour")).to_be_visible()
    expect(page.locator("canvas")).to_have_count(2)


def test_a_call_is_ended(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page("admin/#/calls")
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(2)
    page.get_by_role("button", name="End req_1").click()
    page.get_by_role("dialog").get_by_role("button", name="End", exact=True).click()
    expect(page.get_by_role("main").get_by_role("listitem")).to_have_count(1)
    assert gateway.admin.done == ["DELETE calls/req_1"]


def test_jobs_show_progress_film_and_error_and_are_cancelled(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page("admin/#/jobs")
    expect(page.get_by_role("progressbar", name="Progress video_1")).to_have_attribute("aria-valuenow", "42")
    expect(page.get_by_text("content_filter: The film was filtered.")).to_be_visible()
    page.get_by_role("button", name="Cancel video_1").click()
    expect(page.get_by_text("cancelled")).to_be_visible()
    page.get_by_role("button", name="Show video_2").first.click()
    film = page.get_by_role("dialog").locator("video")
    assert film.evaluate("async v => { v.muted = true; await v.play(); return v.videoWidth }") == 320
    assert gateway.admin.done == ["POST jobs/video_1/cancel"]


def test_a_key_is_made_told_once_and_shows_its_budget(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page("admin/#/keys")
    expect(page.get_by_role("meter", name="Budget of anna")).to_have_attribute("aria-valuenow", "25")
    expect(page.get_by_role("meter", name="Budget of build-bot")).to_have_attribute("aria-valuenow", "100")
    expect(page.get_by_text("field <b>trial</b>")).to_be_visible()
    page.get_by_role("button", name="New key").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("taken")
    page.get_by_role("button", name="Make the key").click()
    expect(page.get_by_role("alert")).to_contain_text("there is a key named taken already")
    page.get_by_role("textbox", name="Name", exact=True).fill("carla")
    page.get_by_label("Allowed models").fill("local/*, fast")
    page.get_by_label("Budget (US$)").fill("0.02")
    page.get_by_role("button", name="Make the key").click()
    told = page.get_by_role("dialog", name="carla").get_by_test_id("new-key").inner_text()
    assert told.startswith("sk-")
    page.keyboard.press("Escape")
    expect(page.get_by_text(told)).to_have_count(0)
    row = page.get_by_role("listitem").filter(has_text="carla")
    expect(row).to_contain_text("local/*, fast")
    expect(row).to_contain_text("$0.00 / $0.02 a month")
    assert gateway.admin.keys[0]["models"] == ["local/*", "fast"]


def test_keys_are_changed_rotated_blocked_and_revoked(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page("admin/#/keys")
    page.get_by_role("button", name="Edit anna").click()
    page.get_by_label("Calls a minute").fill("5")
    page.get_by_role("button", name="Save").click()
    row = page.get_by_role("listitem").filter(has_text="anna")
    expect(row).to_contain_text("5 calls/min")
    page.get_by_role("button", name="Rotate anna").click()
    page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
    expect(page.get_by_test_id("new-key")).to_contain_text("sk-")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Block anna").click()
    expect(row).to_contain_text("blocked")
    page.get_by_role("button", name="Unblock anna").click()
    expect(row).to_contain_text("active")
    page.get_by_role("button", name="Revoke anna").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    expect(row).to_contain_text("revoked")
    acts = ["PATCH keys/key_1", "POST keys/key_1/rotate", "POST keys/key_1/block"]
    assert gateway.admin.done == [*acts, "POST keys/key_1/unblock", "POST keys/key_1/revoke"]


def test_groups_are_made(open_page: OpenPage) -> None:
    page = open_page("admin/#/keys")
    page.get_by_role("button", name="New group").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("research")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("listitem").filter(has_text="research")).to_contain_text("0 keys")


def test_usage_is_told_by_model_key_and_provider(open_page: OpenPage) -> None:
    page = open_page("admin/#/usage")
    expect(page.get_by_role("rowheader", name="local/video")).to_be_visible()
    page.get_by_text("Key", exact=True).click()
    expect(page.get_by_role("rowheader", name="build-bot")).to_be_visible()
    page.get_by_role("radio", name="30 days").check(force=True)
    page.get_by_role("radio", name="Tokens out").check(force=True)
    plot = page.get_by_role("img", name="Tokens out: ")
    expect(plot).to_be_visible()
    before = page.locator("figcaption span").inner_text()
    plot.hover()
    expect(page.locator("figcaption span")).not_to_have_text(before)


def test_latency_and_repairs_are_plotted(open_page: OpenPage) -> None:
    page = open_page("admin/#/performance")
    for name in ("First token: p50", "Gap between tokens: p50", "Whole answer: p50", "Repairs by rule: role_missing"):
        expect(page.get_by_role("img", name=name)).to_be_visible()


def test_providers_tell_their_health(open_page: OpenPage) -> None:
    page = open_page("admin/#/providers")
    card = page.get_by_role("listitem").filter(has=page.get_by_role("heading", name="beta"))
    for text in ("down", "17 failed", "upstream_timeout", "env:BETA_API_KEY"):
        expect(card).to_contain_text(text)
    expect(page.get_by_text("NAMELESS_API_KEY is not set")).to_be_visible()


def test_media_are_looked_at_and_deleted(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page("admin/#/media")
    tiles = page.get_by_role("main").get_by_role("listitem")
    expect(tiles).to_have_count(7)
    page.get_by_role("button", name="Show vid_2").click()
    expect(page.get_by_role("dialog").locator("video")).to_be_visible()
    page.keyboard.press("Escape")
    page.get_by_text("Image", exact=True).click()
    expect(tiles).to_have_count(6)
    page.get_by_label("Mark ima_0").check()
    page.get_by_label("Mark ima_1").check()
    page.get_by_role("button", name="Delete 2").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    expect(tiles).to_have_count(4)
    assert gateway.admin.done == ["POST media/delete"]
