"""Usage that comes more than once: what one does not tell the one before it does, and nothing is added up."""

from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.events import Usage

COUNTS = st.integers(0, 3)
USAGES = st.builds(
    lambda prompt, completion, cached, thought, over: Usage(
        prompt,
        completion,
        prompt + completion + over,
        cached_tokens=min(cached, prompt),
        reasoning_tokens=min(thought, completion),
    ),
    COUNTS, COUNTS, COUNTS, COUNTS, COUNTS,
)  # fmt: skip


@given(USAGES, USAGES)
def test_every_count_is_one_of_the_two(former: Usage, later: Usage) -> None:
    whole = later.after(former)
    assert whole.prompt_tokens == (later.prompt_tokens or former.prompt_tokens)
    assert whole.completion_tokens == (later.completion_tokens or former.completion_tokens)
    assert whole.cached_tokens == (later if later.prompt_tokens else former).cached_tokens
    assert whole.reasoning_tokens == (later if later.completion_tokens else former).reasoning_tokens
    assert whole.total_tokens == max(later.total_tokens, whole.prompt_tokens + whole.completion_tokens)


@given(USAGES)
def test_the_same_usage_again_changes_nothing(usage: Usage) -> None:
    assert usage.after(usage) == usage
    assert usage.after(Usage()) == usage
