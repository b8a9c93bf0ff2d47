"""The embedded text model's process, as the official client library and raw sockets see it."""

import asyncio
import json
import os
import queue
import select
import signal
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import openai
import pytest
from openai import OpenAI

from trunkline.local.supervisor import Address, ChildUnavailableError, SupervisedChild
from trunkline.local.text.engine import CONTEXT_TOKENS, SLOTS
from trunkline.local.text.process import local_text
from trunkline.local.text.weights import Weights, find_weights

pytestmark = pytest.mark.faults
HELLO: list[Any] = [{"role": "user", "content": "Hi! Who are you?"}]
LONG: dict[str, Any] = {"messages": HELLO, "max_tokens": 3000, "ignore_eos": True}


class Running:
    """The child, in an event loop of its own, for tests that wait for answers."""

    def __init__(self, weights: Weights) -> None:
        self.child: SupervisedChild = local_text(weights)
        self._loop: queue.Queue[asyncio.AbstractEventLoop] = queue.Queue()
        self._thread = threading.Thread(target=asyncio.run, args=(self._main(),))
        self._thread.start()
        self.loop = self._loop.get()

    async def _main(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.child.run())
            self._loop.put(asyncio.get_running_loop())

    def address(self) -> Address:
        return asyncio.run_coroutine_threadsafe(self.child.address(), self.loop).result(240)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.loop.call_soon_threadsafe(self.child.stop)
        self._thread.join()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with Running(find_weights()) as running:
        yield running


@pytest.fixture
def address(running: Running) -> Address:
    return running.address()


@pytest.fixture
def client(address: Address) -> Iterator[OpenAI]:
    with OpenAI(base_url=address.base_url, api_key=address.key, max_retries=0, timeout=240) as client:
        yield client


def post(address: Address, body: bytes) -> socket.socket:
    """Send a request and keep the connection."""
    connection = socket.create_connection(("127.0.0.1", urlsplit(address.base_url).port or 0), timeout=240)
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {address.key}\r\n"
    connection.sendall(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body)
    return connection


def test_the_parameters_of_openai_are_heard(client: OpenAI) -> None:
    completion = client.chat.completions.create(
        model="any", messages=HELLO, max_tokens=8, n=2, seed=7, temperature=0.5, logprobs=True, top_logprobs=2
    )
    assert [choice.index for choice in completion.choices] == [0, 1]
    logprobs = completion.choices[0].logprobs
    assert logprobs is not None
    assert logprobs.content is not None
    assert len(logprobs.content[0].top_logprobs) == 2
    stopped = client.chat.completions.create(
        model="any", messages=[{"role": "user", "content": "Count from one to nine: 1, 2,"}], stop=["4"], temperature=0
    )
    assert stopped.choices[0].finish_reason == "stop"
    assert "4" not in (stopped.choices[0].message.content or "")


def test_the_same_seed_says_the_same(client: OpenAI) -> None:
    said = {
        client.chat.completions.create(model="any", messages=HELLO, max_tokens=12, seed=5).choices[0].message.content
        for _ in range(3)
    }
    assert len(said) == 1


def test_json_comes_in_the_asked_schema(client: OpenAI) -> None:
    schema: dict[str, object] = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "age": {"type": "integer", "maximum": 99}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    completion = client.chat.completions.create(
        model="any",
        messages=[{"role": "user", "content": "Describe a person as JSON."}],
        response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}},
        max_tokens=60,
    )
    assert json.loads(completion.choices[0].message.content or "").keys() == {"name", "age"}


def test_tools_and_their_results_are_accepted(client: OpenAI) -> None:
    messages: list[Any] = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": [{"type": "text", "text": "How is the weather in Rome?"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "weather", "arguments": "{}"}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    tools: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]
    completion = client.chat.completions.create(model="any", messages=messages, tools=tools, max_tokens=8)
    assert completion.choices[0].message.content


def test_models_says_which_weights_answer(client: OpenAI) -> None:
    [model] = client.models.list().data
    told: Any = model
    assert model.id == "SmolLM2-135M-Instruct"
    assert told.tags == ["file:SmolLM2-135M-Instruct.Q4_1.gguf", "sha256:b179c9523d0e6a0f"]
    assert told.meta["n_params"] == find_weights().parameters
    assert told.meta["n_ctx"] == CONTEXT_TOKENS


def test_only_the_key_opens(address: Address) -> None:
    with OpenAI(base_url=address.base_url, api_key="sk-wrong", max_retries=0) as stranger:
        with pytest.raises(openai.AuthenticationError):
            stranger.chat.completions.create(model="any", messages=HELLO)
        with pytest.raises(openai.AuthenticationError):
            stranger.models.list()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b'{"messages":', b"parse error"),
        (b"{}", b"'messages' is required"),
        (b'{"messages":"hello"}', b"'messages' to be an array"),
        (b'{"messages":[{"role":"user","content":"a"}],"temperature":"hot"}', b"temperature"),
        (b'{"messages":[{"role":"user","content":"a"}],"n":9}', b"'n'"),
        (
            json.dumps({"messages": [{"role": "user", "content": "word " * 5000}]}).encode(),
            b"exceed_context_size_error",
        ),
    ],
)
def test_a_bad_request_is_a_400_that_says_why(address: Address, body: bytes, said: bytes) -> None:
    with post(address, body) as connection:
        answer = b""
        while piece := connection.recv(65536):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ")
    error = json.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert said in error["message"].encode() or said == error["type"].encode()


def test_more_requests_than_slots_wait_their_turn(client: OpenAI) -> None:
    def ask(_: int) -> str | None:
        return client.chat.completions.create(model="any", messages=HELLO, max_tokens=2).choices[0].message.content

    with ThreadPoolExecutor(SLOTS * 2) as pool:
        assert all(pool.map(ask, range(SLOTS * 2)))


@pytest.mark.parametrize("stream", [True, False])
def test_those_who_leave_make_room(client: OpenAI, address: Address, *, stream: bool) -> None:
    """Each of them would write for half a minute or more; four of them take all slots, and as many wait."""
    leaving = [post(address, json.dumps({**LONG, "stream": stream}).encode()) for _ in range(SLOTS * 2)]
    if stream:
        select.select(leaving, [], [])
    for connection in leaving:
        connection.close()
    patient = client.with_options(timeout=60)
    assert patient.chat.completions.create(model="any", messages=HELLO, max_tokens=2).choices


def test_leaving_while_the_prompt_is_read_makes_room(client: OpenAI, address: Address) -> None:
    prompts = [{"role": "user", "content": f"{number} " * 1900} for number in range(SLOTS)]
    leaving = [post(address, json.dumps({"messages": [prompt]}).encode()) for prompt in prompts]
    time.sleep(0.5)
    for connection in leaving:
        connection.close()
    patient = client.with_options(timeout=60)
    assert patient.chat.completions.create(model="any", messages=HELLO, max_tokens=2).choices


def test_after_kill_9_the_next_request_is_answered(running: Running, address: Address) -> None:
    pid = running.child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    while (after := running.address()) == address:
        pass
    with OpenAI(base_url=after.base_url, api_key=after.key, max_retries=0) as client:
        assert client.chat.completions.create(model="any", messages=HELLO, max_tokens=2).choices


def test_a_gguf_of_ones_own_answers_under_its_name(tmp_path: Path) -> None:
    own = tmp_path / "My-Own.Q4_1.gguf"
    own.symlink_to(find_weights().path)
    with Running(find_weights(str(own))) as running:
        address = running.address()
        with OpenAI(base_url=address.base_url, api_key=address.key, max_retries=0) as client:
            assert client.models.list().data[0].id == "My-Own.Q4_1"
            assert client.chat.completions.create(model="any", messages=HELLO, max_tokens=2).model == "My-Own.Q4_1"


def test_damaged_weights_do_not_start(tmp_path: Path) -> None:
    shipped = find_weights()
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(Path(shipped.path).read_bytes()[:1_000_000])
    for weights, said in [
        (Weights(name="shipped", path=str(cut), sha256=shipped.sha256), "is damaged: its sha256 is"),
        (find_weights(str(cut)), "it is incomplete, or of a kind that this version does not know"),
    ]:
        with (
            Running(weights) as running,
            pytest.raises(ChildUnavailableError, match=rf"^local/text cannot start: .*{said}.*\.$"),
        ):
            running.address()
