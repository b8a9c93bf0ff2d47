"""Routing as an operator sees it: keys in turn, rests, circuits, fallbacks by choice, retries, on a running gateway."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import formatdate
from pathlib import Path
from typing import Any

import pytest
from gateway import Answer, Gateway, chat, gateway
from raw_upstream import Peer, raw_upstream

from trunkline.calls.upstreams import retry_after

pytestmark = pytest.mark.faults

OK = json.dumps(
    {"id": "1", "choices": [{"index": 0, "message": {"role": "assistant", "content": "ok"}, "finish_reason": "stop"}]}
).encode()


class Upstream:
    """Answers by the key it is sent: 200, unless `answers` has another status (and body and headers) for it."""

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.answers: dict[str, tuple[str, bytes, str]] = {}
        self.wait_s = 0.0

    async def __call__(self, peer: Peer) -> None:
        while True:
            head, _ = await peer.request()
            key = head.lower().partition("authorization: bearer ")[2].partition("\r\n")[0]
            self.keys.append(key)
            await asyncio.sleep(self.wait_s)
            status, body, header = self.answers.get(key, ("200 OK", OK, "x-a: b"))
            await peer.answer(body, "content-type: application/json", header, status=status)

    def says(self, key: str, status: str, error: object = None, header: str = "x-a: b") -> None:
        self.answers[key] = (status, json.dumps({"error": error or {"message": "no"}}).encode(), header)


class Place:
    """A gateway before two upstreams: `a` has the keys a1 and a2, `b` has b1."""

    def __init__(self, gate: Gateway, a: Upstream, b: Upstream) -> None:
        self.gate = gate
        self.a = a
        self.b = b

    async def ask(self) -> Answer:
        answer = await self.gate.ask(chat())
        answer.body_read = await answer.json()  # type: ignore[attr-defined]
        return answer


@asynccontextmanager
async def place(data_dir: Path, keys: list[str], **alias: Any) -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        a, b = Upstream(), Upstream()
        served = [await stack.enter_async_context(raw_upstream(upstream)) for upstream in (a, b)]
        providers = {
            name: {"base_url": upstream.url, "api_key": key, "chat": {"dialect": "openai_chat"}}
            for name, upstream, key in zip("ab", served, (keys, ["b1"]), strict=True)
        }
        tables = {"providers": providers, "models": {"m": {"targets": ["a:x", "b:y"], **alias}}}
        yield Place(await stack.enter_async_context(gateway(data_dir, tables)), a, b)


async def test_keys_take_turns(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1", "a2"]) as at:
        for _ in range(4):
            assert (await at.ask()).headers["x-trunkline-attempts"] == "1"
        assert sorted(at.a.keys) == ["a1", "a1", "a2", "a2"]
        assert at.a.keys[0] != at.a.keys[1]


@pytest.mark.parametrize(("status", "header"), [("429 Too Many Requests", "retry-after: 30"), ("401 Unauthorized", "")])
async def test_a_key_that_is_refused_rests_and_the_next_one_is_used(tmp_path: Path, status: str, header: str) -> None:
    async with place(tmp_path, ["a1", "a2"]) as at:
        at.a.says("a1", status, header=header or "x-a: b")
        answers = [await at.ask() for _ in range(6)]
        assert [answer.status for answer in answers] == [200] * 6
        assert not any("x-trunkline-fallback-from" in answer.headers for answer in answers)
        assert at.a.keys.count("a1") == 1
        assert at.b.keys == []


async def test_a_circuit_opens_but_the_last_target_is_always_asked(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"]) as at:
        at.a.says("a1", "500 Internal Server Error")
        for _ in range(3):
            answer = await at.ask()
            assert (answer.status, answer.headers["x-trunkline-fallback-from"]) == (200, "a:x")
        answer = await at.ask()
        assert answer.headers["x-trunkline-attempts"] == "1"
        assert "x-trunkline-fallback-from" not in answer.headers
        assert len(at.a.keys) == 3
        at.b.says("b1", "500 Internal Server Error")
        asked = len(at.a.keys) + len(at.b.keys)
        for number in range(1, 7):
            assert (await at.ask()).status == 502
            assert len(at.a.keys) + len(at.b.keys) == asked + number


CONTEXT = {"message": "too long", "code": "context_length_exceeded"}
FILTERED = {"message": "not that", "code": "content_filter"}


@pytest.mark.parametrize(("error", "code"), [(CONTEXT, "context_length_exceeded"), (FILTERED, "content_filter")])
async def test_refusals_go_to_another_target_by_choice(tmp_path: Path, error: object, code: str) -> None:
    async with place(tmp_path / "1", ["a1"]) as at:
        at.a.says("a1", "400 Bad Request", error)
        answer = await at.ask()
        assert (answer.status, answer.body_read["error"]["code"]) == (400, code)  # type: ignore[attr-defined]
        assert "x-trunkline-fallback-from" not in answer.headers
        assert at.b.keys == []
    async with place(tmp_path / "2", ["a1"], fallback_on=[code]) as at:
        at.a.says("a1", "400 Bad Request", error)
        answer = await at.ask()
        assert (answer.status, answer.headers["x-trunkline-provider"]) == (200, "b")


async def test_retries_ask_the_same_target_again(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"], retries=2) as at:
        at.a.says("a1", "503 Service Unavailable")

        async def mend() -> None:
            while len(at.a.keys) < 2:  # noqa: ASYNC110 - the upstream has no event for it
                await asyncio.sleep(0.01)
            del at.a.answers["a1"]

        answer, _ = await asyncio.gather(at.ask(), mend())
        assert (answer.status, answer.headers["x-trunkline-provider"]) == (200, "a")
        assert len(at.a.keys) in (2, 3)
        assert answer.headers["x-trunkline-attempts"] == str(len(at.a.keys))
        assert "x-trunkline-fallback-from" not in answer.headers


async def test_no_retry_begins_when_its_time_is_over(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"], retries=5, retry_within_s=0.01) as at:
        at.a.says("a1", "503 Service Unavailable")
        assert (await at.ask()).headers["x-trunkline-provider"] == "b"
        assert len(at.a.keys) == 1


async def test_the_fastest_is_asked_once_all_are_measured(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"], strategy="fastest") as at:
        at.a.wait_s = 1.0
        providers = [(await at.ask()).headers["x-trunkline-provider"] for _ in range(4)]
        assert providers == ["a", "b", "b", "b"]


async def test_weights_share_the_calls(tmp_path: Path) -> None:
    targets = [{"target": "a:x", "weight": 0.000001}, {"target": "b:y", "weight": 1000}]
    async with place(tmp_path, ["a1"], strategy="weighted", targets=targets) as at:
        for _ in range(5):
            await at.ask()
        assert (len(at.a.keys), len(at.b.keys)) == (0, 5)


VECTOR = b'{"object":"list","data":[{"embedding":[0.5]}],"model":"real"}'


async def test_embeddings_rest_keys_and_tell_no_secret(tmp_path: Path) -> None:
    async with place(tmp_path, ["sk-secret-1", "sk-secret-2"], targets=["a:x"]) as at:
        at.a.answers["sk-secret-2"] = ("200 OK", VECTOR, "x-a: b")
        at.a.says("sk-secret-1", "429 Too Many Requests", {"message": "sk-secret-1 is too quick"}, "retry-after: 30")
        body = {"model": "m", "input": "x"}
        assert [(await at.gate.ask(body, "/v1/embeddings")).status for _ in range(4)] == [200] * 4
        assert at.a.keys.count("sk-secret-1") == 1
        at.a.says("sk-secret-2", "429 Too Many Requests", {"message": "sk-secret-2 is too quick"}, "retry-after: 40")
        answer = await at.gate.ask(body, "/v1/embeddings")
        assert (answer.status, answer.headers["retry-after"]) == (429, "40")
        assert (await answer.json())["error"]["message"] == "*** is too quick"
        page = (await (await at.gate.get("/metrics")).body()).decode()
    assert 'trunkline_attempts_total{provider="a"} 6.0' in page
    assert 'trunkline_failed_attempts_total{provider="a",why="rate"} 2.0' in page


async def test_what_another_target_took_is_not_counted_as_slowness(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"], strategy="fastest") as at:
        at.a.wait_s = 1.0
        at.a.says("a1", "500 Internal Server Error")
        assert (await at.ask()).headers["x-trunkline-provider"] == "b"
        del at.a.answers["a1"]
        assert [(await at.ask()).headers["x-trunkline-provider"] for _ in range(3)] == ["a", "b", "b"]


def test_how_long_to_wait_is_read_in_all_its_forms() -> None:
    assert retry_after({}) == retry_after({"retry-after": "soon"}) == ""
    assert retry_after({"retry-after": "7"}) == "7"
    assert retry_after({"retry-after": "1", "retry-after-ms": "250"}) == "0.25"
    assert float(retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})) < 0
    later = formatdate(time.time_ns() / 1e9 + 100, usegmt=True)
    assert 0 < float(retry_after({"retry-after": later})) <= 100


async def test_a_key_rests_until_the_date_it_is_told(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"]) as at:
        at.a.says(
            "a1", "429 Too Many Requests", header=f"retry-after: {formatdate(time.time_ns() / 1e9 + 500, usegmt=True)}"
        )
        at.b.says("b1", "429 Too Many Requests", header="retry-after-ms: 900000")
        answer = await at.ask()
        assert (answer.status, answer.headers["retry-after"]) == (429, "900")
        resting = at.gate.application.metrics.health.resting(time.monotonic())
    assert {key[:2]: rest_s > 300 for key, (rest_s, _) in resting.items()} == {("a", "x"): True, ("b", "y"): True}


async def test_an_answer_that_cannot_be_read_is_told_from_a_provider_that_cannot_be_reached(tmp_path: Path) -> None:
    async with place(tmp_path, ["a1"], targets=["a:x"]) as at:
        at.a.says("a1", "200 OK", header="content-encoding: br")
        answer = await at.ask()
        error = answer.body_read["error"]  # type: ignore[attr-defined]
        assert answer.status == 502
        assert error["message"] == "the provider's answer cannot be read: the content coding 'br' was not asked for"
