"""Which failures may go to another target, and which one the client hears of."""

import pytest

from trunkline.core.route import Alias
from trunkline.routing.fallback import judge, retry_delay_s, verdict


@pytest.mark.parametrize(
    ("code", "status", "blame"),
    [
        ("upstream_unavailable", None, "target"),
        ("upstream_timeout", None, "target"),
        ("upstream_incomplete", 200, "target"),
        ("upstream_malformed", 200, "target"),
        ("server_error", 500, "target"),
        ("upstream_error", 503, "target"),
        ("x", 408, "target"),
        ("model_not_found", 404, "target"),
        ("not_found", 404, "target"),
        ("rate_limit_exceeded", 429, "credential"),
        ("insufficient_quota", 429, "credential"),
        ("upstream_auth", 502, "credential"),
        ("x", 401, "credential"),
        ("x", 402, "credential"),
        ("x", 403, "credential"),
        ("invalid_value", 400, "request"),
        ("request_too_large", 413, "request"),
        ("x", 422, "request"),
        ("context_length_exceeded", 400, "request"),
        ("content_filter", 400, "request"),
        ("content_filter", 200, "request"),
    ],
)
def test_whose_fault_it_is(code: str, status: int | None, blame: str) -> None:
    assert judge(code, status).blame == blame


@pytest.mark.parametrize("code", ["context_length_exceeded", "content_filter"])
def test_refusals_that_another_target_may_answer_by_choice(code: str) -> None:
    assert judge(code, 400, fallback_on=(code,)).blame == "target"
    assert judge("invalid_value", 400, fallback_on=(code,)).blame == "request"


def test_the_client_hears_the_last_failure_but_a_404_only_after_all() -> None:
    assert verdict([(judge("x", 500), "first"), (judge("x", 503), "second")]) == "second"
    assert verdict([(judge("x", 500), "broken"), (judge("model_not_found", 404), "missing")]) == "broken"
    assert verdict([(judge("model_not_found", 404), "one"), (judge("not_found", 404), "two")]) == "two"


def test_retries_of_the_same_target() -> None:
    broken, settings = judge("x", 500), Alias(retries=2, retry_within_s=5)
    assert retry_delay_s(broken, 1, 0.0, Alias(), 0.5) is None
    assert retry_delay_s(broken, 1, 0.0, settings, 0.0) == 0.125
    assert retry_delay_s(broken, 1, 0.0, settings, 1.0) == 0.25
    assert retry_delay_s(broken, 2, 0.0, settings, 1.0) == 0.5
    assert retry_delay_s(broken, 3, 0.0, settings, 1.0) is None
    assert retry_delay_s(broken, 1, 4.9, settings, 1.0) is None
    assert retry_delay_s(judge("x", 503, 3.0), 1, 0.0, settings, 1.0) == 3.0
    assert retry_delay_s(judge("x", 503, 30.0), 1, 0.0, settings, 1.0) is None
    assert retry_delay_s(judge("x", 429), 1, 0.0, settings, 1.0) is None
    assert retry_delay_s(judge("x", 400), 1, 0.0, settings, 1.0) is None
