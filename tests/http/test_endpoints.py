"""The plain endpoints, and what bad input is answered with, on a running gateway."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges

ANSWER = {
    "id": "up-1",
    "object": "chat.completion",
    "created": 1700000000,
    "model": "real",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5},
}


async def echo(peer: Peer) -> None:
    while True:
        await peer.request()
        await peer.answer(json.dumps(ANSWER).encode(), "content-type: application/json")


async def test_an_unstreamed_answer(tmp_path: Path) -> None:
    async with raw_upstream(echo) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask(chat("my-name"), x_request_id="mine-1")
        body = await answer.json()
    assert answer.status == 200
    assert answer.headers["x-request-id"] == "mine-1"
    assert answer.headers["x-trunkline-model"] == "my-name"
    assert body["model"] == "my-name"
    assert body["object"] == "chat.completion"
    assert body["choices"][0]["message"] == {"role": "assistant", "content": "Hello", "refusal": None}
    assert body["usage"]["total_tokens"] == 5


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b"\xef\xbb\xbf{}", "it begins with a byte order mark; leave that out"),
        ("{}".encode("utf-16"), "it is UTF-16; send UTF-8"),
        (gzip.compress(b"{}", mtime=0), "it is compressed (gzip); send it as it is"),
    ],
)
async def test_a_body_in_another_coding_is_named(tmp_path: Path, body: bytes, told: str) -> None:
    async with gateway(tmp_path, to_upstream("http://127.0.0.1:9/v1")) as gate:
        answer = await gate.ask(body)
        said = (await answer.json())["error"]["message"]
    assert (answer.status, said) == (400, f"The body is not valid JSON: {told}.")


BAD = [
    (b"{", 400, "invalid_json", None),
    (b"[1]", 400, "invalid_json", None),
    (b"\xff{}", 400, "invalid_json", None),
    (b"[" * 100_000, 400, "invalid_json", None),
    (b'{"model":"m","messages":[{"role":"user","content":"a\xff"}]}', 400, "invalid_json", None),
    (
        b'{"model":"m","messages":[{"role":"user","content":"a"}],"user":"' + "é".encode() * (1 << 19) + b'\xc3"}',
        400,
        "invalid_json",
        None,
    ),
    (chat("") | {"model": ""}, 400, "missing_required_parameter", "model"),
    ({"messages": [{"role": "user", "content": "x"}]}, 400, "missing_required_parameter", "model"),
    ({"model": 3, "messages": []}, 400, "invalid_value", "model"),
    ({"model": "m"}, 400, "missing_required_parameter", "messages"),
    ({"model": "m", "messages": []}, 400, "missing_required_parameter", "messages"),
    ({"model": "m", "messages": "hi"}, 400, "invalid_value", "messages"),
    ({"model": "m", "messages": [{"content": "no role"}]}, 400, "invalid_value", "messages"),
    (chat(n=0), 400, "invalid_value", "n"),
    (chat(n=10**30), 400, "invalid_value", "n"),
    (chat(n="2"), 400, "invalid_value", "n"),
    (chat(stream="yes"), 400, "invalid_value", "stream"),
    (chat(stream_options={"include_usage": True}), 400, "invalid_value", "stream_options"),
    (chat(stream=True, stream_options=7), 400, "invalid_value", "stream_options"),
    (chat(tools={}), 400, "invalid_value", "tools"),
    (chat(tools=["tide"]), 400, "invalid_value", "tools"),
    (chat(functions="tide"), 400, "invalid_value", "functions"),
    (chat(max_tokens="ten"), 400, "invalid_value", "max_tokens"),
    (chat(max_tokens=1.5), 400, "invalid_value", "max_tokens"),
    (chat(max_completion_tokens=[9]), 400, "invalid_value", "max_completion_tokens"),
    (chat(top_logprobs="all"), 400, "invalid_value", "top_logprobs"),
    (chat(temperature="hot"), 400, "invalid_value", "temperature"),
    (chat(top_p=True), 400, "invalid_value", "top_p"),
    (chat(frequency_penalty="x"), 400, "invalid_value", "frequency_penalty"),
    (chat(presence_penalty={}), 400, "invalid_value", "presence_penalty"),
    (chat(logprobs="yes"), 400, "invalid_value", "logprobs"),
    (chat(stop=[5]), 400, "invalid_value", "stop"),
]


async def test_bad_requests(tmp_path: Path) -> None:
    async with gateway(tmp_path, to_upstream("http://127.0.0.1:9/v1")) as gate:
        for body, status, code, param in BAD:
            answer = await gate.ask(body)
            error = (await answer.json())["error"]
            assert (answer.status, error["code"], error["param"]) == (status, code, param), body
            assert set(error) == {"message", "type", "param", "code"}
            assert error["type"] == "invalid_request_error"
        assert (await (await gate.ask(b"")).json())["error"]["message"] == "The body is empty; send a JSON object."


async def test_an_unknown_model_names_close_ones(tmp_path: Path) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1")
    tables["models"] = {"fast-model": {"targets": ["up:x"]}}
    async with gateway(tmp_path, tables) as gate:
        answer = await gate.ask(chat("fast-modle"))
        error = (await answer.json())["error"]
    assert answer.status == 404
    assert error["code"] == "model_not_found"
    assert "fast-model" in error["message"]


async def test_a_body_that_is_too_large(tmp_path: Path) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1")
    tables["server"] = {"body_max_bytes": 1000}
    async with gateway(tmp_path, tables) as gate:
        answer = await gate.ask(b" " * 2000)
        assert answer.status == 413
        assert (await answer.json())["error"]["code"] == "request_too_large"


async def test_models_health_and_what_is_not_served(tmp_path: Path) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1")
    tables["models"] = {"a/b": {"targets": ["up:x"]}}
    async with gateway(tmp_path, tables) as gate:
        listed = await (await gate.get("/v1/models")).json()
        assert [model["id"] for model in listed["data"]] == ["a/b"]
        one = await (await gate.get("/v1/models/a/b")).json()
        assert one == listed["data"][0]
        assert await (await gate.get("/v1/models/")).json() == listed
        assert (await gate.get("/v1/models/none")).status == 404
        for path in ("/health", "/health/live", "/health/ready"):
            assert await (await gate.get(path)).json() == {"status": "ok"}
        missing = await gate.get("/v1/nothing")
        assert missing.status == 404
        error = (await missing.json())["error"]
        assert error["code"] == "unknown_endpoint"
        assert "POST /v1/chat/completions" in error["message"]
        assert (await gate.get("/health/")).headers["location"] == "http://gateway/health"
        without_v1 = await gate.ask(chat(), "/chat/completions")
        assert without_v1.status == 404
        assert "Served: POST /v1/chat/completions; " in (await without_v1.json())["error"]["message"]


async def test_browsers_may_call_from_other_origins(tmp_path: Path) -> None:
    async with raw_upstream(echo) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        asked = {"origin": "https://app.example", "access_control_request_method": "POST"}
        preflight = await gate.get("/v1/chat/completions", "OPTIONS", **asked)
        assert preflight.status == 204
        assert preflight.headers["access-control-allow-origin"] == "*"
        assert "POST" in preflight.headers["access-control-allow-methods"]
        answer = await gate.ask(chat(), origin="https://app.example")
        assert answer.headers["access-control-allow-origin"] == "*"
        assert "x-request-id" in answer.headers["access-control-expose-headers"]


async def test_the_metrics_count_calls_and_repairs(tmp_path: Path) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        stream = chunk({"content": "x"}).replace(b"data: ", b"") + chunk({}, "stop") + b"data: [DONE]\n\n"
        await peer.answer(stream, "content-type: text/event-stream")

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        await (await gate.ask(chat(stream=True))).events()
        page = (await (await gate.get("/metrics")).body()).decode()
    assert 'trunkline_calls_total{end="completed",model="m",provider="up"} 1.0' in page
    assert 'trunkline_repairs_total{provider="up",rule="data_prefix_missing"} 1.0' in page
    assert 'trunkline_first_event_seconds_count{model="m",provider="up"} 1.0' in page


async def test_embeddings_are_forwarded(tmp_path: Path) -> None:
    seen: list[Any] = []

    async def script(peer: Peer) -> None:
        _, body = await peer.request()
        seen.append(json.loads(body))
        await peer.answer(b'{"object":"list","data":[{"embedding":[0.5]}],"model":"real"}')

    async with raw_upstream(script) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        answer = await gate.ask({"model": "e", "input": "x", "dimensions": 1}, "/v1/embeddings")
        assert await answer.json() == {"object": "list", "data": [{"embedding": [0.5]}], "model": "e"}
        bad = await gate.ask({"model": "e"}, "/v1/embeddings")
        assert (await bad.json())["error"]["param"] == "input"
    assert seen == [{"model": "e", "input": "x", "dimensions": 1}]


async def test_a_model_that_gives_no_embeddings_is_not_asked_for_them(tmp_path: Path) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1")
    tables["models"] |= {"still": {"targets": ["up:x"], "kind": "image"}, "own": {"targets": ["local:text"]}}
    tables["providers"]["local"] = {"enabled": True}
    async with gateway(tmp_path, tables) as gate:
        for model, told in (("still", "makes pictures; ask POST /v1/images/"), ("own", "gives no embeddings")):
            answer = await gate.ask({"model": model, "input": "x"}, "/v1/embeddings")
            error = (await answer.json())["error"]
            assert (answer.status, error["code"], error["param"]) == (400, "invalid_value", "model")
            assert told in error["message"]


async def test_two_requests_on_one_connection(tmp_path: Path) -> None:
    async with raw_upstream(echo) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        first = await gate.ask(chat())
        await first.body()
        body = json.dumps(chat()).encode()
        for path, data in (("/v1/models", b""), ("/v1/chat/completions", body)):
            method = "POST" if data else "GET"
            first.writer.write(
                f"{method} {path} HTTP/1.1\r\nhost: x\r\ncontent-length: {len(data)}\r\n\r\n".encode() + data
            )
            await first.read_head()
            assert first.status == 200
            await first.body()


async def test_a_key_is_needed_once_one_is_made(tmp_path: Path) -> None:
    async with raw_upstream(echo) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        assert (await gate.ask(chat())).status == 200
        made = await gate.application.keys.create(KeyChanges(name="anna", models=("allowed-*",)))
        refused = await gate.ask(chat())
        assert refused.status == 401
        assert (await refused.json())["error"]["code"] == "invalid_api_key"
        forbidden = await gate.ask(chat("other"), authorization=f"Bearer {made.token}")
        assert forbidden.status == 403
        assert (await forbidden.json())["error"]["code"] == "model_not_allowed"
        assert (await gate.ask(chat("allowed-1"), authorization=f"Bearer {made.token}")).status == 200


async def test_the_list_of_models_needs_no_key_but_a_right_one_and_shows_what_it_may_use(tmp_path: Path) -> None:
    tables = to_upstream("http://127.0.0.1:9/v1")
    tables["models"] = {name: {"targets": ["up:x"]} for name in ("allowed", "other")}
    async with gateway(tmp_path, tables) as gate:
        made = await gate.application.keys.create(KeyChanges(name="anna", models=("all*",)))
        right, wrong = f"Bearer {made.token}", "Bearer sk-tl-wrong"
        for headers, seen in (({}, ["allowed", "other"]), ({"authorization": right}, ["allowed"])):
            listed = await (await gate.get("/v1/models", **headers)).json()
            assert [model["id"] for model in listed["data"]] == seen
        for path in ("/v1/models", "/v1/models/allowed"):
            assert (await gate.get(path, authorization=wrong)).status == 401
        assert (await gate.get("/v1/models/allowed", authorization=right)).status == 200
        assert (await gate.get("/v1/models/other", authorization=right)).status == 403
