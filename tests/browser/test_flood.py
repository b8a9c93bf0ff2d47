"""Three thousand chunks a second: drawn by the frame, and in a frame only what is new."""

import pytest
from browsing import OpenPage, expect, last, over, reload, say
from provider import Provider
from said import FLOODS

pytestmark = pytest.mark.browser
BLOCK = 4_500
"""Characters that may be drawn again: the last block, or the last part of a large one (`web/src/lib/markdown.ts`)."""
WATCH = """() => {
    Object.assign(window, { frames_: 0, longest: 0, drawn: 0, again: 0 });
    let before = performance.now();
    const frame = (now) => {
        frames_ += 1; longest = Math.max(longest, now - before); before = now;
        requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
    let size = 0;
    new MutationObserver((changes) => {
        const prose = document.querySelector("article.answer .prose");
        const made = changes.flatMap((one) => prose?.contains(one.target) ? [...one.addedNodes] : []);
        const length = prose?.textContent.length ?? 0;
        // What was added and is still there, beyond what the text has grown by.
        const added = made.reduce((sum, node) => sum + (prose.contains(node) ? node.textContent.length : 0), 0);
        drawn += made.length > 0;
        again = Math.max(again, added - (length - size));
        size = length;
    }).observe(document.querySelector("main"), { childList: true, subtree: true });
}"""
COUNTS = {"many_parts": {"h2": 200, "pre": 200, "li": 400, "tr": 400}, "one_list": {"li": 1400, "ul": 701}}
COUNTS |= {"one_code": {"pre": 1}, "one_table": {"tr": 701, "table": 1}, "one_paragraph": {"strong": 4500}}


@pytest.mark.parametrize("model", FLOODS)
def test_three_thousand_chunks_a_second_are_drawn_by_the_frame(
    open_page: OpenPage, provider: Provider, model: str
) -> None:
    page = open_page()
    page.evaluate(WATCH)
    inside = last(page).locator(".prose")
    with provider.at_work():  # so some is drawn before all is there, also where everything stands still for a while
        say(page, f"up/{model}", "as fast as you can")
        expect(inside).not_to_be_empty()
    expect(last(page)).to_contain_text("tokens/s")
    over(page)
    frames, drawn, longest, again = page.evaluate("[frames_, drawn, longest, again]")
    print(f"{model}: {frames} frames, {drawn} times drawn, longest frame {longest:.0f} ms, {again} characters again")
    assert 1 < drawn <= frames + 20
    assert again < BLOCK
    for element, count in COUNTS[model].items():
        expect(inside.locator(element)).to_have_count(count)
    if model == "one_code":
        assert inside.locator("code").evaluate("code => code.textContent") == FLOODS[model][10:-4]
    else:
        told = inside.inner_text().split()
        reload(page)  # and what is drawn at once is the same
        expect(inside.locator(next(iter(COUNTS[model])))).to_have_count(COUNTS[model][next(iter(COUNTS[model]))])
        assert inside.inner_text().split() == told
