"""Every corpus case: its events, its client stream, and the properties that hold for all."""

import random

import pytest
from corpus import Case, as_lines, cases, encode, run

from trunkline.core.events import Event, Extras, Progress, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from trunkline.core.notes import Notes
from trunkline.core.rules import RULES
from trunkline.core.stream import Grammar
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.pipeline import ChatLine

CASES = cases()
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.dialect}/{case.name}")


@every_case
def test_the_events_and_the_clients_stream(case: Case) -> None:
    events, notes = run(case, [case.upstream])
    assert as_lines(events) == (case.folder / "events.jsonl").read_text()
    assert encode(events) == (case.folder / "client.sse").read_bytes()
    assert set(notes.counts) <= set(RULES)


@every_case
def test_the_rules_that_it_shows_are_noticed(case: Case) -> None:
    _, notes = run(case, [case.upstream], thorough=True)
    assert set(case.rules) <= set(notes.counts)


@every_case
def test_the_events_obey_the_grammar(case: Case) -> None:
    grammar = Grammar()
    for event in run(case, [case.upstream])[0]:
        grammar.feed(event)
    grammar.close()


@every_case
def test_cuts_do_not_matter(case: Case) -> None:
    data = case.upstream
    whole = joined(run(case, [data])[0])
    assert joined(run(case, [data[i : i + 1] for i in range(len(data))])[0]) == whole
    chance = random.Random(case.name)
    for _ in range(5):
        cuts = sorted(chance.randrange(len(data)) for _ in range(9))
        pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert joined(run(case, pieces)[0]) == whole


@every_case
@pytest.mark.parametrize("ending", [b"\r\n", b"\r"])
def test_line_endings_do_not_matter(case: Case, ending: bytes) -> None:
    if case.folder.joinpath("upstream.bin").exists() or b"\r" in case.upstream:
        return
    data = case.upstream.replace(b"\n", ending)
    whole = joined(run(case, [case.upstream])[0])
    assert joined(run(case, [data])[0]) == whole
    chance = random.Random(case.name)
    for _ in range(3):
        cuts = sorted(chance.randrange(len(data)) for _ in range(9))
        pieces = [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]
        assert joined(run(case, pieces)[0]) == whole


@every_case
def test_what_we_write_we_read_back(case: Case) -> None:
    events, _ = run(case, [case.upstream])
    line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes(), n=case.n, salt="corpus")
    again = line.feed(encode(events)) + line.close()
    kept = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta)
    assert said(again, kept) == said(inlined(events), kept)


@every_case
def test_a_cut_stream_never_looks_finished_and_never_raises(case: Case) -> None:
    data = case.upstream
    for end in range(0, len(data), max(1, len(data) // 40)):
        events, _ = run(case, [data[:end]])
        grammar = Grammar()
        for event in events:
            grammar.feed(event)
        grammar.close()


def joined(events: list[Event]) -> list[str]:
    """Neighbouring deltas of one choice are one text: how it was cut is nobody's business."""
    lines: list[str] = []
    last: tuple[type, int] | None = None
    for event in events:
        kind = (type(event), getattr(event, "choice", 0) or 0)
        if isinstance(event, TextDelta | ReasoningDelta | RefusalDelta) and kind == last:
            lines[-1] += event.text
        elif isinstance(event, TextDelta | ReasoningDelta | RefusalDelta):
            lines.append(f"{kind[0].__name__} {kind[1]} {event.text}")
        elif not isinstance(event, Extras):
            lines.append(as_lines([event]))
        last = kind
    return lines


def said(events: list[Event], kinds: tuple[type, ...]) -> dict[str, str]:
    """All text by kind and choice."""
    texts: dict[str, str] = {}
    for event in events:
        if isinstance(event, kinds) or (isinstance(event, Progress) and event.text):
            name = "ReasoningDelta" if isinstance(event, Progress) else type(event).__name__  # as it is written
            key = f"{name} {getattr(event, 'choice', 0)}"
            texts[key] = texts.get(key, "") + str(getattr(event, "text", "") or getattr(event, "arguments", ""))
    return texts


def inlined(events: list[Event]) -> list[Event]:
    return InlineMedia().feed(events)
