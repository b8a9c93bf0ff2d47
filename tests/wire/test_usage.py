"""What an upstream says that a call cost."""

from typing import Any

import pytest

from trunkline.wire.usage import read_usage

COSTS: list[tuple[Any, int | None]] = [
    (0.00014, 140),
    (0.0000001, 1),
    ("0.25", 250_000),
    (0, 0),
    (-0.5, None),
    ("-1", None),
    ("nan", None),
    ({"input_tokens_cost": 0.001, "total_cost": 0.006}, 6_000),
    ({"total_cost": -1}, None),
    ({}, None),
]


@pytest.mark.parametrize(("cost", "microusd"), COSTS)
def test_a_cost_is_whole_micro_dollars_and_never_money_back(cost: Any, microusd: int | None) -> None:
    usage = read_usage({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "cost": cost})
    assert usage is not None
    assert usage.cost_microusd == microusd
