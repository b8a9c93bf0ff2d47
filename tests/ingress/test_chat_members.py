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
        {"max_tokens": "256", "temperature": "0.7", "max_completion_tokens": 1e3, "logprobs": "true"},
        {"logprobs": 5, "top_logprobs": 20},
        {"stop": "\n"},
        {"stop": ["a", ""]},
        {"tools": []},
        {"tools": [{"type": "web_search"}, {"google_search": {}}, {"type": "function", "function": {"name": "f"}}]},
        {"functions": [{"name": "f"}], "tool_choice": {"type": "any"}, "seed": "auto", "response_format": "json"},
        {"logit_bias": [[1, -100]], "top_k": "many", "min_p": {}, "x": [None]},
    ],
)
def test_what_some_provider_may_take_is_passed_on(members: dict[str, Any]) -> None:
    assert read(**members) == members


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("max_tokens", "ten", "`max_tokens` must be a whole number."),
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
