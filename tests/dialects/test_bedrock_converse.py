"""What a chat becomes in Bedrock's Converse language, and its binary framing."""

import struct
from binascii import crc32

import msgspec
import pytest
from asking import CONVERSATION, PIXEL, SCHEMA, TOOLS, WEATHER, body, build, refused, with_part

from trunkline.core.events import Event, Failed, TextDelta
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine

NAME = "bedrock_converse"


def test_a_whole_conversation() -> None:
    path, said = build(NAME, messages=CONVERSATION, tools=TOOLS, stream=True, stop="END", max_tokens=50, top_k=4)
    assert path == "/model/{model}/converse-stream"
    assert said == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {
                "role": "user",
                "content": [{"text": "What is this?"}, {"image": {"format": "png", "source": {"bytes": PIXEL}}}],
            },
            {
                "role": "assistant",
                "content": [
                    {"text": "I look."},
                    {"toolUse": {"toolUseId": "call_1", "name": "weather", "input": {"city": "Paris"}}},
                    {"toolUse": {"toolUseId": "call_2", "name": "now", "input": {}}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"toolResult": {"toolUseId": "call_1", "content": [{"text": "rain"}]}},
                    {"toolResult": {"toolUseId": "call_2", "content": [{"json": {"hour": 7}}]}},
                    {"text": "And?"},
                ],
            },
        ],
        "inferenceConfig": {"maxTokens": 50, "stopSequences": ["END"]},
        "toolConfig": {
            "tools": [
                {"toolSpec": {"name": "weather", "description": "Tells it.", "inputSchema": {"json": WEATHER}}},
                {"toolSpec": {"name": "now", "inputSchema": {"json": {"type": "object", "properties": {}}}}},
            ]
        },
        "additionalModelRequestFields": {"top_k": 4},
    }


def test_choice_effort_and_format() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    choice = {"type": "function", "function": {"name": "now"}}
    said = body(NAME, tools=TOOLS, tool_choice=choice, reasoning_effort="low", response_format=form)
    assert said["toolConfig"]["toolChoice"] == {"tool": {"name": "now"}}
    assert said["outputConfig"]["effort"] == "low"
    schema = said["outputConfig"]["textFormat"]["structure"]["jsonSchema"]
    assert msgspec.json.decode(schema["schema"]) == SCHEMA
    assert body(NAME, tools=TOOLS, tool_choice="required")["toolConfig"]["toolChoice"] == {"any": {}}
    assert "toolConfig" not in body(NAME, tools=TOOLS, tool_choice="none")


def test_thoughts_are_given_back() -> None:
    form = "anthropic-claude-v1"
    details = [
        {"type": "reasoning.text", "text": "t", "signature": "s", "format": form, "index": 0},
        {"type": "reasoning.encrypted", "data": "AAAA", "format": form, "index": 1},
    ]
    told = [{"role": "assistant", "content": "y", "reasoning_details": details}]
    assert body(NAME, messages=told)["messages"][0]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "t", "signature": "s"}}},
        {"reasoningContent": {"redactedContent": "AAAA"}},
        {"text": "y"},
    ]


def test_files_yes_links_no() -> None:
    file = {"file_data": "data:application/pdf;base64,AAAA", "filename": "my_report (1).pdf"}
    said = body(NAME, messages=with_part({"type": "file", "file": file}))["messages"][0]["content"]
    assert said == [{"document": {"format": "pdf", "name": "my report 1", "source": {"bytes": "AAAA"}}}]
    link = {"type": "image_url", "image_url": {"url": "https://x.example/a.png"}}
    assert refused(NAME, messages=with_part(link)).param == "messages[0].content[0].image_url"


def message(headers: bytes, payload: bytes) -> bytes:
    head = struct.pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = head + struct.pack(">I", crc32(head)) + headers + payload
    return whole + struct.pack(">I", crc32(whole))


def header(name: bytes, kind: int, value: bytes) -> bytes:
    return bytes([len(name)]) + name + bytes([kind]) + value


TYPE = header(b":event-type", 7, struct.pack(">H", 17) + b"contentBlockDelta")
TEXT = b'{"delta":{"text":"hi"}}'
EVERY_KIND = b"".join(
    header(b"k", kind, value)
    for kind, value in (
        (0, b""),
        (1, b""),
        (2, b"x"),
        (3, b"xx"),
        (4, b"xxxx"),
        (5, b"x" * 8),
        (6, b"\x00\x03abc"),
        (8, b"x" * 8),
        (9, b"x" * 16),
    )
)


def read(data: bytes, dialect: str = "openai_chat") -> list[Event]:
    line = ChatLine(CHAT_DIALECTS[dialect], Notes())
    return line.feed(data) + line.close()


@pytest.mark.parametrize("headers", [EVERY_KIND + TYPE, TYPE + b"\x03cut", TYPE + b"\xff"])
def test_headers_of_every_kind(headers: bytes) -> None:
    assert TextDelta("hi") in read(message(headers, TEXT))


@pytest.mark.parametrize(
    "data",
    [b"\x00", b"\x00" * 11, b"\x00" * 400, message(TYPE, TEXT)[:-1] + b"x", message(b"\x05", b""), b"\x00\x00\x00\x10"],
)
def test_what_only_looks_like_a_message_fails(data: bytes) -> None:
    assert isinstance(read(data)[-1], Failed)


def test_text_behind_a_nul_is_text() -> None:
    chunk = b'data: {"choices":[{"delta":{"content":"hi"},"finish_reason":"stop"}]}\n\n'
    assert TextDelta("hi") in read(b"\x00" + chunk)
