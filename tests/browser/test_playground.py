import json
import re
from pathlib import Path

import pytest
from browsing import STORED, OpenPage, a_file, choose, expect, last, over, say
from fake_gateway import FakeGateway, Running, png

pytestmark = pytest.mark.browser
SOME = re.compile(r"[1-9]\d")
"""Some tens of percent."""


def test_text_streams_and_tells_its_speed_and_cost(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    page.get_by_role("button", name="Text · local/text").click()
    page.keyboard.press("Enter")
    for text in ("A trunk line is", "engineers borrowed it.", "First token", "tokens/s", "31 → 60", "$0.000213"):
        expect(last(page)).to_contain_text(text)
    assert gateway.requests[0]["stream_options"] == {"include_usage": True, "include_cost": True}


def test_a_conversation_goes_on_and_is_there_after_a_reload(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    answers = page.get_by_role("article", name="Answer of")
    say(page, "local/text", "first question")
    over(page)
    say(page, "local/text", "second question")
    expect(answers).to_have_count(2)
    over(page)
    assert [message["role"] for message in gateway.requests[1]["messages"]] == ["user", "assistant", "user"]
    page.reload()
    expect(answers).to_have_count(2)
    page.get_by_role("button", name="New chat").click()
    expect(answers).to_have_count(0)
    page.get_by_role("button", name="Delete “first question”").click(force=True)
    page.wait_for_function(f"({STORED})().then((turn) => turn === undefined)")
    page.reload()
    expect(page.get_by_role("button", name="Model:")).to_be_visible()
    expect(page.get_by_text("first question")).to_have_count(0)


def test_markdown_is_rendered_and_pictures_elsewhere_are_not_loaded(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "test/markdown", "show me")
    over(page)
    expect(last(page).get_by_role("heading", name="Lines and trunks")).to_be_visible()
    expect(last(page).get_by_role("cell", name="vermilion")).to_be_visible()
    expect(last(page).locator("pre")).to_contain_text("yield from branch")
    expect(last(page).get_by_role("link", name="elsewhere · tracker.example")).to_be_visible()
    assert last(page).get_by_role("link", name="the contract").get_attribute("rel") == "noopener noreferrer"
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    last(page).locator("[data-copy]").click()
    assert page.evaluate("navigator.clipboard.readText()").startswith("def trunk(branches):")


def test_reasoning_is_shown_while_it_comes_and_folded_when_the_answer_is_there(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "test/think", "think")
    expect(last(page).get_by_text("Thinking…")).to_be_visible()
    over(page)
    expect(last(page).get_by_text("Step 3:")).to_be_hidden()
    last(page).get_by_text("Reasoning").click()
    expect(last(page).get_by_text("Step 3:")).to_be_visible()


def test_tool_calls_are_shown_and_their_results_sent(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    page.get_by_role("button", name="Options").click()
    page.get_by_label("Tools (JSON)").fill("{}")
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_role("alert")).to_contain_text("must be a list")
    page.get_by_role("button", name="Use the example tool").click()
    page.get_by_label("System prompt").fill("Be brief.")
    page.get_by_role("button", name="Save").click()
    say(page, "test/tools", "weather?")
    expect(last(page)).to_contain_text('"city": "Lisbon"')
    page.get_by_label("Result of get_weather").fill("19 degrees")
    page.get_by_role("button", name="Send results").click()
    expect(last(page)).to_contain_text("The tool says: 19 degrees")
    assert gateway.requests[0]["tools"][0]["function"]["name"] == "get_weather"
    roles = [message["role"] for message in gateway.requests[1]["messages"]]
    assert roles == ["system", "user", "assistant", "tool"]
    assert gateway.requests[1]["messages"][3] == {"role": "tool", "tool_call_id": "call_1", "content": "19 degrees"}


def test_a_picture_is_made_as_asked_and_can_be_kept(open_page: OpenPage, gateway: FakeGateway, tmp_path: Path) -> None:
    page = open_page()
    choose(page, "local/image")
    page.get_by_text("16:9", exact=True).click()
    page.get_by_label("Size").select_option("2K")
    page.get_by_label("File type").select_option("png")
    say(page, "local/image", "a red bicycle in the rain")
    expect(last(page).get_by_role("progressbar")).to_be_visible()
    picture = last(page).get_by_role("img", name="Picture made by the model")
    expect(picture).to_be_visible()
    assert picture.evaluate("async i => (await i.decode(), [i.naturalWidth, i.naturalHeight])") == [480, 270]
    expect(last(page)).to_contain_text("480 × 270 · PNG")
    expect(last(page).locator(".prose")).to_have_text("Here is the picture.")
    asked = gateway.requests[0]
    assert (asked["aspect_ratio"], asked["image_size"], asked["output_format"]) == ("16:9", "2K", "png")
    with page.expect_download() as download:
        last(page).get_by_role("link", name="Download").click()
    download.value.save_as(tmp_path / "kept.png")
    assert (tmp_path / "kept.png").read_bytes() == png(480, 270)


GIVE = """([bytes, kind]) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], kind + ".png", { type: "image/png" }));
    const options = { dataTransfer: data, clipboardData: data, bubbles: true, cancelable: true };
    const event = kind === "paste" ? new ClipboardEvent("paste", options) : new DragEvent(kind, options);
    document.querySelector("#prompt").dispatchEvent(event);
}"""


def test_pictures_are_attached_by_choice_paste_and_drag(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    name = '<img src=x onerror="window.hacked=1">.png'
    page.locator("input[type=file]").set_input_files(
        [a_file(name, "image/png", png(8, 8, 3)), a_file("a.txt", "text/plain", b"-")]
    )
    expect(page.get_by_role("alert")).to_contain_text("a.txt is no PNG")
    page.evaluate(GIVE, [list(png(9, 9)), "paste"])
    page.evaluate(GIVE, [list(png(10, 10)), "dragover"])
    expect(page.get_by_text("Drop pictures here")).to_be_visible()
    page.evaluate(GIVE, [list(png(10, 10)), "drop"])
    expect(page.get_by_role("button", name="Remove ")).to_have_count(3)
    page.get_by_role("button", name=f"Remove {name}").click()
    say(page, "local/text", "what is it?")
    over(page)
    parts = gateway.requests[0]["messages"][0]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "image_url"]
    assert parts[1]["image_url"]["url"].startswith("data:image/png;base64,")


def test_a_film_shows_its_progress_and_plays(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.video_s = 4
    page = open_page()
    say(page, "local/video", "waves at sunset")
    expect(last(page).get_by_role("progressbar")).to_have_attribute("aria-valuenow", SOME)
    expect(last(page)).to_contain_text("left")
    film = last(page).locator("video")
    expect(film).to_be_visible(timeout=15_000)
    assert "/v1/media/cov_" in str(film.get_attribute("poster"))
    play = "async v => { v.muted = true; await v.play(); await new Promise(f => v.onended = f); return v.currentTime }"
    assert film.evaluate(play) == pytest.approx(2, abs=0.2)


def test_a_reload_in_mid_video_takes_the_stream_up_again(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.video_s = 6
    page = open_page()
    say(page, "local/video", "waves")
    expect(last(page).get_by_role("progressbar")).to_have_attribute("aria-valuenow", SOME)
    page.reload()
    expect(last(page).get_by_role("progressbar")).to_be_visible()
    expect(last(page).locator("video")).to_be_visible(timeout=15_000)
    assert len(gateway.requests) == 1
    assert page.evaluate(STORED)["reasoning"] == "".join(f"Filming {percent} %\n" for percent in range(5, 100, 5))


def test_a_reload_before_anything_came_joins_the_same_job(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    page.route("**/v1/chat/completions", lambda _: None)  # the answer's head never comes
    say(page, "local/video", "waves")
    expect(last(page).get_by_role("progressbar")).to_be_visible()
    page.wait_for_function(f"({STORED})().then((turn) => turn?.role === 'assistant')")
    page.unroute_all()
    page.reload()
    expect(last(page).locator("video")).to_be_visible(timeout=15_000)
    assert gateway.headers[0]["idempotency-key"] == page.evaluate(STORED)["id"]


def test_a_lost_connection_in_mid_video_is_taken_up_without_a_double(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.drop_connections = 2
    page = open_page()
    say(page, "local/video", "waves")
    expect(last(page).locator("video")).to_be_visible(timeout=15_000)
    assert gateway.drop_connections == 0
    assert page.evaluate(STORED)["reasoning"].count("Filming 5 %") == 1


def test_stop_ends_the_work_and_says_so(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    say(page, "test/endless", "go on")
    expect(last(page)).to_contain_text("line 3")
    page.get_by_role("button", name="Stop").click()
    expect(last(page)).to_contain_text("Stopped.")
    expect(page.get_by_role("button", name="Send")).to_be_visible()
    with page.expect_response(lambda answer: answer.request.method == "DELETE") as stopped:
        say(page, "local/video", "waves")
        expect(last(page).get_by_role("progressbar")).to_have_attribute("aria-valuenow", SOME)
        page.get_by_role("button", name="Stop").click()
    assert stopped.value.status == 204
    assert [stream.stopped for stream in gateway.streams.values()] == [False, True]


def test_try_again_asks_anew_in_the_place_of_the_old_answer(open_page: OpenPage, gateway: FakeGateway) -> None:
    page = open_page()
    choose(page, "local/image")
    page.get_by_text("9:16", exact=True).click()
    say(page, "local/image", "a tree")
    page.get_by_role("button", name="Try again").click()
    expect(last(page).get_by_role("img", name="Picture made by the model")).to_be_visible()
    expect(page.get_by_role("article", name="Answer of")).to_have_count(1)
    first, second = gateway.requests
    assert first == second
    assert gateway.headers[0]["idempotency-key"] != gateway.headers[1]["idempotency-key"]


@pytest.mark.parametrize(
    ("model", "says"),
    [
        ("test/refused", ["This call failed.", "The budget of key anna is spent.", "402 budget_exceeded"]),
        ("test/breaks", ["A trunk line", "This call failed.", "ended in the middle", "upstream_incomplete"]),
        ("test/cut", ["A trunk line", "This answer was cut.", "ended without its end mark"]),
    ],
)
def test_a_failed_or_cut_stream_says_so(open_page: OpenPage, model: str, says: list[str]) -> None:
    page = open_page()
    say(page, model, "hello")
    for text in says:
        expect(last(page)).to_contain_text(text)
    over(page)


def test_a_text_answer_that_a_reload_ended_says_so(open_page: OpenPage) -> None:
    page = open_page()
    say(page, "test/endless", "go on")
    expect(last(page)).to_contain_text("line 20")
    page.reload()
    expect(last(page)).to_contain_text("This answer was cut. The page was left while it was being written")
    expect(last(page)).to_contain_text("line 3")


def test_the_request_is_there_as_code_without_the_key(open_page: OpenPage, running: Running) -> None:
    running.gateway.key = "sk-secret"
    page = open_page()
    page.get_by_role("textbox", name="API key").fill("sk-secret")
    page.get_by_role("button", name="Save").click()
    say(page, "local/image", "it's a 'quoted' tree")
    page.get_by_role("button", name="Copy as code").click()
    dialog = page.get_by_role("dialog")
    signs = {"curl": "curl -N", "Node": 'import OpenAI from "openai"', "Python": "from openai import OpenAI"}
    for language, sign in signs.items():
        dialog.get_by_text(language, exact=True).click()
        code = dialog.locator("pre").inner_text()
        assert sign in code
        assert f"{running.url}v1" in code
        assert "sk-secret" not in code
    compile(code, "snippet", "exec")
    dialog.get_by_text("curl", exact=True).click()
    body = dialog.locator("pre").inner_text().partition("-d '")[2].strip().removesuffix("'").replace("'\\''", "'")
    assert json.loads(body) == running.gateway.requests[0]


def test_a_wrong_key_is_asked_for_again(open_page: OpenPage, gateway: FakeGateway) -> None:
    gateway.key = "sk-right"
    page = open_page()
    expect(page.get_by_role("dialog", name="API key")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("alert")).to_contain_text("The API key is missing or wrong.")
    page.get_by_role("button", name="Enter a key").click()
    page.get_by_role("textbox", name="API key").fill("sk-right")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Model: local/text")).to_be_visible()


def test_the_keyboard_is_enough(open_page: OpenPage) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    expect(page.get_by_text("Go to the message box")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.type("one line")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("another")
    page.keyboard.press("Enter")
    expect(page.get_by_role("article", name="You")).to_have_text("one line another")
    over(page)
    page.get_by_role("button", name="Model:").focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("combobox", name="Find a model")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Model: test/markdown")).to_be_visible()
    expect(page.get_by_label("Message", exact=True)).to_be_focused()


WATCH = """() => {
    Object.assign(window, { frames_: 0, longest: 0, drawn: 0 });
    let before = performance.now();
    const frame = (now) => {
        frames_ += 1; longest = Math.max(longest, now - before); before = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    new MutationObserver(() => drawn += 1).observe(document.querySelector("main"), { childList: true, subtree: true });
}"""


def test_nine_thousand_chunks_in_three_seconds_are_drawn_by_the_frame(open_page: OpenPage) -> None:
    page = open_page()
    page.evaluate(WATCH)
    say(page, "test/flood", "as fast as you can")
    expect(last(page)).to_contain_text("word8998", timeout=30_000)
    expect(last(page)).to_contain_text("31 → 9,000", timeout=30_000)
    frames, drawn, longest = page.evaluate("[frames_, drawn, longest]")
    print(f"9,000 chunks: {frames} frames, {drawn} times drawn, longest frame {longest:.0f} ms")
    assert 10 < drawn <= frames + 20
    words = last(page).locator(".prose").inner_text().split()
    sent = [f"word{number}" for number in range(9000) if number % 60 not in {30, 59}]
    assert [word for word in words if word.startswith("word")] == sent


@pytest.mark.parametrize("model", ["test/hostile", "test/hostile-image", "onerror"])
def test_nothing_a_model_says_or_is_called_runs(open_page: OpenPage, model: str) -> None:
    page = open_page()
    text = '<img src=x onerror="window.hacked=1">'
    say(page, model, text)
    over(page)
    inside = last(page).locator(".prose")
    assert inside.locator("script, iframe, svg, form, object, [onerror], [onload], [style]").count() == 0
    for link in inside.locator("a[href]").all():
        assert str(link.get_attribute("href")).startswith("https://")
    page.get_by_role("button", name="Copy as code").click()
    page.keyboard.press("Escape")
    page.reload()
    expect(page.get_by_role("article", name="You")).to_have_text(text)
