"""Rates: never more than the limit in any 60 seconds, and as soon as it fits again."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.keys import Rates
from trunkline.policy.rate import SLOT_S, WINDOW, Counters, headers, refusal, slot_of


def take(counters: Counters, rates: Rates, slot: int, *, tokens: int = 0, images: int = 0, streams: int = 0) -> bool:
    return counters.take(rates, slot, tokens=tokens, images=images, streams=streams).short is None


def test_exactly_as_many_calls_as_the_limit() -> None:
    counters = Counters()
    assert sum(take(counters, Rates(requests=50), 7) for _ in range(300)) == 50


@given(limit=st.integers(1, 8), gaps=st.lists(st.integers(0, 300), max_size=60))
def test_never_more_than_the_limit_in_any_60_seconds(limit: int, gaps: Sequence[int]) -> None:
    counters, slot, passed = Counters(), 0, list[int]()
    for gap in gaps:
        slot += gap
        verdict = counters.take(Rates(requests=limit), slot, tokens=0, images=0, streams=0)
        if verdict.short is None:
            passed.append(slot)
        else:
            assert verdict.retry_after_s > 0
            later = slot + round(verdict.retry_after_s / SLOT_S)
            assert sum(later - WINDOW <= then for then in passed) < limit
            assert sum(later - 1 - WINDOW <= then for then in passed) >= limit
    for begin in passed:
        assert sum(begin <= then <= begin + WINDOW for then in passed) <= limit


def test_what_was_counted_before_the_clock_was_set_back_is_forgotten() -> None:
    counters, rates, slot = Counters(), Rates(requests=2), 500_000
    assert [take(counters, rates, slot) for _ in range(3)] == [True, True, False]
    assert not take(counters, rates, slot - 1)  # of a process that had to wait for its turn
    assert [take(counters, rates, slot - 108_000) for _ in range(3)] == [True, True, False]


def test_a_call_counts_everywhere_or_nowhere() -> None:
    counters, rates = Counters(), Rates(requests=10, tokens=100, images=3, streams=2)
    assert take(counters, rates, 0, tokens=60, images=2, streams=1)
    for asked in ({"tokens": 41}, {"images": 2}):
        assert not take(counters, rates, 0, **asked)
    assert take(counters, rates, 0, tokens=40, images=1, streams=1)
    assert not take(counters, rates, 0, streams=1)
    assert (counters.requests.total, counters.tokens.total, counters.images.total, counters.streams) == (2, 100, 3, 2)


def test_what_a_call_really_used_counts_where_it_began() -> None:
    counters, rates = Counters(), Rates(tokens=100)
    assert take(counters, rates, 0, tokens=90)
    assert take(counters, rates, 10, tokens=10)
    counters.end(0, more_tokens=-50, streams=0)
    assert not take(counters, rates, 20, tokens=51)
    assert take(counters, rates, 20, tokens=50)
    counters.end(10, more_tokens=30, streams=0)
    verdict = counters.take(rates, 30, tokens=1, images=0, streams=0)
    assert verdict.short == "tokens"
    assert verdict.retry_after_s == pytest.approx((WINDOW + 1 - 30) * SLOT_S)
    counters.tokens.forget(WINDOW * 3)
    counters.end(0, more_tokens=7, streams=0)  # its slot has left long ago
    counters.tokens.forget(WINDOW * 3)
    assert counters.tokens.total == 0


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 30), st.integers(-30, 30)), max_size=40))
def test_the_total_is_the_sum_of_the_slots(calls: list[tuple[int, int, int]]) -> None:
    counters, slot, open_calls = Counters(), 0, list[tuple[int, int]]()
    for gap, tokens, more in calls:
        slot += gap
        counters.take(Rates(tokens=10**6), slot, tokens=tokens, images=0, streams=0)
        open_calls.append((slot, max(more, -tokens)))
        if gap % 2:
            begun, change = open_calls.pop(0)
            counters.end(begun, more_tokens=change, streams=0)
        assert counters.tokens.total == sum(amount for _, amount in counters.tokens.slots)
        assert list(counters.tokens.slots) == sorted(counters.tokens.slots)


def test_open_streams_are_counted_until_they_end() -> None:
    counters, rates = Counters(), Rates(streams=2)
    assert [take(counters, rates, 0, streams=1) for _ in range(3)] == [True, True, False]
    assert take(counters, rates, 0, streams=0)
    counters.end(0, more_tokens=0, streams=1)
    assert [take(counters, rates, 0, streams=1) for _ in range(2)] == [True, False]


def test_headers_and_refusals_say_how_it_stands() -> None:
    counters, rates = Counters(), Rates(requests=2, tokens=100)
    verdict = counters.take(rates, 0, tokens=30, images=0, streams=0)
    assert dict(headers(verdict)) == {
        "x-ratelimit-limit-requests": "2",
        "x-ratelimit-remaining-requests": "1",
        "x-ratelimit-reset-requests": "60.1s",
        "x-ratelimit-limit-tokens": "100",
        "x-ratelimit-remaining-tokens": "70",
        "x-ratelimit-reset-tokens": "60.1s",
    }
    error = refusal(counters.take(rates, slot_of(20), tokens=71, images=0, streams=0))
    assert (error.status, error.code, dict(error.headers)) == (429, "rate_limit_exceeded", {"retry-after": "41"})
    assert "100 tokens a minute" in error.message
    alone = refusal(counters.take(rates, 0, tokens=101, images=0, streams=0), tokens=101)
    assert "this call alone counts for 101 tokens, and this key may use 100 a minute" in alone.message
    assert dict(alone.headers) == {"retry-after": "60", "x-should-retry": "false"}
    counters, rates = Counters(), Rates(requests=1)
    assert take(counters, rates, 0)
    assert "1 request a minute" in refusal(counters.take(rates, 0, tokens=0, images=0, streams=0)).message
    assert verdict.requests is not None
    assert (verdict.requests.limit, verdict.requests.remaining) == (2, 1)
