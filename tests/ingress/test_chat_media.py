"""Answers over chat: what is told at once, what is held, and what an answer without a medium is."""

import pytest

from trunkline.core.events import (
    Ended,
    Event,
    Failed,
    Finished,
    MediaReady,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    Usage,
    UsageReported,
)
from trunkline.core.media import Media
from trunkline.core.provider import ModelKind
from trunkline.ingress.chat_media import ChatMedia, Spoken, failure_of

A = "https://x.example/a.png"


def fed(text: str, kind: ModelKind = "image", cut: int = 7) -> tuple[list[Event], list[Spoken]]:
    answer = ChatMedia(kind)
    told = answer.feed([Started("1")])
    for start in range(0, len(text), cut):
        told += answer.feed([TextDelta(text[start : start + cut])])
    told += answer.feed([Finished("stop"), UsageReported(Usage(1, 2, 3)), Ended()])
    assert answer.ended
    assert answer.usage is not None
    return told, list(answer.spoken())


@pytest.mark.parametrize("cut", [1, 2, 5, 400])
def test_the_result_does_not_depend_on_the_cuts(cut: int) -> None:
    text = f"Generating… (3s elapsed)\nHere it is: ![image]({A}){A}\n"
    told, spoken = fed(text, cut=cut)
    assert told == [Started("1"), Progress(text="Generating… (3s elapsed)")]
    assert [(one.words, [media.url for media in one.media]) for one in spoken] == [("Here it is:", [A])]


def test_progress_of_films() -> None:
    text = (
        '```json\n{\n"prompt": "a dog"\n}\n```\n> Task(id=7)\n[任务](🔥🔥)🎉\n'
        "> 进度：12.5%\n> 进度：12.5%\n> 99%\n[视频](https://x.example/a.mp4)\n"
    )
    told, spoken = fed(text, "video", cut=1000)
    assert told[1:] == [Progress(text="Task(id=7)"), Progress(12.5), Progress(99.0)]
    assert [one.words for one in spoken] == [""]
    ticks, _ = fed("[progress](🔥🔥🔥", "video", cut=1)
    assert Progress() in ticks


def test_media_beside_the_text_keep_their_place_and_stand_once() -> None:
    answer = ChatMedia("image")
    one, two = Media("image", url="data:image/png;base64,AAAA"), Media("image", url=A, in_text=True)
    answer.feed([TextDelta("First "), MediaReady(one), TextDelta(f"then ![b]({A})"), MediaReady(two), Ended()])
    [spoken] = answer.spoken()
    assert (spoken.words, [media.url for media in spoken.media]) == ("First then", [one.url, A])


def test_choices_and_reasoning_are_kept_apart() -> None:
    answer = ChatMedia("image")
    told = answer.feed([ReasoningDelta("hm"), TextDelta("a", 1), TextDelta("b", 0), Finished("length", 1), Ended()])
    assert told == [ReasoningDelta("hm")]
    assert [(one.choice, one.words, one.reason) for one in answer.spoken()] == [(0, "b", "stop"), (1, "a", "length")]


@pytest.mark.parametrize(
    ("words", "kind", "reason", "code"),
    [
        ("", "image", "stop", "upstream_no_image"),
        ("> Generation Failed ❌ Reason: content policy", "image", "stop", "upstream_no_image"),
        ("I will not.", "image", "content_filter", "content_filter"),
        ("Some words", "video", "stop", "upstream_no_video"),
        ("Which cat do you mean?", "image", "stop", None),
    ],
)
def test_answers_without_a_medium(words: str, kind: ModelKind, reason: str, code: str | None) -> None:
    failed = failure_of([Spoken(0, words, (), reason)], kind)  # type: ignore[arg-type]
    assert (failed.code if failed else None) == code
    assert failed is None or words in failed.message


def test_an_endless_text_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trunkline.ingress.chat_media.LONGEST_CHARS", 10)
    told = ChatMedia("image").feed([TextDelta("x" * 11)])
    assert [event.code for event in told if isinstance(event, Failed)] == ["upstream_malformed"]
