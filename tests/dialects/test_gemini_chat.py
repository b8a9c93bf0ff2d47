"""What a chat becomes in Gemini's native language."""

from typing import Any

import msgspec
import pytest
from asking import CONVERSATION, PIXEL, SCHEMA, TOOLS, WEATHER, body, build, refused, with_part

from trunkline.core.events import UsageReported
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine

NAME = "gemini_chat"


def test_a_whole_conversation() -> None:
    path, said = build(NAME, messages=CONVERSATION, tools=TOOLS, stream=True, stop="END", max_tokens=50, seed=7)
    assert path == "/models/{model}:streamGenerateContent?alt=sse"
    assert said == {
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {
                "role": "user",
                "parts": [{"text": "What is this?"}, {"inlineData": {"mimeType": "image/png", "data": PIXEL}}],
            },
            {
                "role": "model",
                "parts": [
                    {"text": "I look."},
                    {"functionCall": {"id": "call_1", "name": "weather", "args": {"city": "Paris"}}},
                    {"functionCall": {"id": "call_2", "name": "now", "args": {}}},
                ],
            },
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": "call_1", "name": "weather", "response": {"output": "rain"}}},
                    {"functionResponse": {"id": "call_2", "name": "now", "response": {"hour": 7}}},
                    {"text": "And?"},
                ],
            },
        ],
        "generationConfig": {"maxOutputTokens": 50, "stopSequences": ["END"], "seed": 7},
        "tools": [
            {
                "functionDeclarations": [
                    {"name": "weather", "description": "Tells it.", "parametersJsonSchema": WEATHER},
                    {"name": "now"},
                ]
            }
        ],
    }


def test_unstreamed_is_another_path() -> None:
    assert build(NAME)[0] == "/models/{model}:generateContent"


def test_signatures_go_back_with_their_calls() -> None:
    signed = {**CONVERSATION[2]["tool_calls"][0], "extra_content": {"google": {"thought_signature": "c2ln"}}}
    told = [CONVERSATION[1], {"role": "assistant", "tool_calls": [signed, CONVERSATION[2]["tool_calls"][1]]}]
    parts = body(NAME, model="gemini-3-pro", messages=told)["contents"][1]["parts"]
    assert parts[0]["thoughtSignature"] == "c2ln"
    assert "thoughtSignature" not in parts[1]


def test_calls_of_another_model_are_marked_since_gemini_3() -> None:
    new = body(NAME, model="gemini-3.5-flash", messages=CONVERSATION)["contents"][1]["parts"]
    assert new[1]["thoughtSignature"] == "skip_thought_signature_validator"
    assert "thoughtSignature" not in new[2]
    old = body(NAME, model="gemini-2.5-flash", messages=CONVERSATION)["contents"][1]["parts"]
    assert "thoughtSignature" not in old[1]


def test_a_signature_of_text_goes_back_with_it() -> None:
    detail = {"type": "reasoning.encrypted", "data": "c2ln", "format": "google-gemini-v1"}
    told = [{"role": "assistant", "content": "Hi", "reasoning_details": [detail]}]
    assert body(NAME, messages=told)["contents"][0]["parts"] == [{"text": "Hi", "thoughtSignature": "c2ln"}]


@pytest.mark.parametrize(
    ("choice", "config"),
    [
        ("auto", {"mode": "AUTO"}),
        ("none", {"mode": "NONE"}),
        ("required", {"mode": "ANY"}),
        ({"type": "function", "function": {"name": "now"}}, {"mode": "ANY", "allowedFunctionNames": ["now"]}),
    ],
)
def test_tool_choice(choice: Any, config: dict[str, Any]) -> None:
    assert body(NAME, tools=TOOLS, tool_choice=choice)["toolConfig"] == {"functionCallingConfig": config}


@pytest.mark.parametrize(
    ("model", "effort", "thinking"),
    [
        ("gemini-2.5-flash", "none", {"thinkingBudget": 0, "includeThoughts": False}),
        ("gemini-2.5-pro", "medium", {"thinkingBudget": 8192, "includeThoughts": True}),
        ("gemini-3-flash-preview", "minimal", {"thinkingLevel": "minimal", "includeThoughts": True}),
        ("gemini-4-argon", "max", {"thinkingLevel": "high", "includeThoughts": True}),
    ],
)
def test_how_much_to_think(model: str, effort: str, thinking: dict[str, Any]) -> None:
    assert body(NAME, model=model, reasoning_effort=effort)["generationConfig"]["thinkingConfig"] == thinking


def test_an_answer_in_json() -> None:
    assert body(NAME, response_format={"type": "json_object"})["generationConfig"] == {
        "responseMimeType": "application/json"
    }
    form = {"type": "json_schema", "json_schema": {"name": "n", "schema": SCHEMA}}
    assert body(NAME, response_format=form)["generationConfig"]["responseJsonSchema"] == SCHEMA


def test_googles_own_members_in_every_spelling() -> None:
    said = body(
        NAME,
        temperature=0.5,
        top_k=40,
        safety_settings=[{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
        generationConfig={"mediaResolution": "LOW"},
        extra_body={"google": {"thinking_config": {"include_thoughts": True}, "image_config": {"aspect_ratio": "1:1"}}},
    )
    assert said["safetySettings"][0]["threshold"] == "BLOCK_NONE"
    assert said["generationConfig"] == {
        "temperature": 0.5,
        "topK": 40,
        "mediaResolution": "LOW",
        "thinkingConfig": {"includeThoughts": True},
        "imageConfig": {"aspectRatio": "1:1"},
    }


def test_pictures_asked_for_and_what_it_cannot_make() -> None:
    config = body(NAME, modalities=["text", "image"])["generationConfig"]
    assert config["responseModalities"] == ["TEXT", "IMAGE"]
    assert refused(NAME, modalities=["text", "audio"]).param == "modalities"


def test_several_candidates_and_probabilities() -> None:
    config = body(NAME, n=2, logprobs=True, top_logprobs=4)["generationConfig"]
    assert config == {"candidateCount": 2, "responseLogprobs": True, "logprobs": 4}


def test_links_sounds_and_search() -> None:
    parts = body(NAME, messages=with_part({"type": "image_url", "image_url": "https://x.example/a"}))["contents"]
    assert parts[0]["parts"] == [{"fileData": {"fileUri": "https://x.example/a"}}]
    sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}}
    parts = body(NAME, messages=with_part(sound))["contents"]
    assert parts[0]["parts"] == [{"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}}]
    assert body(NAME, web_search_options={})["tools"] == [{"googleSearch": {}}]


def test_how_much_of_the_cache_was_sound() -> None:
    counts = {
        "promptTokenCount": 100,
        "candidatesTokenCount": 2,
        "cachedContentTokenCount": 60,
        "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 40}, {"modality": "AUDIO", "tokenCount": 60}],
        "cacheTokensDetails": [{"modality": "AUDIO", "tokenCount": 50}, {"modality": "TEXT", "tokenCount": 10}],
    }
    said = {
        "candidates": [{"content": {"parts": [{"text": "Rain."}]}, "finishReason": "STOP"}],
        "usageMetadata": counts,
    }
    events = ChatLine(CHAT_DIALECTS[NAME], Notes()).whole(msgspec.json.encode(said))
    usage = next(event.usage for event in events if isinstance(event, UsageReported))
    assert (usage.cached_tokens, usage.cached_audio_tokens, usage.audio_input_tokens) == (60, 50, 60)
