"""What holds for the requests of every language that is not OpenAI's: nothing is lost silently."""

from typing import Any

import pytest
from asking import SCHEMA, TOOLS, body, build, refused, with_part

from trunkline.core.errors import GatewayError
from trunkline.dialects import CHAT_DIALECTS
from trunkline.wire.openai_request import build_openai

NATIVE = sorted(name for name, dialect in CHAT_DIALECTS.items() if dialect.build is not build_openai)
every_language = pytest.mark.parametrize("dialect", NATIVE)
SAYABLE: dict[str, Any] = {
    "n": 3,
    "temperature": 0.5,
    "top_p": 0.9,
    "frequency_penalty": 0.5,
    "presence_penalty": 0.5,
    "logit_bias": {"5": 1},
    "logprobs": True,
    "top_logprobs": 3,
    "max_tokens": 77,
    "max_completion_tokens": 77,
    "modalities": ["text", "image"],
    "audio": {"voice": "alloy", "format": "wav"},
    "stop": ["END"],
    "seed": 7,
    "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}},
    "tools": TOOLS,
    "parallel_tool_calls": False,
    "functions": [{"name": "f", "parameters": {}}],
    "reasoning_effort": "high",
    "verbosity": "low",
    "prediction": {"type": "content", "content": "x"},
    "web_search_options": {},
}


@every_language
@pytest.mark.parametrize("member", SAYABLE)
def test_a_member_is_said_or_refused_by_name(dialect: str, member: str) -> None:
    besides = {"tools": TOOLS} if member == "parallel_tool_calls" else {}
    asked = {member: SAYABLE[member], **besides}
    try:
        said = body(dialect, **asked)
    except GatewayError:
        assert refused(dialect, **asked).param == member
    else:
        assert said != body(dialect, **besides)


@every_language
@pytest.mark.parametrize(
    "asked",
    [
        {"n": 1, "frequency_penalty": 0, "presence_penalty": 0, "logit_bias": {}, "logprobs": False},
        {"response_format": {"type": "text"}, "tools": [], "parallel_tool_calls": True, "modalities": ["text"]},
        {"seed": None, "stop": None, "tools": None, "response_format": None, "logit_bias": None, "prediction": None},
        {"store": False, "metadata": {"a": "b"}, "prompt_cache_key": "k"},
    ],
)
def test_what_asks_for_nothing_is_no_error(dialect: str, asked: dict[str, Any]) -> None:
    body(dialect, **asked)


@every_language
def test_the_providers_own_members_go_along(dialect: str) -> None:
    assert "4711" in str(body(dialect, vendor_only={"x": 4711}))
    assert "31337" in str(body(dialect, extra_body={"top_k": 31337}))


@every_language
def test_members_are_dropped_and_renamed_as_the_provider_says(dialect: str) -> None:
    to = {"drop": ("prediction", "audio"), "rename": {"heat": "temperature"}}
    assert "0.25" in str(body(dialect, to=to, prediction={"type": "content"}, audio={"voice": "x"}, heat=0.25))


@every_language
def test_a_path_of_the_providers_own(dialect: str) -> None:
    assert build(dialect, to={"path": "/own/{model}"})[0] == "/own/{model}"


@every_language
@pytest.mark.parametrize(
    ("messages", "param"),
    [
        ([{"role": "narrator", "content": "x"}], "messages[0].role"),
        ([{"role": "user", "content": 5}], "messages[0].content"),
        (with_part({"type": "hologram"}), "messages[0].content[0].type"),
        (with_part({"type": "image_url", "image_url": {"url": "ftp://x"}}), "messages[0].content[0].image_url"),
        (with_part({"type": "image_url", "image_url": "data:image/png,xx"}), "messages[0].content[0].image_url"),
        (with_part({"type": "file", "file": {"file_id": "file-1"}}), "messages[0].content[0].file.file_id"),
        (
            [{"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": "[1]"}}]}],
            "messages[0].tool_calls[0].function.arguments",
        ),
    ],
)
def test_a_message_that_cannot_be_said_is_named(dialect: str, messages: list[dict[str, Any]], param: str) -> None:
    assert refused(dialect, messages=messages).param == param


@every_language
@pytest.mark.parametrize(
    ("member", "value"),
    [
        ("temperature", "hot"),
        ("max_tokens", 1.5),
        ("stop", 5),
        ("tools", {}),
        ("tool_choice", "perhaps"),
        ("tool_choice", {"type": "function"}),
        ("response_format", {"type": "xml"}),
        ("reasoning_effort", "huge"),
        ("extra_body", 1),
    ],
)
def test_a_wrong_value_is_named(dialect: str, member: str, value: Any) -> None:
    asked = {member: value} | ({"tools": TOOLS} if member == "tool_choice" else {})
    assert refused(dialect, **asked).param == member
