"""Usage that comes more than once: what one does not tell the one before it does, and nothing is added up."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from trunkline.core.events import Usage
from trunkline.core.notes import Notes
from trunkline.policy.price import Tariff, TokenPrices
from trunkline.wire.counted import Counted
from trunkline.wire.usage import read_usage

PROMPT, COMPLETION = "prompt_tokens", "completion_tokens"
INPUTS = ("cached_tokens", "cache_write_tokens", "audio_input_tokens", "image_input_tokens")
OUTPUTS = ("reasoning_tokens", "audio_output_tokens", "image_output_tokens")
KINDS = (*INPUTS, *OUTPUTS)
DEAR = Tariff("x", ((0, TokenPrices(**dict.fromkeys(TokenPrices.__struct_fields__, 1_000_000) | {"request": 0})),))
"""Every token, of whatever kind, is a micro-dollar."""


@st.composite
def usages(draw: Callable[[st.SearchStrategy[int]], int]) -> Usage:
    """One that tells of no more tokens of its kinds than there are, and perhaps of nothing."""
    counts: dict[str, Any] = {}
    for side, kinds in ((PROMPT, INPUTS), (COMPLETION, OUTPUTS)):
        counts[side] = room = draw(st.sampled_from([0, 3, 10]))
        for kind in kinds:
            counts[kind] = draw(st.integers(0, room))
            room -= counts[kind]
    return Usage(**counts, total_tokens=counts[PROMPT] + counts[COMPLETION])


@given(usages(), usages())
def test_every_sum_is_one_of_the_two(former: Usage, later: Usage) -> None:
    whole = later.after(former)
    assert whole.prompt_tokens == (later.prompt_tokens or former.prompt_tokens)
    assert whole.completion_tokens == (later.completion_tokens or former.completion_tokens)
    assert whole.total_tokens == whole.prompt_tokens + whole.completion_tokens


@given(usages(), usages())
def test_a_kind_is_what_is_told_of_it_and_what_is_not_is_the_formers(former: Usage, later: Usage) -> None:
    whole = later.after(former)
    for kind in KINDS:
        told, before, got = (getattr(usage, kind) for usage in (later, former, whole))
        assert got == told if told else got <= before


@given(usages(), usages())
def test_no_token_is_paid_twice(former: Usage, later: Usage) -> None:
    whole = later.after(former)
    assert sum(getattr(whole, kind) for kind in INPUTS) <= whole.prompt_tokens
    assert sum(getattr(whole, kind) for kind in OUTPUTS) <= whole.completion_tokens
    assert DEAR.of_tokens(whole) == whole.total_tokens


@given(usages(), st.data())
def test_what_is_told_in_two_parts_is_whole(usage: Usage, data: st.DataObject) -> None:
    """The sums stand in both or in one; each kind stands in one."""
    first = data.draw(st.sets(st.sampled_from(KINDS)))
    former = replace(
        usage, **dict.fromkeys(set(KINDS) - first, 0), completion_tokens=1 if usage.completion_tokens else 0
    )
    later = replace(usage, **dict.fromkeys(first, 0), **data.draw(st.sampled_from([{}, {PROMPT: 0}])))
    assert later.after(former) == usage


@given(usages())
def test_the_same_usage_again_changes_nothing(usage: Usage) -> None:
    assert usage.after(usage) == usage
    assert usage.after(Usage()) == usage
    assert Usage().after(usage) == usage


@given(usages(), st.integers(0, 99), st.one_of(st.none(), st.integers(0, 99)))
def test_what_the_former_cost_is_the_cost_until_more_is_counted(usage: Usage, cost: int, later: int | None) -> None:
    former = replace(usage, cost_microusd=cost)
    assert replace(usage, cost_microusd=later).after(former).cost_microusd == (cost if later is None else later)
    more = replace(usage, completion_tokens=usage.completion_tokens + 1, cost_microusd=later)
    assert more.after(former).cost_microusd == later


def test_reasoning_beside_the_completion_stays() -> None:
    former = Usage(10, 5, 22, reasoning_tokens=7)
    assert Usage(10, 5, 22).after(former) == former


@given(usages(), usages())
def test_two_choices_have_one_prompt(one: Usage, other: Usage) -> None:
    both = one.beside(replace(other, prompt_tokens=one.prompt_tokens))
    assert both.prompt_tokens == one.prompt_tokens
    assert both.reasoning_tokens == one.reasoning_tokens + other.reasoning_tokens
    assert both.completion_tokens == one.completion_tokens + other.completion_tokens
    assert both.total_tokens == both.prompt_tokens + both.completion_tokens


def test_kinds_of_the_first_part_stay_when_only_sums_follow() -> None:
    counted = Counted(Notes())
    counted.take(
        {
            "prompt_tokens": 100,
            "completion_tokens": 1,
            "total_tokens": 101,
            "prompt_tokens_details": {"cached_tokens": 80},
        }
    )
    for completion in (2, 20):
        counted.take({"prompt_tokens": 100, "completion_tokens": completion, "total_tokens": 100 + completion})
    assert counted.usage == Usage(100, 20, 120, cached_tokens=80)


def told(usage: Usage) -> dict[str, object]:
    """The usage as OpenAI writes it."""
    sums = {"prompt_tokens": usage.prompt_tokens, "completion_tokens": usage.completion_tokens}
    inputs = {"cached_tokens": usage.cached_tokens, "cache_write_tokens": usage.cache_write_tokens}
    outputs = {"reasoning_tokens": usage.reasoning_tokens}
    return sums | {"prompt_tokens_details": inputs, "completion_tokens_details": outputs}


@given(st.lists(usages(), max_size=5))
def test_many_are_the_last_after_all_before_it(parts: list[Usage]) -> None:
    counted = Counted(Notes())
    whole: Usage | None = None
    for part in parts:
        counted.take(told(part))
        read = read_usage(told(part))
        whole = read.after(whole) if read and whole else read or whole
    assert counted.usage == whole
