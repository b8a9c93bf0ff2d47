"""Whatever stands around a capture comes off, and every byte is led back to where it stood."""

import base64
import gzip
import json
from collections.abc import Callable

import pytest
from corpus import cases
from hypothesis import given
from hypothesis import strategies as st

from trunkline.inspection.paste import unwrap

STREAM = (
    'data: {"id":"x","choices":[{"index":0,"delta":{"role":"assistant","content":"H\\u00e9 \\"q\\" it\'s"}}]}\n\n'
    ": keep-alive\n\n"
    "event: message\n"
    'data: {"id":"x","choices":[{"index":0,"delta":{"content":"火🔥 `x`\\n> y"},"finish_reason":"stop"}]}\n\n'
    "data: [DONE]\n\n"
).encode()
LINES = STREAM.rstrip(b"\n").split(b"\n")
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
PIECES = [STREAM[:50], STREAM[50:130], STREAM[130:]]
CHUNKED = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in PIECES) + b"0\r\n\r\n"
CURL = (
    b"*   Trying 127.0.0.1:4000...\n* Connected to x port 443\n> POST /v1/chat/completions HTTP/2\n> Host: x\n"
    b"> authorization: Bearer sk-1\n>\n} [12 bytes data]\n* We are completely uploaded and fine\n"
    b"< HTTP/2 200\n< content-type: text/event-stream\n< x-request-id: r1\n<\n{ [5 bytes data]\n"
)


def prefixed(prefix: Callable[[int], str], lines: list[bytes] = LINES, *, strip: bool = False) -> bytes:
    told = [prefix(number).encode() + line for number, line in enumerate(lines)]
    return b"".join((line.rstrip() if strip else line) + b"\n" for line in told)


def har_entry(**content: str) -> dict[str, object]:
    headers = [{"name": "Content-Type", "value": "text/event-stream"}]
    return {"request": {"url": "u"}, "response": {"status": 200, "headers": headers, "content": content}}


TEXT = STREAM.decode()
PAGE = har_entry(text="<html></html>")
WRAPPED: dict[str, bytes] = {
    "Markdown fence": b"I get this:\n\n```sse\n" + STREAM + b"```\n\nfor\n\n~~~json\n{}\n~~~\n",
    "Markdown fence, open": b"```\n" + STREAM,
    "HTTP heads": HEAD + STREAM,
    "HTTP heads, two": b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD + STREAM,
    "HTTP heads, request": b'POST /v1 HTTP/1.1\r\nHost: x\r\n\r\n{"model":"m"}\r\n' + HEAD + STREAM,
    "HTTP heads, chunk sizes": HEAD + CHUNKED,
    "HTTP heads, chunk sizes, newlines lost": (HEAD + CHUNKED).replace(b"\r\n", b"\n"),
    "chunk sizes": CHUNKED,
    "chunk sizes, cut": CHUNKED[:-40],
    "curl -v": CURL + STREAM + b"\n* Connection #0 to host x left intact\n",
    "curl -v, on the last line": CURL + STREAM.rstrip() + b"* Connection #0 to host x left intact\n",
    "a command": b"$ curl -N http://x/v1 \\\n  -d '{\"model\":\"x\"}'\n" + STREAM,
    "a command, fetch": b'fetch("http://x/v1", {\n  "method": "POST",\n  "body": "{}"\n});\n' + STREAM,
    "log prefixes, times": prefixed(lambda n: f"2026-11-28T01:02:{n:02}.12{n}Z INFO  "),
    "log prefixes, containers": prefixed("gateway-{}  | ".format),
    "log prefixes, blanks gone": prefixed(lambda _: "gateway-1  | ", strip=True),
    "log prefixes, syslog": prefixed(lambda n: f"Nov 28 01:0{n}:59 host app[12{n}]: "),
    "log prefixes, pods": prefixed(lambda n: f"pod-7f9c4 app 2026-11-28T01:02:0{n}Z "),
    "log prefixes, levels": prefixed(lambda n: f"{('DEBUG', 'INFO')[n % 2]}:my.client:got "),
    "log prefixes, numbers": prefixed(lambda n: f"{n + 1:6}\t"),
    "log prefixes, others between": prefixed("app | {} ".format) + b"app | 9 Shutting down\n",
    "quoted lines": prefixed(lambda _: "> "),
    "quoted lines, of a patch": prefixed(lambda _: "+"),
    "string literals, bytes": repr(STREAM).encode(),
    "string literals, text": repr(TEXT).encode(),
    "string literals, ASCII": ascii(TEXT).encode(),
    "string literals, pieces": b"".join(repr(piece).encode() + b"\n" for piece in PIECES),
    "string literals, lines": b"".join(repr(line).encode() + b"\n" for line in LINES),
    "string literals, a list": repr(LINES).encode(),
    "string literals, named": b"".join(b"chunk: " + repr(line).encode() + b"\n" for line in LINES),
    "string literals, logged": b"".join(
        b"2026-11-28 01:02:03,456 DEBUG app chunk=" + repr(line).encode() + b"\n" for line in LINES
    ),
    "string literals, JSON": json.dumps(TEXT).encode(),
    "string literals, JSON unescaped": json.dumps(TEXT, ensure_ascii=False).encode(),
    "written-out line ends": json.dumps(TEXT).encode()[1:-1],
    "JSON log records, Docker": b"".join(
        json.dumps({"log": line.decode() + "\n", "stream": "stdout"}).encode() + b"\n" for line in LINES
    ),
    "JSON log records, messages": b"".join(
        json.dumps({"level": "debug", "msg": line.decode()}).encode() + b"\n" for line in LINES
    ),
    "JSON log records, one": json.dumps({"status": 200, "body": TEXT}, indent=1).encode(),
    "HAR, entry": json.dumps(har_entry(text=TEXT), indent=2).encode(),
    "HAR, whole": json.dumps({
        "log": {"entries": [PAGE, har_entry(text=base64.b64encode(STREAM).decode(), encoding="base64"), PAGE]}
    }).encode(),
    "HAR, entries": json.dumps([PAGE, har_entry(text=TEXT)]).encode(),
    "gzip": gzip.compress(STREAM),
    "UTF-16": b"\xff\xfe" + TEXT.encode("utf-16-le"),
    "terminal colours": b"\x1b[32m" + STREAM.replace(b"data:", b"\x1b[1mdata:\x1b[0m"),
    "Markdown fence, log prefixes": b"```\n%b```\n"
    % prefixed("app_{} | ".format, HEAD.split(b"\r\n")[:-1] + LINES),
}  # fmt: skip


@pytest.mark.parametrize("name", WRAPPED)
def test_a_wrapping_comes_off(name: str) -> None:
    capture = unwrap(WRAPPED[name])
    cut = 33 if "cut" in name else 0
    assert capture.data.strip() == (STREAM[: len(STREAM) - cut] if cut else STREAM).strip()
    assert capture.wrappings[0] == name.partition(",")[0]


@pytest.mark.parametrize("name", WRAPPED)
def test_every_byte_is_led_back(name: str) -> None:
    given_bytes = WRAPPED[name]
    capture = unwrap(given_bytes)
    places = [capture.origin(offset) for offset in range(len(capture.data) + 1)]
    assert places == sorted(places)
    assert places[-1] <= len(given_bytes)
    if "base64" not in name and "UTF-16" not in name and "gzip" not in name and "whole" not in name:
        for word in (b"assistant", b"message") if "cut" in name else (b"assistant", b"message", b"[DONE]"):
            assert given_bytes[capture.origin(capture.data.index(word)) :].startswith(word)


def test_half_a_character_at_the_end_has_its_place() -> None:
    given_bytes = b"\xff\xfe" + "data: x\n".encode("utf-16-le") + b"0"
    capture = unwrap(given_bytes)
    assert [capture.origin(len(capture.data)), capture.origin(0)] == [len(given_bytes), 2]


def test_a_plain_capture_passes_untouched() -> None:
    for case in cases():
        if not (case.folder / "upstream.bin").exists():
            assert unwrap(case.upstream).wrappings == [], case.name
            assert unwrap(case.upstream).data == case.upstream


def test_a_text_that_speaks_of_streams_is_not_taken_apart() -> None:
    text = b'data: {"choices":[{"delta":{"content":"say:\\n\\ndata: {\\"a\\":1}\\n\\n```\\nx"}}]}\n\n'
    assert unwrap(text).wrappings == []


def test_the_head_is_kept_and_the_chunks_ends() -> None:
    capture = unwrap(HEAD + CHUNKED)
    assert capture.head is not None
    assert capture.head.status == 200
    assert ("content-type", "text/event-stream") in capture.head.headers
    assert [end for _, end in capture.reads] == [50, 130, len(STREAM)]
    verbose = unwrap(CURL + STREAM)
    assert verbose.head is not None
    assert verbose.head.headers == [("content-type", "text/event-stream"), ("x-request-id", "r1")]


def test_half_a_character_stays_one() -> None:
    assert b"\\ud83d" in unwrap(b'"data: {\\"a\\":\\"\\ud83d\\"}\\n\\n"').data


def test_log_records_whose_text_is_no_utf8_come_off() -> None:
    fire, broken = "火".encode(), b"\xff"
    records = [json.dumps({"msg": line.decode()}, ensure_ascii=False).encode() + b"\n" for line in LINES]
    assert unwrap(b"".join(records).replace(fire, broken)).data.strip() == STREAM.replace(fire, broken).strip()
    entry = json.dumps({"comment": {"text": "?"}} | har_entry(text=TEXT)).encode().replace(b"?", b"\xff")
    assert unwrap(entry).data == STREAM


@given(st.binary(max_size=400))
def test_nothing_raises(data: bytes) -> None:
    unwrap(data)


@given(st.text(alphabet="data:{}[]\"\\n`>\r\n|* <HTP/1.0u'b", max_size=200))
def test_nothing_raises_on_what_looks_like_it(text: str) -> None:
    unwrap(text.encode())
