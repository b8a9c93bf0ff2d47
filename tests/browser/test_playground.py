"""The playground: conversations, attachments, code, keys; films are in test_films.py, floods in test_flood.py."""

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from browsing import (
    SLOW_S,
    OpenPage,
    a_file,
    choose,
    close_dialog,
    copied_by,
    expect,
    keeps,
    last,
    most_tokens,
    over,
    reload,
    say,
    sent_by,
)
from provider import Provider, png
from real import HOSTILE_NAME, Cable

pytestmark = pytest.mark.browser
ROOT = Path(__file__).parents[2]


def test_text_comes_from_the_embedded_model(open_page: OpenPage) -> None:
    page = open_page()
    most_tokens(page, 30)
    say(page, "local/text", "Name three colours.")
    over(page)
    expect(last(page).locator(".prose")).to_contain_text(re.compile(r"\w+"))
    for text in ("First token", "tokens/s", "→"):
        expect(last(page)).to_contain_text(text)
    expect(last(page).get_by_role("alert")).to_have_count(0)


def test_an_answer_tells_its_speed_and_cost(open_page: OpenPage) -> None:
    page = open_page()
    asked = sent_by(page, lambda: say(page, "priced", "hello"))
    for text in ("bring, as told.", "up · words", "First token", "tokens/s", "10 → 20", "$0.02"):
        expect(last(page)).to_contain_text(text)
    assert asked.post_data_json["stream_options"] == {"include_usage": True, "include_cost": True}


def test_a_conversation_goes_on_and_is_there_after_a_reload(open_page: OpenPage) -> None:
    page = open_page()
    answers = page.get_by_role("article", name="Answer of")
    say(page, "up/words", "first question")
    over(page)
    asked = sent_by(page, lambda: say(page, "up/words", "second question"))
    expect(answers).to_have_count(2)
    over(page)
    assert [message["role"] for message in asked.post_data_json["messages"]] == ["user", "assistant", "user"]
    keeps(page, "turn?.request?.messages?.length === 3")
    reload(page)
    expect(answers).to_have_count(2)
    page.get_by_role("button", name="New chat").click()
    expect(answers).to_have_count(0)
    page.get_by_role("button", name="Delete “first question”").click()
    keeps(page, "turn === undefined")
    page.reload()
    expect(page.get_by_role("button", name="Model:")).to_be_visible()
    expect(page.get_by_text("first question")).to_have_count(0)


def test_markdown_is_rendered_and_pictures_elsewhere_are_not_loaded(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "up/markdown", "show me")
    over(page)
    expect(last(page).get_by_role("heading", name="Lines and trunks")).to_be_visible()
    expect(last(page).get_by_role("cell", name="vermilion")).to_be_visible()
    expect(last(page).locator("pre")).to_contain_text("yield from branch")
    expect(last(page).get_by_role("link", name="elsewhere · tracker.example")).to_be_visible()
    assert last(page).get_by_role("link", name="the contract").get_attribute("rel") == "noopener noreferrer"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    assert copied_by(page, last(page).locator("[data-copy]")).startswith("def trunk(branches):")


def test_reasoning_is_shown_while_it_comes_and_folded_when_the_answer_is_there(
    open_page: OpenPage, provider: Provider
) -> None:
    page = open_page()
    with provider.at_work():
        say(page, "up/think", "think")
        expect(last(page).get_by_text("Thinking…")).to_be_visible()
    over(page)
    expect(last(page).get_by_text("Step 3:")).to_be_hidden()
    last(page).get_by_text("Reasoning").click()
    expect(last(page).get_by_text("Step 3:")).to_be_visible()


def test_tool_calls_are_shown_and_their_results_sent(open_page: OpenPage) -> None:
    page = open_page()
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Tools (JSON)").fill("{}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("must be a list")
    page.get_by_role("button", name="Use the example tool").click()
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("button", name="Save").click()
    first = sent_by(page, lambda: say(page, "up/tools", "weather?"))
    expect(last(page)).to_contain_text('"city": "Lisbon"')
    page.get_by_label("Result of get_weather").fill("19 degrees")
    second = sent_by(page, page.get_by_role("button", name="Send results").click)
    expect(last(page)).to_contain_text("The tool says: 19 degrees")
    assert first.post_data_json["tools"][0]["function"]["name"] == "get_weather"
    messages = second.post_data_json["messages"]
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "tool"]
    assert messages[3] == {"role": "tool", "tool_call_id": "call_1", "content": "19 degrees"}


GIVE = """([bytes, kind]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], kind + ".png", { type: "image/png" }));
    const options = { dataTransfer: data, clipboardData: data, bubbles: true, cancelable: true };
    const event = kind === "paste" ? new ClipboardEvent("paste", options) : new DragEvent(kind, options);
    document.querySelector("#prompt").dispatchEvent(event);
}"""


def test_pictures_are_attached_by_choice_paste_and_drag(open_page: OpenPage, provider: Provider) -> None:
    page = open_page()
    name = '<img src=x onerror="window.hacked=1">.png'
    page.locator("input[type=file]").set_input_files(
        [a_file(name, "image/png", png(8, 8)), a_file("a.txt", "text/plain", b"-")]
    )
    expect(page.get_by_role("alert")).to_contain_text("a.txt is no PNG")
    page.evaluate(GIVE, [list(png(9, 9)), "paste"])
    page.evaluate(GIVE, [list(png(10, 10)), "dragover"])
    expect(page.get_by_text("Drop pictures here")).to_be_visible()
    page.evaluate(GIVE, [list(png(10, 10)), "drop"])
    expect(page.get_by_role("button", name="Remove ")).to_have_count(3)
    page.get_by_role("button", name=f"Remove {name}").click()
    say(page, "up/words", "what is it?")
    over(page)
    parts = provider.asked[-1]["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "image_url"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_stop_ends_the_work_and_says_so(open_page: OpenPage, provider: Provider) -> None:
    page = open_page()
    provider.left.clear()
    say(page, "up/endless", "go on")
    expect(last(page)).to_contain_text("line 3")
    page.get_by_role("button", name="Stop").click()
    expect(last(page)).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    assert provider.left.wait(SLOW_S)


def test_an_answer_that_breaks_off_at_the_provider_says_so(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "up/breaks", "hello")
    over(page)
    for text in ("A trunk line is", "This call failed.", "upstream_incomplete"):
        expect(last(page)).to_contain_text(text)


def test_an_answer_whose_line_is_cut_says_so(open_page: OpenPage, cable: Cable) -> None:
    page = open_page(base=cable.url)
    say(page, "up/endless", "hello")
    expect(last(page)).to_contain_text("line 3")
    cable.cut()
    expect(last(page)).to_contain_text("This answer was cut. The connection was lost")
    expect(last(page)).to_contain_text("line 3")
    page.get_by_role("button", name="Try again").click()
    expect(last(page)).to_contain_text("This call failed. The gateway cannot be reached.")
    cable.mend()
    page.get_by_role("button", name="Try again").click()
    expect(last(page)).to_contain_text("line 3")


def test_a_text_answer_that_a_reload_ended_says_so(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "up/endless", "go on")
    expect(last(page)).to_contain_text("line 3")
    keeps(page, "turn?.text?.includes('line 3')")
    page.reload()
    expect(last(page)).to_contain_text("This answer was cut. The page was left while it was being written")
    expect(last(page)).to_contain_text("line 3")


def test_the_code_that_is_copied_runs(open_page: OpenPage, real: str, tmp_path: Path) -> None:
    page = open_page()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.evaluate(GIVE, [[*png(300, 300)] * 3, "paste"])
    expect(page.get_by_role("button", name="Remove ")).to_be_visible()
    asked = sent_by(page, lambda: say(page, "up/words", 'it\'s a "quoted" $tree 🌲\nJSON'))
    over(page)
    page.get_by_role("button", name="Copy as code").click()
    dialog = page.get_by_role("dialog")
    programs = {}
    for language in ("curl", "Python", "Node"):
        dialog.get_by_text(language, exact=True).click()
        assert "base64,…" in dialog.locator("pre").inner_text()
        programs[language] = copied_by(page, dialog.get_by_role("button", name="Copy", exact=True))
        assert f"{real}v1" in programs[language]
    body = programs["curl"].partition("<<'JSON'\n")[2].removesuffix("JSON\n")
    assert json.loads(body) == asked.post_data_json
    (ROOT / "web" / "node_modules" / ".copied.mjs").write_text(programs["Node"])
    commands: dict[str, list[Any]] = {
        "curl": ["sh", "-c", programs["curl"]],
        "Python": [sys.executable, "-c", programs["Python"]],
        "Node": ["node", ROOT / "web" / "node_modules" / ".copied.mjs"],
    }
    said = {name: subprocess.run(run, capture_output=True, check=True, cwd=tmp_path) for name, run in commands.items()}
    assert b"data: [DONE]" in said["curl"].stdout
    assert said["Python"].stdout == said["Node"].stdout == b"A trunk line carries what many branches bring, as told."


def test_a_wrong_key_is_asked_for_again_and_never_in_code(open_page: OpenPage, locked: str) -> None:
    admin = open_page("admin/#/keys", base=locked)
    admin.get_by_role("button", name="New key").click()
    admin.get_by_role("textbox", name="Name", exact=True).fill("playground")
    admin.get_by_role("button", name="Make the key").click()
    key = admin.get_by_test_id("new-key").inner_text()
    expect(admin.get_by_role("dialog")).to_contain_text("The playground has no key yet")
    page = open_page(base=locked)
    say(page, "up/words", "hello")
    expect(last(page).get_by_role("alert")).to_contain_text("401 invalid_api_key")
    last(page).get_by_role("button", name="Enter a key").click()
    page.get_by_role("textbox", name="API key").fill(key)
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Try again").click()
    expect(last(page)).to_contain_text("as told.")
    over(page)
    page.get_by_role("button", name="Copy as code").click()
    code = page.get_by_role("dialog").locator("pre").inner_text()
    assert "TRUNKLINE_API_KEY" in code
    assert key not in code
    close_dialog(page)
    admin.get_by_role("button", name="Use it in the playground").click()
    admin.get_by_role("dialog").get_by_role("button", name="Close").click()
    assert admin.evaluate("localStorage.getItem('trunkline.key')") == key
    admin.get_by_role("button", name="Edit playground").click()
    admin.get_by_text("More limits").click()
    admin.get_by_label("Expires").fill("2020-01-01T00:00")
    admin.get_by_role("button", name="Save").click()
    expect(admin.get_by_role("listitem").filter(has_text="playground")).to_contain_text("expired")
    say(page, "up/words", "and now?")
    expect(last(page).get_by_role("alert")).to_contain_text("This API key has expired")
    page.reload()
    expect(page.get_by_role("dialog").get_by_role("alert")).to_have_text("This API key has expired")


def test_a_key_that_no_model_fits_is_told(open_page: OpenPage, locked: str) -> None:
    admin = open_page("admin/#/keys", base=locked)
    admin.get_by_role("button", name="New key").click()
    admin.get_by_role("textbox", name="Name", exact=True).fill("misspelt")
    admin.get_by_label("Allowed models").fill("up/wrods")
    admin.get_by_role("button", name="Make the key").click()
    admin.get_by_role("button", name="Use it in the playground").click()
    admin.goto(locked)
    expect(admin.get_by_role("alert")).to_contain_text("There is no model here that you may use.")
    admin.get_by_role("button", name="Enter a key").click()
    expect(admin.get_by_role("textbox", name="API key")).to_be_visible()


def test_the_keyboard_is_enough(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Go to the message box")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("one line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("another")
    choose(page, "up/words")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="You")).to_have_text("one line another")
    over(page)
    page.get_by_role("button", name="Model:").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Find a model")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_label("Message", exact=True)).to_be_focused()
    page.get_by_role("button", name="Options").press("Enter")
    for _ in range(12):
        page.keyboard.press("Tab")
        assert page.evaluate(
            "document.activeElement.closest('dialog') !== null || document.activeElement === document.body"
        )
    page.keyboard.press("Escape")
    expect(page.get_by_role("button", name="Options")).to_be_focused()


@pytest.mark.parametrize("model", ["up/hostile", "up/evil_tools", "up/wrong", HOSTILE_NAME])
def test_nothing_a_model_says_or_is_called_runs(open_page: OpenPage, model: str) -> None:
    page = open_page()
    text = '<img src=x onerror="window.hacked=1">'
    say(page, model, text)
    over(page)
    inside = last(page).locator(".prose, form, .note")
    assert inside.locator("script, iframe, svg:not([aria-hidden]), object, [onerror], [onload], img").count() == 0
    for link in inside.locator("a[href]").all():
        assert str(link.get_attribute("href")).startswith("https://")
    last(page).get_by_role("button", name="Copy as code").click()
    close_dialog(page)
    last(page).get_by_role("button", name="Inspect").click()
    panel = page.get_by_role("complementary", name="Inspector")
    expect(panel.get_by_role("table").or_(panel.get_by_text("are not here"))).to_be_visible()
    reload(page)
    expect(page.get_by_role("article", name="You")).to_have_text(text)
