"""Orders of targets: by list, by weight, by speed; credentials in turn; never nobody."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from trunkline.core.chat import Target
from trunkline.core.provider import Provider
from trunkline.core.route import Alias, Route, RouteTarget, Strategy
from trunkline.core.secret import Secret
from trunkline.routing.fallback import judge
from trunkline.routing.health import Health
from trunkline.routing.order import Attempt, fastest, following, plan, weighted


def item(name: str, weight: float = 1, keys: tuple[str, ...] = ()) -> RouteTarget:
    provider = Provider(api_key=tuple(Secret(key, key) for key in keys))
    return RouteTarget(
        Target(name, f"{name}-model", "http://x.example", "openai_chat"), provider, "bearer", weight=weight
    )


def route(*items: RouteTarget, strategy: Strategy = "in_order") -> Route:
    return Route("asked", "text", items, Alias(strategy=strategy))


def names(attempts: list[Attempt]) -> list[str]:
    return [":".join(filter(None, (each.key[0], each.key[2]))) for each in attempts]


def test_in_order() -> None:
    assert names(plan(route(item("a"), item("b")), Health(), 0.0)) == ["a", "b"]


def test_credentials_take_turns() -> None:
    one = route(item("a", keys=("k1", "k2", "k3")), item("b"))
    assert names(plan(one, Health(), 0.0, turn=0)) == ["a:k1", "a:k2", "a:k3", "b"]
    assert names(plan(one, Health(), 0.0, turn=4)) == ["a:k2", "a:k3", "a:k1", "b"]


def test_weights_are_shares() -> None:
    items = [item("a", 1), item("b", 3), item("c", 4)]
    draws = Counter(weighted(items, number / 8000)[0].target.provider for number in range(8000))
    assert draws == {"a": 1000, "b": 3000, "c": 4000}
    second = Counter(
        weighted(items, number / 8000)[1].target.provider for number in range(4000, 8000)
    )  # where `c` came first: what is left is again drawn by share
    assert abs(second["b"] - 3000) <= 1


@given(st.lists(st.floats(0.001, 1000), min_size=1, max_size=6), st.floats(0, 1, exclude_max=True))
def test_a_weighted_order_holds_every_target_once(weights: list[float], chance: float) -> None:
    items = [item(str(at), weight) for at, weight in enumerate(weights)]
    drawn = weighted(items, chance)
    assert sorted(each.target.provider for each in drawn) == [str(at) for at in range(len(items))]


def test_the_fastest_first_and_the_unmeasured_before_all() -> None:
    figures = {"slow": 2.0, "quick": 0.1}
    ordered = fastest([item("slow"), item("quick"), item("new")], lambda each: figures.get(each.target.provider))
    assert [each.target.provider for each in ordered] == ["new", "quick", "slow"]


def test_fastest_goes_by_what_was_measured() -> None:
    health = Health()
    health.succeeded(("a", "a-model", ""), 0.0, first_event_s=0.9)
    health.succeeded(("b", "b-model", "k"), 0.0, first_event_s=0.2)
    one = route(item("a"), item("b", keys=("k",)), strategy="fastest")
    assert names(plan(one, health, 1.0)) == ["b:k", "a"]
    assert names(plan(one, health, 1000.0)) == ["a", "b:k"]


def test_a_resting_target_is_left_out_but_never_the_last() -> None:
    health = Health()
    health.failed(("a", "a-model", ""), 0.0, judge("x", 429, 50.0))
    one = route(item("a"), item("b"))
    assert names(plan(one, health, 1.0)) == ["b"]
    health.failed(("b", "b-model", ""), 0.0, judge("x", 429, 20.0))
    assert names(plan(one, health, 1.0)) == ["b"]
    assert names(plan(one, health, 30.0)) == ["b"]
    assert names(plan(one, health, 60.0)) == ["a", "b"]


def test_one_resting_credential_leaves_the_others() -> None:
    health = Health()
    health.failed(("a", "a-model", "k1"), 0.0, judge("upstream_auth", 401))
    assert names(plan(route(item("a", keys=("k1", "k2"))), health, 1.0)) == ["a:k2"]


def test_what_may_follow_a_failure() -> None:
    attempts = plan(route(item("a", keys=("k1", "k2")), item("b")), Health(), 0.0)
    first, rest = attempts[0], attempts[1:]
    assert names(following(rest, first, judge("upstream_error", 500))) == ["b"]
    assert names(following(rest, first, judge("rate_limit_exceeded", 429))) == ["a:k2", "b"]
    assert names(following(rest, first, judge("invalid_value", 400))) == []


@given(st.data())
def test_whatever_happened_somebody_is_tried(data: st.DataObject) -> None:
    health, now = Health(), 0.0
    one = route(item("a", keys=("k1", "k2")), item("b"), item("c", 2.0), strategy="weighted")
    for _ in range(data.draw(st.integers(0, 30))):
        now += data.draw(st.floats(0, 100))
        attempts = plan(one, health, now, chance=data.draw(st.floats(0, 1, exclude_max=True)))
        assert attempts
        assert len(set(names(attempts))) == len(attempts)
        key = attempts[0].key
        health.began(key, now)
        status = data.draw(st.sampled_from([None, 200, 400, 401, 404, 429, 500, 503]))
        if status == 200:
            health.succeeded(key, now, data.draw(st.floats(0, 10)))
            assert health.usable(key, now)
        else:
            health.failed(key, now, judge("x", status, data.draw(st.sampled_from([None, 0.0, 5.0, 1e9]))))
            assert health.ready_at(key) <= now + 3600
