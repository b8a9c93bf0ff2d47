"""What a chat becomes in the smaller languages."""

from typing import Any

from asking import CONVERSATION, PIXEL, SCHEMA, TOOLS, WEATHER, body, build, refused, with_part

FUNCTIONS = [
    {"type": "function", "function": {"name": "weather", "description": "Tells it.", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}},
]
CALLS = [
    {"id": "call_1", "type": "function", "function": {"name": "weather", "arguments": '{"city":"Paris"}'}},
    {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
]
DATA_URL = f"data:image/png;base64,{PIXEL}"
FORM = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
LINK = with_part({"type": "image_url", "image_url": "https://x.example/a.png"})
NAMED = {"type": "function", "function": {"name": "now"}}


def test_ollama() -> None:
    path, said = build("ollama_chat", messages=CONVERSATION, tools=TOOLS, stream=True, max_tokens=50, num_ctx=4096)
    assert path == "/api/chat"
    assert said == {
        "model": "m",
        "stream": True,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "What is this?", "images": [PIXEL]},
            {
                "role": "assistant",
                "content": "I look.",
                "tool_calls": [
                    {"function": {"name": "weather", "arguments": {"city": "Paris"}}},
                    {"function": {"name": "now", "arguments": {}}},
                ],
            },
            {"role": "tool", "content": "rain", "tool_name": "weather"},
            {"role": "tool", "content": '{"hour":7}', "tool_name": "now"},
            {"role": "user", "content": "And?"},
        ],
        "tools": FUNCTIONS,
        "options": {"num_predict": 50},
        "num_ctx": 4096,
    }
    assert body("ollama_chat")["stream"] is False
    assert body("ollama_chat", response_format=FORM)["format"] == SCHEMA
    assert [body("ollama_chat", reasoning_effort=effort)["think"] for effort in ("none", "low", "max")] == [
        False,
        "low",
        "high",
    ]
    assert "tools" not in body("ollama_chat", tools=TOOLS, tool_choice="none")
    assert refused("ollama_chat", tools=TOOLS, tool_choice=NAMED).param == "tool_choice"
    assert refused("ollama_chat", messages=LINK).param == "messages[0].content[0].image_url"


def test_cohere() -> None:
    path, said = build("cohere_chat", messages=CONVERSATION, tools=TOOLS, stream=True, top_p=0.5, stop="END")
    assert path == "/chat"
    assert said == {
        "model": "m",
        "stream": True,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "What is this?"},
                    {"type": "image_url", "image_url": {"url": DATA_URL, "detail": "low"}},
                ],
            },
            {"role": "assistant", "content": "I look.", "tool_calls": CALLS},
            {"role": "tool", "tool_call_id": "call_1", "content": "rain"},
            {"role": "tool", "tool_call_id": "call_2", "content": '{"hour":7}'},
            {"role": "user", "content": "And?"},
        ],
        "tools": FUNCTIONS,
        "p": 0.5,
        "stop_sequences": ["END"],
    }
    one = body("cohere_chat", tools=TOOLS, tool_choice=NAMED)
    assert (one["tools"], one["tool_choice"]) == (FUNCTIONS[1:], "REQUIRED")
    assert body("cohere_chat", reasoning_effort="none")["thinking"] == {"type": "disabled"}
    assert body("cohere_chat", response_format=FORM)["response_format"] == {
        "type": "json_object",
        "json_schema": SCHEMA,
    }


def test_responses() -> None:
    sealed = {"type": "reasoning.encrypted", "data": "gA", "id": "rs_1", "format": "openai-responses-v1"}
    told = [*CONVERSATION[:2], {**CONVERSATION[2], "reasoning_details": [sealed]}, *CONVERSATION[3:]]
    path, said = build("openai_responses", messages=told, tools=TOOLS, stream=True, reasoning_effort="low", user="u")
    assert path == "/responses"
    assert said["input"] == [
        {"type": "message", "role": "system", "content": [{"type": "input_text", "text": "Be brief."}]},
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "What is this?"},
                {"type": "input_image", "image_url": DATA_URL, "detail": "low"},
            ],
        },
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "call_1", "name": "weather", "arguments": '{"city":"Paris"}'},
        {"type": "function_call", "call_id": "call_2", "name": "now", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
        {"type": "function_call_output", "call_id": "call_2", "output": '{"hour":7}'},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "And?"}]},
    ]
    rest: dict[str, Any] = {name: value for name, value in said.items() if name not in ("input", "tools")}
    assert rest == {
        "model": "m",
        "stream": True,
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "reasoning": {"effort": "low", "summary": "auto"},
        "user": "u",
    }
    assert said["tools"][0] == {
        "type": "function",
        "name": "weather",
        "description": "Tells it.",
        "parameters": WEATHER,
        "strict": False,
    }
    more = body("openai_responses", response_format=FORM, verbosity="low", logprobs=True, top_logprobs=2, store=True)
    assert more["text"] == {
        "format": {"type": "json_schema", "name": "n", "schema": SCHEMA},
        "verbosity": "low",
    }
    assert more["include"][-1] == "message.output_text.logprobs"
    assert more["store"] is True
    choice = body("openai_responses", tools=TOOLS, tool_choice=NAMED, parallel_tool_calls=False)
    assert choice["tool_choice"] == {"type": "function", "name": "now"}
    assert choice["parallel_tool_calls"] is False


def test_dashscope() -> None:
    path, said = build("dashscope_chat", messages=CONVERSATION[3:], tools=TOOLS, stream=True, n=2, enable_search=True)
    assert path == "/services/aigc/text-generation/generation"
    assert said == {
        "model": "m",
        "input": {
            "messages": [
                {"role": "tool", "content": "rain", "tool_call_id": "call_1"},
                {"role": "tool", "content": '{"hour":7}', "tool_call_id": "call_2"},
                {"role": "user", "content": "And?"},
            ]
        },
        "parameters": {
            "result_format": "message",
            "incremental_output": True,
            "n": 2,
            "tools": FUNCTIONS,
            "parallel_tool_calls": True,
            "enable_search": True,
        },
    }
    path, said = build("dashscope_chat", messages=CONVERSATION, reasoning_effort="none")
    assert path == "/services/aigc/multimodal-generation/generation"
    assert said["input"]["messages"][1]["content"] == [{"text": "What is this?"}, {"image": DATA_URL}]
    assert said["parameters"]["enable_thinking"] is False


def test_workers_ai() -> None:
    path, said = build("workers_ai_chat", model="@cf/meta/llama-4", messages=CONVERSATION, tools=TOOLS, stream=True)
    assert path == "/run/@cf/meta/llama-4"
    assert "model" not in said
    assert said["stream"] is True
    assert said["tools"] == FUNCTIONS
    assert said["messages"][1]["content"][1] == {"type": "image_url", "image_url": {"url": DATA_URL}}
    assert said["messages"][2] == {"role": "assistant", "content": "I look.", "tool_calls": CALLS}
    assert said["messages"][3] == {"role": "tool", "content": "rain", "tool_call_id": "call_1"}


def test_poe() -> None:
    messages = [*CONVERSATION[2:], *LINK]
    path, said = build("poe_bot", messages=messages, tools=TOOLS, temperature=0.5, stop="END")
    assert path == "/bot/{model}"
    assert [(each["role"], each["content"]) for each in said["query"]] == [
        ("bot", "I look."),
        ("user", "And?"),
        ("user", ""),
    ]
    attached = said["query"][2]["attachments"]
    assert attached == [{"url": "https://x.example/a.png", "content_type": "image/*", "name": "a.png"}]
    assert said["tool_calls"] == CALLS
    assert [result["content"] for result in said["tool_results"]] == ["rain", '{"hour":7}']
    assert refused("poe_bot", messages=CONVERSATION[:2]).param == "messages[1].content[1].image_url"
