"""When a call is told: as soon as its name is certain, which the request's own tools may say."""

import json

import pytest
from msgspec import Raw

from trunkline.core.events import Event, ToolCallDelta, ToolCallStarted
from trunkline.core.notes import Notes
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("read", "read_file", "now")]


def line(tools: object) -> ChatLine:
    begun = ChatLine(CHAT_DIALECTS["openai_chat"], Notes(), salt="s")
    begun.offer(Raw(json.dumps(tools).encode()))
    return begun


def fragment(name: str, arguments: str = "", id: str = "c1") -> bytes:  # noqa: A002 - the wire's name
    call = {"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}}
    return b"data: " + json.dumps({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]}).encode() + b"\n\n"


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCallStarted)]


def test_a_tool_of_the_request_is_told_by_its_name() -> None:
    begun = line(TOOLS)
    assert names(begun.feed(fragment("now"))) == ["now"]
    assert [type(event) for event in begun.feed(fragment("", '{"a":1}'))] == [ToolCallDelta]


@pytest.mark.parametrize("tools", [TOOLS, [], {}, None, [1], [{"function": None}], [{"type": "custom"}]])
def test_a_name_that_may_grow_waits_for_arguments(tools: object) -> None:
    begun = line(tools)
    assert names(begun.feed(fragment("read"))) == []
    assert names(begun.feed(fragment("_fi")) + begun.feed(fragment("le"))) == (["read_file"] if tools == TOOLS else [])
    assert names(begun.feed(fragment("", "{}")) + begun.close(whole=True)) == ([] if tools == TOOLS else ["read_file"])


def test_a_call_without_an_id_waits_for_it() -> None:
    begun = line(TOOLS)
    assert names(begun.feed(fragment("now", id=""))) == []
    [started] = [event for event in begun.feed(fragment("", id="c7")) if isinstance(event, ToolCallStarted)]
    assert started.id == "c7"
