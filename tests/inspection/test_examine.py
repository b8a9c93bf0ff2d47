"""What departs in a capture, where, and what comes of it."""

import json
from collections import Counter
from typing import Any

import pytest
from corpus import CORPUS, Case, cases

from trunkline.core.rules import RULES
from trunkline.inspection.clients import MEASURED, MODES
from trunkline.inspection.examine import examine
from trunkline.inspection.report import Report

CHUNK = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "system_fingerprint": None}


def capture(name: str) -> bytes:
    return next((CORPUS / "openai_chat" / name).glob("upstream.*")).read_bytes()


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> bytes:
    choices = [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]
    return b"data: " + json.dumps({**CHUNK, "choices": choices, **members}).encode() + b"\n\n"


FIRST = chunk({"role": "assistant", "content": ""})
HELLO = chunk({"content": "Hello"})
LAST = chunk({}, "stop")
DONE = b"data: [DONE]\n\n"


def found(report: Report, rule: str) -> list[tuple[int, int, int]]:
    return [(each.line, each.offset, each.length) for each in report.departures if each.rule == rule]


def at(data: bytes, text: bytes, count: int = 1) -> int:
    """Where a text stands for the n-th time."""
    place = -1
    for _ in range(count):
        place = data.index(text, place + 1)
    return place


def test_json_over_lines_without_prefixes() -> None:
    data = capture("capture_image_relay")
    report = examine(data)
    counts = Counter(each.rule for each in report.departures)
    assert counts == {
        "data_prefix_missing": 7,
        "json_over_lines": 6,
        "member_missing": 12,
        "role_without_content": 1,
        "media_twice": 1,
        "usage_on_chunk": 1,
        "usage_details_null": 1,
        "event_unterminated": 1,
    }
    assert [line for line, _, _ in found(report, "json_over_lines")] == [1, 17, 33, 49, 65, 81]
    assert found(report, "role_without_content") == [(10, at(data, b'"role"'), len(b'"role": "assistant"'))]
    link = b"https://pics.example.net/base/image/0c5b1f?w=1024&h=1024"
    assert found(report, "media_twice") == [(74, at(data, link, 2), len(link))]
    line, offset, length = found(report, "usage_on_chunk")[0]
    assert line == 93
    assert json.loads(b"{" + data[offset : offset + length] + b"}")["usage"]["total_tokens"]
    assert found(report, "event_unterminated") == [(102, len(data), 0)]
    assert report.media == [{"type": "image", "url": link.decode()}]
    assert report.verdict == 1


def test_one_object() -> None:
    data = capture("capture_one_object")
    report = examine(data)
    assert {each.rule for each in report.departures} == {
        "data_prefix_missing", "json_over_lines", "member_missing", "finish_with_delta", "media_bare",
        "media_beside_text", "event_unterminated", "usage_missing", "done_missing",
    }  # fmt: skip
    assert found(report, "media_beside_text") == [(16, at(data, b'"media"'), 8)]
    assert report.finish_reason == "stop"


def test_a_relay_with_zero_usage_first() -> None:
    data = capture("capture_relay_zero_usage")
    report = examine(data)
    assert found(report, "data_line_empty") == [(3, at(data, b"data:\n"), 5), (7, at(data, b"data:\n", 2), 5)]
    assert [line for line, _, _ in found(report, "data_prefix_missing")] == [4, 8]
    assert [line for line, _, _ in found(report, "blank_line_missing")] == [2, 4, 5, 6, 8, 9]
    assert [line for line, _, _ in found(report, "usage_zero")] == [6]
    assert found(report, "usage_zero")[0][1] == at(data, b'"usage": {')
    assert [line for line, _, _ in found(report, "usage_repeated")] == [8]
    assert found(report, "fingerprint_changed") == [(8, at(data, b'"system_fingerprint": ""'), 24)]
    extra = next(each for each in report.departures if each.rule == "usage_members_extra")
    for name in ("input_tokens", "output_tokens", "input_tokens_details", "prompt_tokens_details.text_tokens"):
        assert name in extra.detail
    assert report.usage is not None
    assert report.usage["total_tokens"] > 0


def test_blank_lines_and_done_lost() -> None:
    data = capture("capture_openai_stripped")
    report = examine(data)
    assert [line for line, _, _ in found(report, "blank_line_missing")] == [2, 3, 4, 5]
    assert found(report, "done_missing") == [(5, len(data), 0)]


def test_json_over_24_lines() -> None:
    data = capture("capture_video_wrapper")
    report = examine(data)
    starts = [1 + 24 * number for number in range(44)]
    assert [line for line, _, _ in found(report, "json_over_lines")] == starts
    assert [line for line, _, _ in found(report, "blank_line_missing")] == [*starts[1:], 1057]
    assert [line for line, _, _ in found(report, "role_null")] == [9 + 24 * number for number in range(44)]
    assert [offset for _, offset, _ in found(report, "model_blank")][:2] == [
        at(data, b'"model"'),
        at(data, b'"model"', 2),
    ]
    assert found(report, "role_missing") == [(1, 0, 0)]
    assert found(report, "done_mangled") == [(1057, at(data, b"[DONE"), 7)]
    created = [each.detail for each in report.departures if each.rule == "created_changed"]
    assert created[0] == "1742000005 → 1742000006"
    assert created[-1] == "1742000015 → 1741990000"
    assert found(report, "usage_missing") == [(1058, len(data), 0)]
    assert [medium["type"] for medium in report.media] == ["cover", "video"]


def test_places_are_told_in_the_file_that_was_given() -> None:
    stream = FIRST + HELLO + chunk({"role": None, "content": " you"}) + LAST + DONE
    pasted = b"It says:\n\n```\n" + b"".join(b"app | " + line + b"\n" for line in stream.split(b"\n")) + b"```\n"
    report = examine(pasted)
    assert found(report, "role_null") == [(8, at(pasted, b'"role": null'), 12)]
    assert report.wrappings == ["Markdown fence", "log prefixes"]


def test_several_values_on_a_line_have_places_of_their_own() -> None:
    stream = FIRST + b"data: " + HELLO[6:-2] + chunk({"content": "!"})[6:] + LAST + DONE
    report = examine(stream)
    assert found(report, "values_glued") == [(3, at(stream, b"}{") + 1, 1)]
    assert [row.line for row in report.rows] == [1, 3, 3, 5, 7, 8]
    assert report.text == "Hello!"


@pytest.mark.parametrize("case", cases(), ids=lambda case: f"{case.dialect}/{case.name}")
def test_a_case(case: Case) -> None:
    rows_cover_what_was_read(case)
    what_we_write_is_clean(case)


def rows_cover_what_was_read(case: Case) -> None:
    data = case.upstream
    report = examine(data)
    ends = [0]
    for row in report.rows:
        assert ends[-1] <= row.offset <= row.end <= len(data)
        ends.append(row.end)
    shown = [index for row in report.rows for index in row.departures]
    assert sorted(shown) == list(range(len(report.departures)))
    if (case.folder / "upstream.bin").exists():
        return  # lines are messages there
    for each in report.departures:
        assert 0 <= each.offset <= each.offset + each.length <= len(data)
        assert each.line == len(data[: each.offset].replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")) - (
            1 if each.offset == len(data) and data.endswith((b"\n", b"\r")) else 0
        )
    texts = [chunk for row in report.rows for chunk in row.chunks]
    said = "".join(
        choice["delta"].get("content") or ""
        for text in texts
        if text != "[DONE]"
        for choice in json.loads(text).get("choices", [])
        if choice["index"] == 0
    )
    assert said == report.text


def what_we_write_is_clean(case: Case) -> None:
    report = examine((case.folder / "client.sse").read_bytes())
    failed = b'"error"' in (case.folder / "client.sse").read_bytes()
    assert report.verdict == (2 if failed else 0), [(each.rule, each.message) for each in report.departures]
    if not failed:
        assert {client.outcome for client in report.clients} <= {"ok", "degraded"}


def test_the_stream_of_a_row_ends_with_what_has_no_frame() -> None:
    report = examine(FIRST + HELLO + LAST)
    assert report.rows[-1].raw == ""
    assert report.rows[-1].offset == report.rows[-1].end == len(FIRST + HELLO + LAST)
    assert report.rows[-1].chunks[-1] == "[DONE]"
    assert [report.departures[index].rule for index in report.rows[-1].departures] == ["done_missing"]


def test_a_broken_stream() -> None:
    report = examine(FIRST + HELLO)
    assert report.verdict == 2
    assert report.error is not None
    assert report.error[0] == "upstream_incomplete"
    assert [each.rule for each in report.departures] == ["upstream_incomplete", "finish_missing"] or report.departures


def test_an_error_status() -> None:
    report = examine(
        b'HTTP/1.1 429 Too Many Requests\r\ncontent-type: application/json\r\n\r\n{"error":{"message":"slow"}}'
    )
    assert report.verdict == 2
    assert {client.says for client in report.clients} == {"HTTP 429"}


def test_clients_of_a_clean_stream_and_of_nothing() -> None:
    clean = examine(FIRST + HELLO + LAST + DONE)
    assert [client.outcome for client in clean.clients] == ["ok"] * 8
    lost = examine((FIRST + HELLO + LAST + DONE).replace(b"\n\n", b"\n"))
    assert [client.outcome for client in lost.clients] == [
        "empty", "error", "error", "empty", "empty", "error", "error", "empty",
    ]  # fmt: skip


def test_a_field_alone() -> None:
    report = examine(FIRST + b"id: 7\n\n" + HELLO + LAST + DONE)
    assert found(report, "field_alone") == [(3, len(FIRST), 5)]
    assert report.clients[0].outcome == "error"
    assert report.clients[4].outcome == "ok"


def test_the_table_of_clients_knows_only_rules() -> None:
    assert set(MEASURED) <= set(RULES)
    assert all(len(outcomes) == len(MODES) for outcomes, _ in MEASURED.values())
    assert all(set(says) <= {"*", *MODES} for _, says in MEASURED.values())


def test_json_is_what_the_contract_says() -> None:
    told = json.loads(examine(capture("capture_relay_zero_usage")).as_json())
    assert list(told) == [
        "dialect", "departures", "text", "reasoning", "tool_calls", "finish_reason", "usage", "media", "events",
    ]  # fmt: skip
    assert set(told["departures"][0]) == {"line", "offset", "rule", "message"}


def test_the_pages_json_has_rows_and_clients() -> None:
    told = json.loads(examine(FIRST + HELLO + LAST).as_page_json())
    assert told["verdict"] == 1
    assert set(told["departures"][0]) == {"line", "offset", "length", "rule", "message"}
    assert set(told["rows"][0]) == {"t_ms", "line", "offset", "end", "raw", "departures", "chunks"}
    assert [client["mode"] for client in told["clients"]] == list(MODES)
    assert set(told["clients"][0]) == {"mode", "outcome", "rules", "says"}


def test_an_empty_capture() -> None:
    report = examine(b"")
    assert report.verdict == 2
    assert report.rows[-1].raw == ""


def test_what_no_client_minds_is_told_beside_faults_only() -> None:
    head = '{"id":"c","object":"chat.completion.chunk","created":1,"model":"m",'
    chunk = head + '"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}'
    told = [('{"role":"assistant","content":""}', "null"), ('{"content":"Hi"}', "null"), ("{}", '"stop"')]
    clean = "".join(f"data: {chunk % each}\n\n" for each in told) + "data: [DONE]\n\n"
    report = examine(clean.encode())
    assert (report.departures, report.verdict) == ([], 0)
    report = examine(clean.replace("data: {", "{", 1).encode())
    assert {each.rule for each in report.departures} == {"data_prefix_missing", "member_missing"}
    assert report.verdict == 1


def test_a_request_is_told_from_an_answer() -> None:
    for pasted in (b"curl 'https://x.example/v1' \\\n  -H 'a: b'\n", b'fetch("https://x.example/v1", {});\n'):
        report = examine(pasted)
        assert report.error is not None
        assert report.error[1].startswith("this is a request")


def test_another_language_is_told_once() -> None:
    case = next(each for each in cases() if (each.dialect, each.name) == ("gemini_chat", "calls"))
    report = examine(case.upstream)
    assert {each.rule for each in report.departures} <= {"dialect_recognised", "done_missing", "finish_missing"}
    assert [call["name"] for call in report.tool_calls][:1] == ["weather"]
