"""An answer says the same streamed and unstreamed."""

import json
from typing import Any

from msgspec import Raw

from trunkline.core.chat import ChatRequest
from trunkline.core.events import Ended, Event, Extras, Finished, Started, TextDelta, ToolCallDelta, ToolCallStarted
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.ingress.completion import Collector
from trunkline.ingress.openai_chat import ChunkEncoder
from trunkline.pipeline import ChatLine


def streamed(events: list[Event], request: ChatRequest) -> list[dict[str, Any]]:
    encoder = ChunkEncoder(request, id="chatcmpl-1", created=1)
    lines = b"".join(encoder.encode(events)).split(b"\n\n")
    chunks = [json.loads(line.removeprefix(b"data: ")) for line in lines if line and line != b"data: [DONE]"]
    return [chunk["choices"][0]["delta"] for chunk in chunks]


def whole(events: list[Event], request: ChatRequest) -> dict[str, Any]:
    collector = Collector(request, id="chatcmpl-1", created=1)
    collector.feed(events)
    message: dict[str, Any] = json.loads(collector.body())["choices"][0]["message"]
    return message


def test_a_client_of_functions_hears_of_one_call() -> None:
    calls: list[Event] = [
        ToolCallStarted(0, "a", "tide"),
        ToolCallDelta(0, '{"a":1}'),
        ToolCallStarted(1, "b", "wind"),
        ToolCallDelta(1, "{}"),
    ]
    events: list[Event] = [Started(), *calls, Finished("tool_calls"), Ended()]
    request = ChatRequest("m", {}, stream=True, legacy_functions=True)
    called = [delta["function_call"] for delta in streamed(events, request) if "function_call" in delta]
    assert called == [{"name": "tide", "arguments": ""}, {"arguments": '{"a":1}'}]
    assert whole(events, request)["function_call"] == {"name": "tide", "arguments": '{"a":1}'}


def test_annotations_of_all_deltas_are_kept() -> None:
    notes: list[Event] = [Extras({"annotations": Raw(b"[%d]" % number)}, 0) for number in (1, 2, 3)]
    events: list[Event] = [Started(), TextDelta("Low"), *notes, Finished("stop"), Ended()]
    request = ChatRequest("m", {}, stream=True)
    said = [note for delta in streamed(events, request) for note in delta.get("annotations", [])]
    assert said == whole(events, request)["annotations"] == [1, 2, 3]


def test_citations_of_an_unstreamed_message_are_annotations() -> None:
    cited = [{"type": "web_search_result_location", "url": f"https://sea.example/{name}"} for name in "ab"]
    blocks = [{"type": "text", "text": "Low tide", "citations": cited}]
    body = {"type": "message", "content": blocks, "stop_reason": "end_turn"}
    events = ChatLine(CHAT_DIALECTS["anthropic_messages"], Notes()).whole(json.dumps(body).encode())
    notes = whole(events, ChatRequest("m", {}))["annotations"]
    assert [note["url_citation"]["url"] for note in notes] == [place["url"] for place in cited]
