"""The shipped provider files: all readable, complete, and switched on by what people have in their environment."""

import re
from collections.abc import Iterator
from importlib import resources
from itertools import chain

import pytest

from trunkline import providers as shipped
from trunkline.config.load import build
from trunkline.config.secrets import VARIABLE
from trunkline.core.provider import ModelFacts, Price, Provider
from trunkline.routing.table import RoutingTable

SWITCHES = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "xai": "XAI_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "zhipu": "ZHIPUAI_API_KEY",
    "zai": "ZAI_API_KEY",
    "moonshot": "MOONSHOT_API_KEY",
    "dashscope": "DASHSCOPE_API_KEY",
    "cohere": "COHERE_API_KEY",
    "groq": "GROQ_API_KEY",
    "together": "TOGETHER_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "poe": "POE_API_KEY",
    "azure": "AZURE_OPENAI_API_KEY AZURE_OPENAI_ENDPOINT",
    "bedrock": "AWS_BEARER_TOKEN_BEDROCK",
    "workers_ai": "CLOUDFLARE_API_TOKEN CLOUDFLARE_ACCOUNT_ID",
    "fal": "FAL_KEY",
    "replicate": "REPLICATE_API_TOKEN",
    "ollama": "OLLAMA_HOST",
    "vllm": "VLLM_BASE_URL",
    "llamacpp": "LLAMACPP_BASE_URL",
    "lmstudio": "LMSTUDIO_BASE_URL",
}
EVERYTHING = dict.fromkeys(" ".join(SWITCHES.values()).split(), "http://x.example")


@pytest.fixture(scope="module")
def everything() -> dict[str, Provider]:
    return build({}, EVERYTHING, {}).config.providers


def models(providers: dict[str, Provider]) -> Iterator[tuple[str, ModelFacts]]:
    for name, provider in providers.items():
        for model, facts in provider.models.items():
            yield f"{name}/{model}", facts


def test_the_order_names_every_file() -> None:
    files = {
        path.name.removesuffix(".toml") for path in resources.files(shipped).iterdir() if path.name.endswith(".toml")
    }
    assert set(shipped.ORDER) == files
    assert len(shipped.ORDER) == len(files)


def test_all_are_on_when_all_their_variables_are_set(everything: dict[str, Provider]) -> None:
    assert list(everything) == list(shipped.ORDER)


@pytest.mark.parametrize("name", SWITCHES)
def test_switched_on_by_its_usual_variables_alone(name: str) -> None:
    variables = SWITCHES[name].split()
    loaded = build({}, dict.fromkeys(variables, "http://x.example"), {})
    assert list(loaded.config.providers) == [name, "local"]
    assert loaded.warnings == []
    assert not VARIABLE.search(repr(loaded.config.providers[name]))


@pytest.mark.parametrize(("name", "variable"), [("gemini", "GOOGLE_API_KEY"), ("cohere", "CO_API_KEY")])
def test_other_names_of_the_key(name: str, variable: str) -> None:
    assert name in build({}, {variable: "x"}, {}).config.providers


def test_a_file_says_where_and_how_and_where_that_is_written(everything: dict[str, Provider]) -> None:
    for name, provider in everything.items():
        if name != "local":
            assert provider.docs.startswith("https://"), name
            assert provider.base_url, name
        assert provider.chat or provider.image or provider.video, name


def test_an_openai_compatible_provider_is_a_few_lines() -> None:
    head = (resources.files(shipped) / "deepseek.toml").read_text().partition("[models]")[0]
    assert len([line for line in head.splitlines() if line and not line.startswith("#")]) <= 8


@pytest.mark.parametrize(
    "name", ["gpt-4o-mini", "grok-3", "deepseek-chat", "gemini-2.5-flash", "claude-haiku-4-5", "glm-5.3"]
)
def test_bare_names_that_people_know(everything: dict[str, Provider], name: str) -> None:
    assert RoutingTable.build(everything, {}).route(name).kind == "text"


@pytest.mark.parametrize(
    ("name", "model", "tier"),
    [
        ("NanoBanana", "gemini-2.5-flash-image", ""),
        ("NanoBananaPro-1K", "gemini-3-pro-image", "1K"),
        ("NanoBananaPro-2K", "gemini-3-pro-image", "2K"),
        ("NanoBananaPro-4K", "gemini-3-pro-image", "4K"),
        ("NanoBanana2-0.5K", "gemini-3.1-flash-image", "512"),
        ("NanoBanana2-1K", "gemini-3.1-flash-image", "1K"),
        ("NanoBanana2-2K", "gemini-3.1-flash-image", "2K"),
        ("NanoBanana2-4K", "gemini-3.1-flash-image", "4K"),
    ],
)
def test_the_nano_banana_names(everything: dict[str, Provider], name: str, model: str, tier: str) -> None:
    route = RoutingTable.build(everything, {}).route(name)
    item = route.targets[0]
    assert (route.kind, item.target.model, item.facts.tier, item.target.dialect) == (
        "image",
        model,
        tier,
        "gemini_images",
    )
    assert item.auth == "x-goog-api-key"
    assert item.price is not None
    assert isinstance(item.price.per_image, float)


def test_ratios_and_sizes_are_written_one_way(everything: dict[str, Provider]) -> None:
    for name, facts in models(everything):
        assert all(re.fullmatch(r"[\d.]+:[\d.]+", ratio) for ratio in facts.ratios), name
        assert all(re.fullmatch(r"\d+x\d+|\*x\*", size) for size in facts.sizes), name
        assert all(re.fullmatch(r"512|[124]K|\d+p|[24]k", tier) for tier in facts.tiers), name
        assert facts.tier == "" or facts.tiers == (facts.tier,), name
        assert set(facts.formats) <= {"png", "jpeg", "webp"}, name
        assert (facts.kind == "video") or not (facts.seconds or facts.fps), name


def test_prices_say_their_source_and_name_only_what_the_model_takes(everything: dict[str, Provider]) -> None:
    for name, facts in models(everything):
        if facts.price is None:
            continue
        assert everything[name.partition("/")[0]].prices_from, name
        for where in keyed(facts.price):
            quality, _, size = where.rpartition(" ")
            assert size in chain(facts.tiers, facts.sizes), (name, where)
            assert not quality or quality in facts.qualities, (name, where)
        if facts.tiers and (keys := keyed(facts.price)):
            assert set(keys) == set(facts.tiers), name


def keyed(price: Price) -> list[str]:
    tables = (price.per_image, price.per_second, price.per_video)
    return [key for table in tables if isinstance(table, dict) for key in table]
