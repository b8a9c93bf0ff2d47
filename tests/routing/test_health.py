"""The circuit breaker: trips, rests longer each time, lets one call try, and forgets."""

import pytest

from trunkline.routing.fallback import judge
from trunkline.routing.health import FRESH_S, MOST_KEYS, PROBE_S, Health

KEY = ("a", "model", "k")
BROKEN = judge("upstream_error", 500)


def tripped() -> Health:
    health = Health()
    for _ in range(3):
        health.failed(KEY, 0.0, BROKEN)
    return health


def test_three_failures_in_a_row_open_the_circuit() -> None:
    health = Health()
    health.failed(KEY, 0.0, BROKEN)
    health.failed(KEY, 0.0, BROKEN)
    assert health.usable(KEY, 0.0)
    health.failed(KEY, 0.0, BROKEN)
    assert not health.usable(KEY, 4.9)
    assert health.usable(KEY, 5.0)


def test_a_success_between_begins_anew() -> None:
    health = Health()
    for _ in range(10):
        health.failed(KEY, 0.0, BROKEN)
        health.failed(KEY, 0.0, BROKEN)
        health.succeeded(KEY, 0.0)
    assert health.usable(KEY, 0.0)


def test_after_the_rest_one_call_tries_and_the_others_wait() -> None:
    health = tripped()
    health.began(KEY, 6.0)
    assert not health.usable(KEY, 6.0)
    health.succeeded(KEY, 7.0)
    assert health.usable(KEY, 7.0)


def test_a_probe_that_never_reports_does_not_block_for_ever() -> None:
    health = tripped()
    health.began(KEY, 6.0)
    assert health.usable(KEY, 6.0 + PROBE_S)


def test_a_probe_whose_client_left_lets_the_next_one_try() -> None:
    health = tripped()
    health.began(KEY, 6.0)
    health.left(KEY)
    assert health.usable(KEY, 6.0)


def test_a_failed_probe_rests_twice_as_long_up_to_a_limit() -> None:
    health, now, rests = tripped(), 0.0, []
    for _ in range(8):
        now = health.ready_at(KEY)
        health.began(KEY, now)
        health.failed(KEY, now, BROKEN)
        rests.append(health.ready_at(KEY) - now)
    assert rests == [10.0, 20.0, 40.0, 80.0, 120.0, 120.0, 120.0, 120.0]


@pytest.mark.parametrize(
    ("failure", "rest_s"),
    [
        (judge("rate_limit_exceeded", 429), 5.0),
        (judge("rate_limit_exceeded", 429, 33.0), 33.0),
        (judge("x", 503, 12.0), 12.0),
        (judge("rate_limit_exceeded", 429, 1e9), 3600.0),
        (judge("upstream_auth", 401), 60.0),
        (judge("x", 402), 60.0),
        (judge("upstream_timeout", None), 0.0),
        (judge("invalid_value", 400), 0.0),
        (judge("content_filter", 400, None, ("content_filter",)), 0.0),
    ],
)
def test_how_long_one_failure_rests(failure: object, rest_s: float) -> None:
    health = Health()
    health.failed(KEY, 100.0, failure)  # type: ignore[arg-type]
    assert health.ready_at(KEY) == (100.0 + rest_s if rest_s else 0.0)


def test_the_requests_own_fault_trips_nothing() -> None:
    health = Health()
    for _ in range(20):
        health.failed(KEY, 0.0, judge("invalid_value", 400))
        health.failed(KEY, 0.0, judge("content_filter", 400, None, ("content_filter",)))
    assert health.usable(KEY, 0.0)


def test_keys_do_not_touch_each_other() -> None:
    health = tripped()
    assert health.usable(("a", "model", "other"), 0.0)
    assert health.usable(("a", "other", "k"), 0.0)


def test_the_time_to_the_first_event_is_smoothed_and_grows_stale() -> None:
    health = Health()
    health.succeeded(KEY, 0.0, 1.0)
    health.succeeded(KEY, 1.0, 2.0)
    assert health.first_event_s(KEY, 1.0) == pytest.approx(1.3)
    assert health.first_event_s(KEY, 1.0 + FRESH_S + 1) is None
    health.succeeded(KEY, 1000.0, 9.0)
    assert health.first_event_s(KEY, 1000.0) == 9.0
    assert health.snapshot(1000.0) == {KEY: (True, 9.0)}


def test_answers_that_come_whole_count_only_where_no_stream_was_measured() -> None:
    health = Health()
    health.succeeded(KEY, 0.0, 20.0, whole=True)
    health.succeeded(KEY, 1.0, 30.0, whole=True)
    assert health.first_event_s(KEY, 1.0) == pytest.approx(23.0)
    health.succeeded(KEY, 2.0, 1.0)
    health.succeeded(KEY, 3.0, 20.0, whole=True)
    assert health.first_event_s(KEY, 3.0) == 1.0
    health.succeeded(KEY, 1000.0, 20.0, whole=True)
    assert health.first_event_s(KEY, 1000.0) == 20.0


def test_no_more_keys_are_kept_than_allowed() -> None:
    health = tripped()
    for number in range(MOST_KEYS):
        health.succeeded(("a", f"model-{number}", ""), 0.0)
    assert len(health.snapshot(0.0)) == MOST_KEYS
    assert KEY not in health.snapshot(0.0)
