"""What is looked at in members that are passed on: their kind, as clients really write it, and no more."""

import json
from typing import Any

import pytest

from trunkline.core.errors import GatewayError
from trunkline.ingress.openai_chat import parse


def read(**members: Any) -> dict[str, Any]:
    """Read a request; give its members again."""
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], **members}
    return {name: json.loads(bytes(parse(json.dumps(body).encode()).fields[name])) for name in members}


@pytest.mark.parametrize(
    "members",
    [
        {"max_tokens": None, "temperature": None, "tools": None, "stop": None, "logprobs": None},
        {"max_tokens": -1, "temperature": 0, "top_p": 1, "frequency_penalty": -2, "presence_penalty": 2.5},
        {"max_tokens": 10**20, "max_completion_tokens": 0},
        {"max_completion_tokens": 1e3, "max_tokens": 7.0},
        {"logprobs": 5, "top_logprobs": 20},
        {"stop": "\n"},
        {"stop": ["a", ""]},
        {"tools": []},
        {"tools": [{"type": "web_search"}, {"google_search": {}}, {"type": "function", "function": {"name": "f"}}]},
        {"functions": [{"name": "f"}], "tool_choice": {"type": "any"}, "response_format": "json"},
        {"tool_choice": "any", "function_call": {"name": "f"}, "response_format": {"type": "xml"}},
        {"seed": "auto"},
        {"seed": ""},
        {"seed": -1, "top_logprobs": -1, "max_tokens": -2, "parallel_tool_calls": True, "store": False},
        {"seed": 7.5, "modalities": ["image", "text"], "verbosity": "loud", "service_tier": "flex", "metadata": {}},
        {"seed": 2**64, "audio": {"voice": "ash"}, "prediction": {"type": "content"}, "logit_bias": {"1": -500}},
        {"seed": None, "logit_bias": None, "tool_choice": None, "modalities": None, "metadata": None, "store": None},
        {"logit_bias": [[1, -100]], "top_k": "many", "min_p": {}, "x": [None]},
        {"reasoning_effort": 5, "user": 17, "safety_identifier": {}, "web_search_options": True},
    ],
)
def test_what_some_provider_may_take_is_passed_on(members: dict[str, Any]) -> None:
    assert read(**members) == members


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("max_tokens", "ten", "`max_tokens` must be a whole number, 1 or more; to some providers -1 is no limit."),
        ("max_tokens", "7", "`max_tokens` must be a whole number, 1 or more; to some providers -1 is no limit."),
        (
            "max_completion_tokens",
            "",
            "`max_completion_tokens` must be a whole number, 1 or more; to some providers -1 is no limit.",
        ),
        ("top_logprobs", "2", "`top_logprobs` must be a whole number, 0 or more."),
        ("temperature", "0.7", "`temperature` must be a number."),
        ("top_p", "1", "`top_p` must be a number."),
        ("presence_penalty", "0", "`presence_penalty` must be a number."),
        ("frequency_penalty", "0", "`frequency_penalty` must be a number."),
        ("seed", "7", "`seed` must be a whole number."),
        ("n", "2", "`n` must be a whole number from 1 to 128."),
        ("logprobs", "true", "`logprobs` must be true or false."),
        ("store", "false", "`store` must be true or false."),
        ("max_tokens", -5, "`max_tokens` must be a whole number, 1 or more; to some providers -1 is no limit."),
        (
            "max_completion_tokens",
            "-3",
            "`max_completion_tokens` must be a whole number, 1 or more; to some providers -1 is no limit.",
        ),
        ("top_logprobs", -5, "`top_logprobs` must be a whole number, 0 or more."),
        ("seed", "abc", "`seed` must be a whole number."),
        ("seed", True, "`seed` must be a whole number."),
        ("logit_bias", "x", "`logit_bias` must be an object that gives tokens their bias."),
        ("parallel_tool_calls", "many", "`parallel_tool_calls` must be true or false."),
        ("tool_choice", 5, "`tool_choice` must be a string or an object."),
        ("response_format", ["json"], "`response_format` must be a string or an object."),
        ("modalities", [5], "`modalities` must be a string or an array of strings."),
        ("audio", "loud", "`audio` must be an object."),
        ("metadata", [], "`metadata` must be an object."),
        ("service_tier", 1, "`service_tier` must be a string."),
        ("temperature", "hot", "`temperature` must be a number."),
        ("tools", {}, "`tools` must be an array of objects."),
        ("stop", 5, "`stop` must be a string or an array of strings."),
        ("logprobs", "many", "`logprobs` must be true or false."),
    ],
)
def test_what_none_takes_is_told_in_one_sentence(name: str, value: Any, told: str) -> None:
    with pytest.raises(GatewayError) as error:
        read(**{name: value})
    assert (error.value.message, error.value.code, error.value.param) == (told, "invalid_value", name)
