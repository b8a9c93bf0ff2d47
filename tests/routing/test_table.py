"""Which target a model name means, in the contract's order."""

import pytest

from trunkline.core.provider import ChatSide, MediaSide, ModelFacts, Price, Provider
from trunkline.core.route import Alias, AliasTarget, Route
from trunkline.core.secret import Secret
from trunkline.routing.table import CACHED_ROUTES, RoutingTable, UnknownModelError

FIRST = Provider(
    base_url="http://first.example/v1",
    api_key=(Secret("a"), Secret("b")),
    chat=ChatSide(rename={"a": "b"}, drop=("c",), quirks=("q",)),
    image=MediaSide("pictures", base_url="http://first.example/native", auth="x-goog-api-key"),
    options={"region": "here"},
    models={
        "small": ModelFacts(),
        "painter": ModelFacts(kind="image", id="painter-001", tier="2K", price=Price(per_image=0.1)),
        "shared": ModelFacts(),
    },
)
SECOND = Provider(
    base_url="http://second.example/v1",
    chat=ChatSide(),
    models={"shared": ModelFacts(), "vendor/large": ModelFacts(), "in-chat": ModelFacts(kind="image")},
)
FILMS = Provider(base_url="http://films.example", video=MediaSide("films"))
PROVIDERS = {"first": FIRST, "second": SECOND, "films": FILMS}


def table(aliases: dict[str, Alias] | None = None) -> RoutingTable:
    return RoutingTable.build(PROVIDERS, aliases or {})


def meaning(route: Route) -> list[str]:
    return [f"{item.target.provider}:{item.target.model}" for item in route.targets]


def to(*targets: str) -> Alias:
    return Alias(targets=targets)


def test_exact_alias_before_everything() -> None:
    routes = table({"small": to("second:other"), "sma*": to("second:glob"), "first/small": to("second:path")})
    assert meaning(routes.route("small")) == ["second:other"]
    assert meaning(routes.route("first/small")) == ["second:path"]


def test_the_glob_with_the_longest_literal_prefix_and_the_star_last() -> None:
    routes = table(
        {"*": to("first:star"), "gpt-*": to("first:gpt"), "gpt-4*": to("first:four"), "*-mini": to("first:m")}
    )
    assert meaning(routes.route("gpt-4o")) == ["first:four"]
    assert meaning(routes.route("gpt-3.5")) == ["first:gpt"]
    assert meaning(routes.route("tiny-mini")) == ["first:m"]
    assert meaning(routes.route("else")) == ["first:star"]
    assert meaning(routes.route("second/vendor/large")) == ["first:star"]


def test_a_provider_and_its_model_split_at_the_first_slash() -> None:
    assert meaning(table().route("second/vendor/large")) == ["second:vendor/large"]
    assert meaning(table().route("first/not/in/the/catalogue")) == ["first:not/in/the/catalogue"]


def test_a_bare_name_is_the_first_provider_that_has_it() -> None:
    assert meaning(table().route("shared")) == ["first:shared"]
    assert meaning(table().route("vendor/large")) == ["second:vendor/large"]


def test_the_asked_name_is_passed_on_by_a_wildcard_target() -> None:
    routes = table({"*": to("second:*"), "fast": to("first:*")})
    assert meaning(routes.route("any/name:at-all")) == ["second:any/name:at-all"]
    assert meaning(routes.route("fast")) == ["first:fast"]


def test_a_target_is_split_at_its_first_colon() -> None:
    assert meaning(table({"x": to("second:llama3:8b")}).route("x")) == ["second:llama3:8b"]


def test_a_target_carries_all_that_is_needed() -> None:
    item = table().route("first/small").targets[0]
    target = item.target
    assert (target.base_url, target.dialect, target.side) == ("http://first.example/v1", "openai_chat", "chat")
    assert (target.rename, target.drop, target.quirks, target.options) == (
        {"a": "b"},
        ("c",),
        ("q",),
        {"region": "here"},
    )
    assert (item.auth, [key.reveal() for key in item.credentials]) == ("bearer", ["a", "b"])


def test_a_catalogue_name_stands_for_an_id_and_a_tier() -> None:
    route = table().route("painter")
    item = route.targets[0]
    assert (route.name, route.kind, item.target.model, item.facts.tier) == ("painter", "image", "painter-001", "2K")
    assert (item.target.dialect, item.target.side, item.auth) == ("pictures", "image", "x-goog-api-key")
    assert item.target.base_url == "http://first.example/native"
    assert item.price == Price(per_image=0.1)


def test_pictures_in_a_chat_where_the_provider_has_no_other_way() -> None:
    route = table().route("in-chat")
    assert (route.kind, route.targets[0].target.side) == ("image", "chat")


def test_a_provider_without_chat_makes_what_it_makes() -> None:
    route = table().route("films/any")
    assert (route.kind, route.targets[0].target.dialect) == ("video", "films")


def test_an_alias_sets_kind_and_price() -> None:
    alias = Alias(targets=("first:own",), kind="image", price=Price(per_image=0.5))
    route = table({"x": alias}).route("x")
    assert (route.kind, route.targets[0].target.side, route.targets[0].price) == ("image", "image", alias.price)


def test_an_alias_without_targets_settles_what_the_name_means_anyway() -> None:
    route = table({"painter": Alias(media_style="bare")}).route("painter")
    assert (meaning(route), route.settings.media_style, route.kind) == (["first:painter-001"], "bare", "image")


def test_weights() -> None:
    alias = Alias(targets=("first:small", AliasTarget("second:shared", weight=3)), strategy="weighted")
    assert [item.weight for item in table({"x": alias}).route("x").targets] == [1, 3]


def test_an_unknown_name_lists_close_ones() -> None:
    with pytest.raises(UnknownModelError) as caught:
        table({"fast": to("second:shared")}).route("vendor/lage")
    error = caught.value
    assert (error.status, error.code, error.param) == (404, "model_not_found", "model")
    assert error.message.startswith("The model `vendor/lage` does not exist here. Did you mean `vendor/large`")
    with pytest.raises(UnknownModelError, match="GET /v1/models lists all"):
        table().route("x" * 100_000)


def test_a_model_of_a_provider_that_is_off_says_what_would_switch_it_on() -> None:
    routes = RoutingTable.build(PROVIDERS, {}, {"dear": "DEAR_API_KEY is not set"})
    with pytest.raises(UnknownModelError) as caught:
        routes.route("dear/large")
    told = "The model `dear/large` does not exist here: the provider `dear` is off (DEAR_API_KEY is not set)."
    assert caught.value.message == told
    with pytest.raises(UnknownModelError, match="GET /v1/models lists all"):
        routes.route("dear")


def test_an_embedded_provider_has_what_its_catalogue_says() -> None:
    embedded = Provider(chat=ChatSide(), models={"text": ModelFacts()})
    routes = RoutingTable.build({"own": embedded}, {})
    assert meaning(routes.route("own/text")) == ["own:text"]
    with pytest.raises(UnknownModelError, match=r"Did you mean `own/text`\?"):
        routes.route("own/txt")


def test_models_lists_aliases_and_catalogues_but_no_patterns() -> None:
    listed = table({"fast": to("second:shared"), "gpt-*": to("first:*")}).models()
    assert [(model.id, model.kind, model.owner) for model in listed] == [
        ("fast", "text", "second"),
        ("first/small", "text", "first"),
        ("first/painter", "image", "first"),
        ("first/shared", "text", "first"),
        ("second/shared", "text", "second"),
        ("second/vendor/large", "text", "second"),
        ("second/in-chat", "image", "second"),
    ]


def test_a_name_that_a_pattern_takes_is_not_listed() -> None:
    assert [model.id for model in table({"*": to("second:*")}).models()] == []


def test_resolution_is_remembered_and_bounded() -> None:
    routes = table({"*": to("second:*")})
    assert routes.route("x") is routes.route("x")
    for number in range(2 * CACHED_ROUTES):
        routes.route(f"name-{number}")
    assert routes._cached.cache_info().currsize == CACHED_ROUTES


def test_every_name_of_a_pattern_matches_whole() -> None:
    routes = table({"a*c": to("first:x")})
    assert meaning(routes.route("abc")) == ["first:x"]
    with pytest.raises(UnknownModelError):
        routes.route("abcd")


def test_patterns_that_match_no_model() -> None:
    routes = table({"fast": to("first:small"), "team-*": to("first:*")})
    fine = [
        "small", "first/small", "first/*", "*", "s*", "fast", "second/vendor/*", "painter-2K", "painter-*",
        "first/painter-4K", "team-a", "team-*", "te*", "team-?x", "films/whatever", "films/*", "fi*",
    ]  # fmt: skip
    assert routes.unmatched(fine) == {}
    missing = routes.unmatched(["smal", "frist/*", "first/smal", "fast-*er", "films", "third/x", "tea", "SMALL"])
    assert list(missing) == ["smal", "frist/*", "first/smal", "fast-*er", "films", "third/x", "tea", "SMALL"]
    assert missing["first/smal"][0] == "first/small"
    assert table({"*": to("first:*")}).unmatched(["anything", "an*"]) == {}
