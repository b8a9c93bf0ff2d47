"""The embedded text model streams, in a process of its own; the rest of what it does is in `tests/faults/local`."""

import asyncio
from urllib.parse import urlsplit

from gateway import Client

from trunkline.local.text.cpus import usable_cpus
from trunkline.local.text.engine import Settings, parameters
from trunkline.local.text.process import local_text
from trunkline.local.text.weights import find_weights


async def test_a_reply_streams_with_its_usage_last() -> None:
    child = local_text(find_weights())
    body = {
        "messages": [{"role": "user", "content": "Hi! Who are you?"}],
        "max_tokens": 12,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    async with asyncio.TaskGroup() as group:
        group.create_task(child.run())
        address = await child.address()
        client = Client(urlsplit(address.base_url).port or 0)
        answer = await client.ask(body, authorization=f"Bearer {address.key}")
        *chunks, last, done = await answer.events()
        answer.leave()
        child.stop()
    assert done == "[DONE]"
    choices = [chunk["choices"][0] for chunk in chunks]
    assert choices[0]["delta"]["role"] == "assistant"
    text = [choice["delta"].get("content") or "" for choice in choices]
    assert "".join(text).strip()
    assert sum(map(bool, text)) > 3
    assert choices[-1]["finish_reason"] in {"stop", "length"}
    assert last["usage"]["prompt_tokens"] > 10
    assert 3 < last["usage"]["completion_tokens"] <= 12


def test_one_cpu_is_left_to_the_gateway() -> None:
    params = parameters(Settings(key="k", weights=find_weights()))
    assert params.cpuparams.n_threads == params.cpuparams_batch.n_threads == max(1, usable_cpus() - 1)
