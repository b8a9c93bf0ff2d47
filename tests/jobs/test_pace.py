import pytest

from trunkline.jobs.pace import hint_s, is_transient, left_s, pause_s


@pytest.mark.parametrize(
    ("elapsed_s", "failures", "hint", "expected_s"),
    [
        (0, 0, None, 1.0),
        (30, 0, None, 3.0),
        (500, 0, None, 10.0),
        (0, 3, None, 8.0),
        (500, 9, None, 60.0),
        (30, 0, 0.0, 0.2),
        (30, 0, 7.0, 7.0),
        (0, 0, 9999.0, 120.0),
        (0, 2, 0.5, 4.0),
        (0, 2, 30.0, 30.0),
    ],
)
def test_the_pause_follows_the_hint_the_time_so_far_and_failures(
    elapsed_s: float, failures: int, hint: float | None, expected_s: float
) -> None:
    assert pause_s(elapsed_s, failures, hint) == expected_s


@pytest.mark.parametrize(
    ("headers", "expected_s"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "3", "openai-poll-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT"}, None),
        ({"retry-after": "-1"}, None),
        ({"retry-after": "."}, None),
        ({"retry-after": "\u0663"}, None),
        ({"retry-after": "9" * 400}, None),
    ],
)
def test_hints_are_read_from_headers_as_far_as_they_make_sense(
    headers: dict[str, str], expected_s: float | None
) -> None:
    assert hint_s(headers) == expected_s


def test_some_statuses_say_nothing_about_the_work() -> None:
    assert [status for status in (200, 202, 400, 404, 408, 425, 429, 500, 503) if is_transient(status)] == [
        408,
        425,
        429,
        500,
        503,
    ]


@pytest.mark.parametrize(
    ("elapsed_s", "percent", "usual_s", "left"),
    [(5, None, 0, None), (5, None, 20, 15), (30, None, 20, None), (5, 2, 20, 15), (5, 25, 20, 15), (5, 50, 100, 5)],
)
def test_the_time_left_follows_former_work_and_then_the_speed(
    elapsed_s: float, percent: float | None, usual_s: float, left: float | None
) -> None:
    assert left_s(elapsed_s, percent, usual_s) == left
