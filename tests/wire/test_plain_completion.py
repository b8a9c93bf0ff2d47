"""An unstreamed answer that is read in one step says the same as it does the long way."""

from copy import deepcopy
from typing import Any

import msgspec
import pytest

from trunkline.core.events import Event
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine
from trunkline.wire.plain_completion import read_plain_completion

OPENAI = CHAT_DIALECTS["openai_chat"]
PLAIN: dict[str, Any] = {
    "id": "chatcmpl-1",
    "object": "chat.completion",
    "created": 1795000000,
    "model": " gpt-9 ",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello there", "refusal": None, "annotations": []},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 8,
        "completion_tokens": 5,
        "total_tokens": 9,
        "prompt_tokens_details": {"cached_tokens": 9, "audio_tokens": 1},
        "completion_tokens_details": {"reasoning_tokens": 2, "accepted_prediction_tokens": 1},
    },
    "service_tier": "default",
    "system_fingerprint": 'fp_"é',
}


def changed(**members: Any) -> bytes:
    """Give the plain answer with members of the top level, the choice, the message or the usage changed."""
    answer = deepcopy(PLAIN)
    choice = answer["choices"][0]
    for place, changes in {
        "": answer,
        "choice": choice,
        "message": choice["message"],
        "usage": answer["usage"],
    }.items():
        changes.update(members.get(place or "top", {}))
    return msgspec.json.encode(answer)


def the_long_way(body: bytes) -> list[Event]:
    """Read an answer by frames, decoder and normaliser."""
    return ChatLine(OPENAI, Notes()).whole(body)


@pytest.mark.parametrize(
    "body",
    [
        changed(),
        changed(message={"content": "ünïcode 😀 \u2028 and\nmore"}),
        changed(choice={"finish_reason": "length"}),
        changed(choice={"finish_reason": "content_filter"}),
        changed(top={"usage": None}),
        changed(top={"service_tier": None, "system_fingerprint": ""}),
        changed(usage={"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}),
        msgspec.json.format(changed(), indent=4),
    ],
)
def test_the_usual_answer_says_the_same(body: bytes) -> None:
    said = read_plain_completion(body)
    assert said is not None
    assert said == the_long_way(body)


@pytest.mark.parametrize(
    "body",
    [
        changed(top={"error": None}),
        changed(top={"object": "chat.completion.chunk"}),
        changed(top={"created": "1795000000"}),
        changed(top={"choices": []}),
        changed(top={"choices": PLAIN["choices"] * 2}),
        changed(choice={"index": 1}),
        changed(choice={"finish_reason": "eos"}),
        changed(choice={"finish_reason": "tool_calls"}),
        changed(choice={"logprobs": {"content": []}}),
        changed(message={"content": ""}),
        changed(message={"content": None, "tool_calls": []}),
        changed(message={"reasoning_content": "Let me see."}),
        changed(message={"annotations": [{"type": "url_citation"}]}),
        changed(usage={"cost": 0.1}),
        changed(usage={"prompt_tokens": -1}),
        changed() + b"x",
        b"",
        b"data: {}",
        changed(message={"content": "x"}).replace(b'"x"', b'"\\ud83d"'),
    ],
)
def test_anything_else_goes_the_long_way(body: bytes) -> None:
    assert read_plain_completion(body) is None
