"""Every corpus case: its events, its client stream, and the properties that hold for all."""

import random

import pytest
from corpus import Case, as_lines, cases, encode, run

from trunkline.core.events import Event, Extras, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from trunkline.core.notes import Notes
from trunkline.core.rules import RULES
from trunkline.core.stream import Grammar
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.pipeline import ChatLine


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.dialect}/{case.name}")
def test_a_case(case: Case) -> None:
    events, notes = run(case, [case.upstream])
    assert as_lines(events) == (case.folder / "events.jsonl").read_text()
    assert encode(events) == (case.folder / "client.sse").read_bytes()
    assert set(notes.counts) <= set(RULES)
    obeys_the_grammar(events)
    shows_its_rules(case)
    does_not_change_by_cuts(case, events)
    does_not_change_by_line_endings(case, events)
    is_read_back_as_it_was_written(case, events)
    never_looks_finished_when_it_is_cut(case)


def obeys_the_grammar(events: list[Event]) -> None:
    grammar = Grammar()
    for event in events:
        grammar.feed(event)
    grammar.close()


def shows_its_rules(case: Case) -> None:
    _, notes = run(case, [case.upstream], thorough=True)
    assert set(case.rules) <= set(notes.counts)


def does_not_change_by_cuts(case: Case, events: list[Event]) -> None:
    data = case.upstream
    counts = run(case, [data])[1].counts
    chance = random.Random(case.name)
    for cut in ([data[i : i + 1] for i in range(len(data))], *(pieces(data, chance) for _ in range(3))):
        said_then, notes = run(case, cut)
        assert joined(said_then) == joined(events)
        assert notes.counts == counts


def does_not_change_by_line_endings(case: Case, events: list[Event]) -> None:
    if case.folder.joinpath("upstream.bin").exists() or b"\r" in case.upstream:
        return
    for ending in (b"\r\n", b"\r"):
        data = case.upstream.replace(b"\n", ending)
        assert joined(run(case, [data])[0]) == joined(events)
        chance = random.Random(case.name)
        assert joined(run(case, pieces(data, chance))[0]) == joined(events)


def is_read_back_as_it_was_written(case: Case, events: list[Event]) -> None:
    line = ChatLine(CHAT_DIALECTS["openai_chat"], Notes(), n=case.n, salt="corpus")
    again = line.feed(encode(events)) + line.close()
    kept = (TextDelta, ReasoningDelta, RefusalDelta, ToolCallDelta)
    assert said(again, kept) == said(InlineMedia().feed(events), kept)


def never_looks_finished_when_it_is_cut(case: Case) -> None:
    data = case.upstream
    for end in range(0, len(data), max(1, len(data) // 15)):
        obeys_the_grammar(run(case, [data[:end]])[0])


def pieces(data: bytes, chance: random.Random) -> list[bytes]:
    cuts = sorted(chance.randrange(len(data)) for _ in range(9))
    return [data[start:end] for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


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
        if isinstance(event, kinds):
            key = f"{type(event).__name__} {getattr(event, 'choice', 0)}"
            texts[key] = texts.get(key, "") + str(getattr(event, "text", "") or getattr(event, "arguments", ""))
    return texts
