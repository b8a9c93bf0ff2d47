"""Streams with one fault each, by the rule it departs from: what clients do with it is measured on them."""

import json
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace
from outcomes import Meant

Chunk = dict[str, Any]
Change = Callable[[list[Chunk]], Any]

USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 5,
    "total_tokens": 14,
    "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
    "completion_tokens_details": {
        "reasoning_tokens": 0,
        "audio_tokens": 0,
        "accepted_prediction_tokens": 0,
        "rejected_prediction_tokens": 0,
    },
}


def chunk(delta: Chunk | None, finish: str | None = None, index: int = 0) -> Chunk:
    choice: Chunk = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
    return head([choice], None)


def head(choices: list[Chunk], usage: Chunk | None) -> Chunk:
    made = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1760000001, "model": "m1"}
    return made | {"system_fingerprint": None, "choices": choices, "usage": usage}


def texts() -> list[Chunk]:
    first = {"role": "assistant", "content": "", "refusal": None}
    said = [chunk({"content": piece}) for piece in ("Good ", "morn", "ing")]
    return [chunk(first), *said, chunk({}, "stop"), head([], json.loads(json.dumps(USAGE)))]


def calls() -> list[Chunk]:
    function = {"name": "f", "arguments": ""}
    first = {"index": 0, "id": "call_1", "type": "function", "function": function}
    pieces = [{"tool_calls": [{"index": 0, "function": {"arguments": piece}}]} for piece in ('{"a"', ":1}")]
    opening = {"role": "assistant", "content": None, "tool_calls": [first]}
    return [chunk(opening), *(chunk(piece) for piece in pieces), chunk({}, "tool_calls"), head([], dict(USAGE))]


def written(chunks: list[Any]) -> bytes:
    lines = [item if isinstance(item, str) else json.dumps(item, separators=(",", ":")) for item in chunks]
    return "".join(f"data: {line}\n\n" for line in lines).encode() + b"data: [DONE]\n\n"


CLEAN = written(texts())
CLEAN_CALLS = written(calls())


def changed(change: Change, base: Callable[[], list[Chunk]] = texts) -> bytes:
    chunks = base()
    change(chunks)
    return written(chunks)


def each(**members: Any) -> Change:
    """Set members of every chunk; `...` takes one away, a function makes it of the chunk's number."""

    def change(chunks: list[Chunk]) -> None:
        for number, item in enumerate(chunks):
            for name, value in members.items():
                if value is ...:
                    item.pop(name, None)
                else:
                    item[name] = value(number) if callable(value) else value

    return change


def choice(at: int, **members: Any) -> Change:
    """Set members of one chunk's choice."""

    def change(chunks: list[Chunk]) -> None:
        for name, value in members.items():
            if value is ...:
                chunks[at]["choices"][0].pop(name, None)
            else:
                chunks[at]["choices"][0][name] = value

    return change


def delta(at: int, **members: Any) -> Change:
    def change(chunks: list[Chunk]) -> None:
        for name, value in members.items():
            if value is ...:
                chunks[at]["choices"][0]["delta"].pop(name, None)
            else:
                chunks[at]["choices"][0]["delta"][name] = value

    return change


def deltas(**members: Any) -> Change:
    """Set members of every delta."""

    def change(chunks: list[Chunk]) -> None:
        for at, item in enumerate(chunks):
            if item["choices"]:
                delta(at, **members)(chunks)

    return change


def insert(at: int, *items: Any) -> Change:
    def change(chunks: list[Any]) -> None:
        chunks[at:at] = items

    return change


def usage(**members: Any) -> Change:
    return lambda chunks: chunks[-1]["usage"].update(members)


def fragment(at: int, **members: Any) -> Change:
    """Set members of one chunk's tool call."""

    def change(chunks: list[Chunk]) -> None:
        for name, value in members.items():
            if value is ...:
                chunks[at]["choices"][0]["delta"]["tool_calls"][0].pop(name, None)
            else:
                chunks[at]["choices"][0]["delta"]["tool_calls"][0][name] = value

    return change


def no_finish(chunks: list[Chunk]) -> None:
    del chunks[-2]


def usage_on_finish(chunks: list[Chunk]) -> None:
    chunks[-2]["usage"] = chunks.pop()["usage"]


def usage_twice(chunks: list[Chunk]) -> None:
    chunks[-2]["usage"] = chunks[-1]["usage"]


def zero_first(chunks: list[Chunk]) -> None:
    chunks[-2]["usage"] = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}


def no_usage(chunks: list[Chunk]) -> None:
    del chunks[-1]


def cumulative(chunks: list[Chunk]) -> None:
    for at, text in enumerate(("Good ", "Good morn", "Good morning"), 1):
        chunks[at]["choices"][0]["delta"]["content"] = text


def as_message(chunks: list[Chunk]) -> None:
    for item in chunks:
        for each_choice in item["choices"]:
            each_choice["message"] = each_choice.pop("delta")


def legacy_call(chunks: list[Chunk]) -> None:
    chunks[0]["choices"][0]["delta"] = {
        "role": "assistant", "content": None, "function_call": {"name": "f", "arguments": ""},
    }  # fmt: skip
    for at, piece in enumerate(('{"a"', ":1}"), 1):
        chunks[at]["choices"][0]["delta"] = {"function_call": {"arguments": piece}}
    chunks[3]["choices"][0]["finish_reason"] = "function_call"


def second_choice_first(chunks: list[Chunk]) -> None:
    chunks.insert(0, chunk({"role": "assistant", "content": "Two"}, index=1))
    chunks.insert(-1, chunk({}, "stop", index=1))


def reordered(chunks: list[Chunk]) -> None:
    for at, item in enumerate(chunks):
        chunks[at] = dict(reversed(item.items()))


def second_call_same_index(chunks: list[Chunk]) -> None:
    extra = {"index": 0, "id": "call_2", "type": "function", "function": {"name": "f", "arguments": '{"a":2}'}}
    chunks.insert(3, chunk({"tool_calls": [extra]}))


def broken_off(body: bytes) -> bytes:
    return body[: body.index(b"morn") + 3]


def pretty(chunks: list[Chunk]) -> bytes:
    return "".join(f"data: {json.dumps(item, indent=1)}\n\n" for item in chunks).encode() + b"data: [DONE]\n\n"


def completion() -> bytes:
    message = {"role": "assistant", "content": "Good morning", "refusal": None}
    whole = head([{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}], USAGE)
    return json.dumps(whole | {"object": "chat.completion"}).encode()


ERROR = {"message": "boom", "type": "server_error", "param": None, "code": "server_error"}
BAD_BYTES = CLEAN.replace(b"morn", b"mo\xffn")
PLAIN_LINES = b"".join(json.dumps(item).encode() + b"\n" for item in texts())

FAULTS: dict[str, bytes] = {
    "bom": b"\xef\xbb\xbf" + CLEAN,
    "data_prefix_missing": PLAIN_LINES,
    "data_prefix_doubled": CLEAN.replace(b"data: ", b"data: data: "),
    "data_line_empty": CLEAN.replace(b"data: {", b"data:\n\ndata: {", 2),
    "json_over_lines": pretty(texts()),
    "blank_line_missing": CLEAN.replace(b"\n\n", b"\n") + b"\n",
    "values_glued": CLEAN.replace(b"}\n\ndata: {", b"}{", 2),
    "array_of_chunks": json.dumps(texts()).encode(),
    "not_json": CLEAN.replace(b"data: {", b"data: wait\n\ndata: {", 2),
    "null_value": CLEAN.replace(b"data: {", b"data: null\n\ndata: {", 2),
    "bracket_surplus": CLEAN.replace(b"}\n\ndata: {", b"}}\n\ndata: {", 2),
    "malformed": CLEAN.replace(b'"}', b'"', 2),
    "utf8_invalid": BAD_BYTES,
    "surrogate_lone": CLEAN.replace(b"morn", b"mo\\ud83dn"),
    "done_missing": CLEAN.removesuffix(b"data: [DONE]\n\n"),
    "done_mangled": CLEAN.replace(b"[DONE]", b"[DONE\n]"),
    "data_after_done": CLEAN + b"data: " + json.dumps(chunk({"content": "!"})).encode() + b"\n\n",
    "event_unterminated": CLEAN.removesuffix(b"\n\ndata: [DONE]\n\n"),
    "body_is_json": completion(),
    "field_alone": CLEAN.replace(b"\n\n", b"\n\nid: 7\n\n", 2),
    "field_alone after an id": CLEAN.replace(b"data: {", b"id: 1\ndata: {", 1).replace(b"\n\n", b"\n\n: c\n\n", 2),
    "field_alone with a name": CLEAN.replace(b"\n\n", b"\n\nevent: ping\n\n", 2),
    "start_missing": b"data: [DONE]\n\n",
    "id_missing": changed(each(id=...)),
    "id_changed": changed(each(id=lambda number: f"chatcmpl-{number}")),
    "id_not_string": changed(each(id=7)),
    "created_missing": changed(each(created=...)),
    "created_changed": changed(each(created=lambda number: 1760000001 + number)),
    "model_blank": changed(each(model="")),
    "model_changed": changed(each(model=lambda number: f"m{number}")),
    "object_wrong": changed(each(object="chunk")),
    "choices_missing": changed(lambda chunks: chunks[-1].pop("choices")),
    "choice_odd": changed(lambda chunks: [item.update(choices=[item["choices"]]) for item in chunks[1:4]]),
    "choice_index_missing": changed(lambda chunks: [item["choices"][0].pop("index") for item in chunks[:-1]]),
    "choice_order": changed(second_choice_first),
    "delta_missing": changed(choice(-2, delta=...)),
    "message_for_delta": changed(as_message),
    "role_missing": changed(delta(0, role=...)),
    "role_repeated": changed(deltas(role="assistant")),
    "role_null": changed(deltas(role=None)),
    "role_without_content": changed(delta(0, content=...)),
    "member_null": changed(deltas(tool_calls=None, function_call=None, refusal=None)),
    "tool_member_null": changed(fragment(1, id=None, type=None, function={"name": None, "arguments": '{"a"'}), calls),
    "member_missing": changed(each(system_fingerprint=...)),
    "member_order": changed(reordered),
    "member_dropped": changed(each(provider="x", x_extra={"a": 1})),
    "content_not_string": changed(delta(2, content=[{"type": "text", "text": "morn"}])),
    "content_cumulative": changed(cumulative),
    "reasoning_spelling": changed(insert(1, chunk({"reasoning": "Hm."}))),
    "reasoning_with_content": changed(delta(1, reasoning_content="Hm.")),
    "logprobs_odd": changed(choice(2, logprobs=[-0.1])),
    "finish_missing": changed(no_finish),
    "finish_repeated": changed(insert(-1, chunk({}, "stop"))),
    "finish_blank": changed(lambda chunks: [choice(at, finish_reason="")(chunks) for at in range(4)]),
    "finish_spelling": changed(choice(-2, finish_reason="end_turn")),
    "finish_with_delta": changed(choice(-2, delta={"content": "!"})),
    "finish_for_tools": changed(choice(3, finish_reason="stop"), calls),
    "delta_after_finish": changed(insert(-1, chunk({"content": "!"}))),
    "tool_index_missing": changed(lambda chunks: [fragment(at, index=...)(chunks) for at in range(3)], calls),
    "tool_index_repeated": changed(second_call_same_index, calls),
    "tool_call_unannounced": changed(lambda chunks: chunks[0]["choices"][0]["delta"].pop("tool_calls"), calls),
    "tool_call_restarted": changed(
        fragment(1, id="call_1", type="function", function={"name": "f", "arguments": '{"a"'}), calls
    ),
    "tool_arguments_object": changed(fragment(1, function={"arguments": {"a": 1}}), lambda: calls()[:2] + calls()[3:]),
    "tool_arguments_empty": changed(lambda _: None, lambda: calls()[:1] + calls()[3:]),
    "tool_arguments_trailing": changed(fragment(2, function={"arguments": ":1}}"}), calls),
    "tool_id_missing": changed(fragment(0, id=...), calls),
    "function_call_legacy": changed(legacy_call, calls),
    "media_twice": changed(delta(1, content="![a](https://x.example/a.png) https://x.example/a.png ")),
    "media_bare": changed(
        lambda chunks: (
            [delta(at, content=text)(chunks) for at, text in ((1, "https://x.ex"), (2, "ample/a."), (3, "png"))]
        )
    ),
    "fingerprint_changed": changed(each(system_fingerprint=lambda number: f"fp_{number}")),
    "media_beside_text": changed(delta(1, images=[{"type": "image_url", "image_url": {"url": "https://x.example/a"}}])),
    "usage_on_chunk": changed(usage_on_finish),
    "usage_repeated": changed(usage_twice),
    "usage_zero": changed(zero_first),
    "usage_odd": changed(usage(prompt_tokens="9", completion_tokens="5", total_tokens="14")),
    "usage_members_extra": changed(usage(input_tokens=9, output_tokens=5, cost=0.1)),
    "usage_details_null": changed(usage(prompt_tokens_details=None, completion_tokens_details=None)),
    "usage_missing": changed(no_usage),
    "error_null": changed(each(error=None)),
    "error_empty": changed(each(error={})),
    "filter_chunk": changed(insert(0, {"choices": [], "created": 0, "id": "", "model": "", "object": ""})),
    "error_spelling": CLEAN[: CLEAN.index(b"data: ", 900)] + b'data: {"error":"boom"}\n\n',
    "error_with_choices": changed(lambda chunks: chunks[3].update(error=ERROR)),
    "upstream_failed": written([*texts()[:3], {"error": ERROR}]).removesuffix(b"data: [DONE]\n\n"),
    "upstream_incomplete": written(texts()[:3]).removesuffix(b"data: [DONE]\n\n"),
}
"""By rule, with a few words where one rule has several faces."""

TEXT = Meant("Good morning", tokens=14, model="m1")
CALL = Meant(calls=[("f", '{"a":1}')], finish="tool_calls", tokens=14, model="m1")
_OTHERWISE = {
    "start_missing": Meant(finish=None),
    "model_changed": replace(TEXT, model="m0"),
    "finish_with_delta": replace(TEXT, text="Good morning!"),
    "delta_after_finish": replace(TEXT, text="Good morning!"),
    "tool_arguments_empty": replace(CALL, calls=[("f", "{}")]),
    "tool_index_repeated": replace(CALL, calls=[("f", '{"a":1}'), ("f", '{"a":2}')]),
    "tool_call_unannounced": replace(TEXT, text="", finish="tool_calls"),
    "media_twice": replace(TEXT, text="![a](https://x.example/a.png) https://x.example/a.png morning"),
    "media_beside_text": replace(TEXT, text="Good morning\n\n![image](https://x.example/a)"),
    "media_bare": replace(TEXT, text="https://x.example/a.png"),
    "usage_missing": replace(TEXT, tokens=None),
    "error_spelling": Meant(finish=None),
    "error_with_choices": Meant(finish=None),
    "upstream_failed": Meant(finish=None),
    "upstream_incomplete": Meant(finish=None),
    "malformed": Meant(finish=None),
}


def meaning(name: str) -> Meant:
    """What the stream of a fault means."""
    calling = name.startswith("tool_") or name in ("finish_for_tools", "function_call_legacy")
    return _OTHERWISE.get(name, CALL if calling else TEXT)
