"""`trunkline chat`, as a client of a running gateway."""

import json
from pathlib import Path

import pytest
from gateway import chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.cli.conversation import Conversation


async def says_hello(peer: Peer) -> None:
    await peer.request()
    stream = chunk({"content": "hel"}) + chunk({"content": "lo"}) + chunk({}, "stop") + b"data: [DONE]\n\n"
    await peer.answer(stream, "content-type: text/event-stream")


@pytest.mark.parametrize("as_json", [False, True])
async def test_an_answer_is_text_or_a_chunk_a_line(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes], *, as_json: bool
) -> None:
    async with raw_upstream(says_hello) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        await Conversation(url=gate.url, key="", output=tmp_path, json=as_json).ask("m", "hi")
    said = capfdbinary.readouterr().out
    if as_json:
        chunks = [json.loads(line) for line in said.splitlines()]
        assert [one["choices"][0]["delta"].get("content") for one in chunks] == ["", "hel", "lo", None]
    else:
        assert said == b"hello\n"
