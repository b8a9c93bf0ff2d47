"""Building an upstream's request in a test."""

from typing import Any

import msgspec
import pytest

from trunkline.core.chat import Target
from trunkline.core.errors import GatewayError
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.openai_chat import parse

PIXEL = "iVBORw0KGgo="
CONVERSATION: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [
            {"type": "text", "text": "What is this?"},
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}", "detail": "low"}},
        ],
    },
    {
        "role": "assistant",
        "content": "I look.",
        "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}},
            {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": ""}},
        ],
    },
    {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
    {"role": "tool", "tool_call_id": "call_2", "content": '{"hour":7}'},
    {"role": "user", "content": "And?"},
]
WEATHER = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now"}},
]
SCHEMA = {"type": "object", "properties": {"a": {"type": "integer"}}}


def target(dialect: str, model: str = "m", **members: Any) -> Target:
    return Target("p", model, "https://p.example", dialect, **members)


def build(dialect: str, *, model: str = "m", to: dict[str, Any] | None = None, **members: Any) -> tuple[str, Any]:
    """The path and the body that a client's members become."""
    members = {"messages": [{"role": "user", "content": "Hi"}], **members}
    request = parse(msgspec.json.encode({"model": "asked", **members}))
    built = CHAT_DIALECTS[dialect].build(request, target(dialect, model, **(to or {})))
    return built.path, msgspec.json.decode(built.body)


def body(dialect: str, **members: Any) -> Any:
    return build(dialect, **members)[1]


def refused(dialect: str, **members: Any) -> GatewayError:
    """The error that says what this language cannot say."""
    with pytest.raises(GatewayError) as caught:
        build(dialect, **members)
    assert caught.value.code == "invalid_value"
    assert caught.value.status == 400
    assert f"`{caught.value.param}`" in caught.value.message
    return caught.value


def with_part(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"role": "user", "content": [part]}]
