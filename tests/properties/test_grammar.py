"""Whatever goes into a Normaliser, what comes out satisfies the Grammar."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.chat import ChatRequest
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    MediaReady,
    Progress,
    ReasoningDelta,
    RefusalDelta,
    Started,
    TextDelta,
    ToolCallDelta,
    ToolCallStarted,
    Usage,
    UsageReported,
)
from trunkline.core.media import Media
from trunkline.core.notes import Notes
from trunkline.core.rules import RULES
from trunkline.core.stream import Grammar, Normaliser
from trunkline.ingress.openai_chat import ChunkEncoder

choice = st.integers(0, 3)
call = st.integers(0, 3)
text = st.text(max_size=5)
reasons = st.sampled_from(["stop", "length", "tool_calls", "content_filter"])
event: st.SearchStrategy[Event] = st.one_of(
    st.builds(Started, id=text, model=text, created=st.integers(0, 9)),
    st.builds(TextDelta, text=text, choice=choice),
    st.builds(ReasoningDelta, text=text, choice=choice),
    st.builds(RefusalDelta, text=text, choice=choice),
    st.builds(ToolCallStarted, call=call, id=st.just("call"), name=text, choice=choice),
    st.builds(ToolCallDelta, call=call, arguments=text, choice=choice),
    st.builds(MediaReady, media=st.just(Media("image", url="https://x.example/a.png")), choice=choice),
    st.builds(Progress, percent=st.none(), text=text),
    st.builds(Finished, reason=reasons, choice=choice),
    st.builds(UsageReported, usage=st.builds(Usage, prompt_tokens=st.integers(0, 9))),
    st.builds(Extras, fields=st.just({})),
    st.builds(Ended),
    st.builds(Failed, code=st.just("x"), message=text),
)


@given(
    batches=st.lists(st.lists(event, max_size=6), max_size=6),
    broken=st.sampled_from(["", "reset"]),
    whole=st.booleans(),
)
def test_the_normalisers_output_obeys_the_grammar(batches: list[list[Event]], broken: str, *, whole: bool) -> None:
    notes = Notes()
    normaliser = Normaliser(notes)
    grammar = Grammar()
    out = [got for batch in batches for got in normaliser.feed(batch)]
    out += normaliser.close(broken, whole=whole)
    for got in out:
        grammar.feed(got)
    grammar.close()
    assert set(notes.counts) <= set(RULES)
    body = b"".join(ChunkEncoder(ChatRequest("m", {}), id="x", created=1).encode(out))
    assert body.endswith(b"data: [DONE]\n\n") == isinstance(out[-1], Ended)


@given(events=st.lists(event, max_size=12), cut=st.integers(0, 12))
def test_batches_do_not_matter(events: list[Event], cut: int) -> None:
    one, two = Normaliser(Notes()), Normaliser(Notes())
    whole = one.feed(events) + one.close()
    parts = two.feed(events[:cut]) + two.feed(events[cut:]) + two.close()
    assert whole == parts
