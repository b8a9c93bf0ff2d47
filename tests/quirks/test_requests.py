"""Quirks that change a request."""

from typing import Any

import msgspec
import pytest

from trunkline.ingress.request_body import read_fields
from trunkline.quirks import QUIRKS


def changed(quirk: str, body: dict[str, Any]) -> Any:
    fields = read_fields(msgspec.json.encode(body))
    change = QUIRKS[quirk].request
    assert change is not None
    change(fields)
    return msgspec.json.decode(msgspec.json.encode(fields))


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"temperature": 0}, {"temperature": 0.01, "do_sample": False}),
        ({"temperature": -1.5, "top_p": 0}, {"temperature": 0.01, "do_sample": False, "top_p": 0.01}),
        ({"temperature": 2, "top_p": 1}, {"temperature": 0.99, "top_p": 0.99}),
        ({"temperature": 0.5, "top_p": 0.99}, {"temperature": 0.5, "top_p": 0.99}),
        ({"temperature": None, "top_p": "high"}, {"temperature": None, "top_p": "high"}),
    ],
)
def test_temperature_open_interval(sent: dict[str, Any], told: dict[str, Any]) -> None:
    assert changed("temperature_open_interval", sent) == told


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"logprobs": True, "top_logprobs": 5}, {"logprobs": 5}),
        ({"logprobs": True}, {"logprobs": 1}),
        ({"logprobs": True, "top_logprobs": 0}, {"logprobs": 1}),
        ({"logprobs": False, "top_logprobs": 5}, {}),
        ({"logprobs": 3}, {"logprobs": 3}),
        ({"n": 1}, {"n": 1}),
    ],
)
def test_logprobs_as_number(sent: dict[str, Any], told: dict[str, Any]) -> None:
    assert changed("logprobs_as_number", sent) == told


def test_plain_messages() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    kept: list[dict[str, Any]] = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "1", "content": "7"},
        {"role": "assistant", "content": "so", "prefix": True},
    ]
    more: dict[str, Any] = {
        "name": "ann",
        "reasoning_content": "hm",
        "reasoning_details": [],
        "refusal": None,
        "annotations": [],
    }
    assert changed("plain_messages", {"messages": [{**message, **more} for message in kept]}) == {"messages": kept}
    assert changed("plain_messages", {"messages": "none"}) == {"messages": "none"}


@pytest.mark.parametrize(
    ("sent", "told"),
    [
        ({"google": {"a": 1}}, {"extra_body": {"google": {"a": 1}}}),
        (
            {"google": {"a": 1}, "extra_body": {"google": {"b": 2}, "c": 3}, "thinking_config": {"d": 4}},
            {"extra_body": {"google": {"a": 1, "b": 2, "thinking_config": {"d": 4}}, "c": 3}},
        ),
        ({"cached_content": "x"}, {"extra_body": {"google": {"cached_content": "x"}}}),
        ({"extra_body": {"google": {"a": 1}}}, {"extra_body": {"google": {"a": 1}}}),
        ({"n": 1}, {"n": 1}),
    ],
)
def test_google_in_extra_body(sent: dict[str, Any], told: dict[str, Any]) -> None:
    assert changed("google_in_extra_body", sent) == told
