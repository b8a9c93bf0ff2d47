"""`trunkline chat`, as a client of a running gateway."""

import json
from pathlib import Path

import pytest
from gateway import chunk, gateway, to_upstream
from raw_upstream import Peer, raw_upstream

from trunkline.cli.conversation import Conversation, Trouble
from trunkline.core.keys import KeyChanges


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


async def test_a_key_that_is_wanted_is_told_in_the_gateways_words(tmp_path: Path) -> None:
    async with gateway(tmp_path, to_upstream("http://127.0.0.1:9/v1")) as gate:
        made = await gate.application.keys.create(KeyChanges(name="anna", models=("other",)))
        for key, told in (
            ("", r"^A key is needed: .* \(HTTP 401\); --key or TRUNKLINE_KEY gives one$"),
            (made.token, r"^this key may not use 'm'; it may use: other \(HTTP 403\)$"),
        ):
            with pytest.raises(Trouble, match=told):
                await Conversation(url=gate.url, key=key, output=tmp_path, json=False).ask("m", "hi")
