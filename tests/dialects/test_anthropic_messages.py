"""What a chat becomes in Anthropic's language."""

import json
from typing import Any

import pytest
from asking import CONVERSATION, PIXEL, SCHEMA, TOOLS, WEATHER, body, build, refused, target, with_part

from trunkline.core.chat import ChatRequest
from trunkline.core.events import UsageReported
from trunkline.core.notes import Notes
from trunkline.dialects.anthropic_messages import DIALECT
from trunkline.ingress.openai_chat import parse
from trunkline.pipeline import ChatLine

NAME = "anthropic_messages"


def test_a_whole_conversation() -> None:
    path, said = build(NAME, messages=CONVERSATION, tools=TOOLS, stream=True, stop="END", user="u1", temperature=0.5)
    assert path == "/v1/messages"
    assert said == {
        "model": "m",
        "max_tokens": 32000,
        "system": "Be brief.",
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PIXEL}},
                ],
            },
            {
                "role": "assistant",
                "content": [
                    {"type": "text", "text": "I look."},
                    {"type": "tool_use", "id": "call_1", "name": "weather", "input": {"city": "Paris"}},
                    {"type": "tool_use", "id": "call_2", "name": "now", "input": {}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "call_1", "content": "rain"},
                    {"type": "tool_result", "tool_use_id": "call_2", "content": '{"hour":7}'},
                    {"type": "text", "text": "And?"},
                ],
            },
        ],
        "stop_sequences": ["END"],
        "temperature": 0.5,
        "stream": True,
        "metadata": {"user_id": "u1"},
        "tools": [
            {"name": "weather", "description": "Tells it.", "input_schema": WEATHER},
            {"name": "now", "input_schema": {"type": "object", "properties": {}}},
        ],
    }


def test_the_version_is_a_header() -> None:
    request: ChatRequest = parse(b'{"model":"m","messages":[{"role":"user","content":"x"}]}')
    assert ("anthropic-version", "2023-06-01") in DIALECT.build(request, target(NAME)).headers


@pytest.mark.parametrize(
    ("asked", "choice"),
    [
        ({"tool_choice": "auto"}, {"type": "auto"}),
        ({"tool_choice": "none"}, {"type": "none"}),
        ({"tool_choice": "required"}, {"type": "any"}),
        ({"tool_choice": {"type": "function", "function": {"name": "now"}}}, {"type": "tool", "name": "now"}),
        ({"parallel_tool_calls": False}, {"type": "auto", "disable_parallel_tool_use": True}),
        (
            {"tool_choice": "required", "parallel_tool_calls": False},
            {"type": "any", "disable_parallel_tool_use": True},
        ),
        ({"tool_choice": "none", "parallel_tool_calls": False}, {"type": "none"}),
    ],
)
def test_tool_choice(asked: dict[str, Any], choice: dict[str, Any]) -> None:
    assert body(NAME, tools=TOOLS, **asked)["tool_choice"] == choice


def test_without_tools_there_is_no_choice() -> None:
    assert "tool_choice" not in body(NAME, tool_choice="auto")


def test_allowed_tools_are_the_only_ones_told() -> None:
    allowed = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": TOOLS[1:]}}
    said = body(NAME, tools=TOOLS, tool_choice=allowed)
    assert [tool["name"] for tool in said["tools"]] == ["now"]
    assert said["tool_choice"] == {"type": "any"}


def test_the_older_spelling_of_tools() -> None:
    said = body(
        NAME,
        functions=[{"name": "f", "parameters": WEATHER}],
        function_call={"name": "f"},
        messages=[
            {"role": "user", "content": "x"},
            {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": '{"a":1}'}},
            {"role": "function", "name": "f", "content": "7"},
        ],
    )
    assert said["tools"] == [{"name": "f", "input_schema": WEATHER}]
    assert said["tool_choice"] == {"type": "tool", "name": "f"}
    call = said["messages"][1]["content"][0]
    assert (call["name"], call["input"]) == ("f", {"a": 1})
    assert said["messages"][2]["content"] == [{"type": "tool_result", "tool_use_id": call["id"], "content": "7"}]


@pytest.mark.parametrize(
    ("model", "effort", "most", "thinking", "output"),
    [
        ("claude-opus-4-6", "high", 9000, {"type": "adaptive"}, {"effort": "high"}),
        ("claude-sonnet-5", "minimal", 9000, {"type": "adaptive"}, {"effort": "low"}),
        ("claude-sonnet-5", "none", 9000, {"type": "disabled"}, None),
        ("claude-haiku-4-5", "low", 9000, {"type": "enabled", "budget_tokens": 2048}, None),
        ("claude-sonnet-4-20250514", "max", 9000, {"type": "enabled", "budget_tokens": 4500}, None),
        ("claude-3-7-sonnet-20250219", "high", None, {"type": "enabled", "budget_tokens": 16000}, None),
    ],
)
def test_how_much_to_think(
    model: str, effort: str, most: int | None, thinking: dict[str, Any], output: dict[str, Any] | None
) -> None:
    said = body(NAME, model=model, reasoning_effort=effort, max_tokens=most)
    assert said["thinking"] == thinking
    assert said.get("output_config") == output


def test_thinking_needs_room() -> None:
    assert refused(NAME, model="claude-haiku-4-5", reasoning_effort="low", max_tokens=1000).param == "reasoning_effort"


THOUGHT = {"type": "reasoning.text", "format": "anthropic-claude-v1", "index": 0}
SEALED = {"type": "reasoning.encrypted", "format": "anthropic-claude-v1", "index": 1, "data": "xyz"}
LOOP: list[dict[str, Any]] = [CONVERSATION[1], CONVERSATION[2], CONVERSATION[3]]


def test_thoughts_are_given_back_as_they_came() -> None:
    details = [{**THOUGHT, "text": "Let "}, {**THOUGHT, "text": "me."}, {**THOUGHT, "signature": "sig"}, SEALED]
    told = [LOOP[0], {**LOOP[1], "reasoning_content": "Let me.", "reasoning_details": details}, LOOP[2]]
    said = body(NAME, model="claude-haiku-4-5", messages=told, tools=TOOLS, reasoning_effort="low")
    assert said["messages"][1]["content"][:2] == [
        {"type": "thinking", "thinking": "Let me.", "signature": "sig"},
        {"type": "redacted_thinking", "data": "xyz"},
    ]
    assert said["thinking"]["type"] == "enabled"


def test_older_models_do_not_go_on_thinking_without_their_thoughts() -> None:
    asked: dict[str, Any] = {"messages": LOOP, "tools": TOOLS, "reasoning_effort": "low"}
    assert "thinking" not in body(NAME, model="claude-haiku-4-5", **asked)
    assert body(NAME, model="claude-opus-5", **asked)["thinking"] == {"type": "adaptive"}


def test_an_answer_in_json() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    assert body(NAME, response_format=form)["output_config"] == {"format": {"type": "json_schema", "schema": SCHEMA}}
    assert "JSON object" in body(NAME, response_format={"type": "json_object"})["system"]


@pytest.mark.parametrize(("model", "most"), [("claude-3-haiku-20240307", 4096), ("claude-3-5-sonnet-latest", 8192)])
def test_older_models_answer_less(model: str, most: int) -> None:
    assert body(NAME, model=model)["max_tokens"] == most


def test_files_and_links() -> None:
    def source(part: dict[str, Any]) -> Any:
        return body(NAME, messages=with_part(part))["messages"][0]["content"][0]

    assert source({"type": "image_url", "image_url": "https://x.example/a.png"}) == {
        "type": "image",
        "source": {"type": "url", "url": "https://x.example/a.png"},
    }
    pdf = {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}
    assert source({"type": "file", "file": pdf}) == {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
        "title": "a.pdf",
    }
    text = {"file_data": "data:text/plain;base64,aMOp"}
    plain = {"type": "text", "media_type": "text/plain", "data": "hé"}
    assert source({"type": "file", "file": text})["source"] == plain
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
    assert refused(NAME, messages=with_part(sound)).param == "messages[0].content[0].input_audio"


def test_marks_for_the_cache_stay() -> None:
    mark = {"type": "ephemeral"}
    system = {"role": "system", "content": [{"type": "text", "text": "Long.", "cache_control": mark}]}
    said = body(NAME, messages=[system, {"role": "user", "content": "Hi"}])
    assert said["system"] == [{"type": "text", "text": "Long.", "cache_control": mark}]
    assert said["messages"] == [{"role": "user", "content": "Hi"}]


def test_the_providers_own_tools_and_search() -> None:
    own = {"type": "bash_20250124", "name": "bash"}
    said = body(NAME, tools=[own], web_search_options={"user_location": {"approximate": {"country": "DE"}}})
    assert said["tools"] == [
        own,
        {
            "type": "web_search_20250305",
            "name": "web_search",
            "user_location": {"type": "approximate", "country": "DE"},
        },
    ]


def test_ids_of_other_providers_are_spelt_as_it_wants() -> None:
    told = [LOOP[0], {**LOOP[1], "tool_calls": [{**LOOP[1]["tool_calls"][0], "id": "fc:1/a"}]}]
    told.append({"role": "tool", "tool_call_id": "fc:1/a", "content": "x"})
    said = body(NAME, messages=told)["messages"]
    assert said[1]["content"][-1]["id"] == said[2]["content"][0]["tool_use_id"] == "fc_1_a"


def test_what_the_cache_keeps_for_an_hour_is_counted_apart() -> None:
    usage = {"input_tokens": 5, "cache_creation_input_tokens": 40, "cache_read_input_tokens": 100}
    kept = usage | {"cache_creation": {"ephemeral_5m_input_tokens": 10, "ephemeral_1h_input_tokens": 30}}
    events = [
        {"type": "message_start", "message": {"id": "m", "content": [], "usage": kept}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Hi"}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage | {"output_tokens": 7}},
        {"type": "message_stop"},
    ]
    line = ChatLine(DIALECT, Notes())
    said = line.feed(b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)) + line.close()
    usages = [event.usage for event in said if isinstance(event, UsageReported)]
    assert [(one.prompt_tokens, one.cache_write_tokens, one.cache_write_1h_tokens) for one in usages] == [(145, 40, 30)]
