"""What the embedded text model's server counts for several choices, as the gateway's client gets it."""

from pathlib import Path

import pytest
from gateway import chat, gateway

pytestmark = pytest.mark.faults


@pytest.mark.parametrize("stream", [True, False])
async def test_usage_is_that_of_all_choices(tmp_path: Path, *, stream: bool) -> None:
    body = chat("local/text", n=3, max_tokens=5, ignore_eos=True)
    async with gateway(tmp_path, {"providers": {"local": {"enabled": True}}}) as gate:
        if stream:
            answer = await gate.ask({**body, "stream": True, "stream_options": {"include_usage": True}})
            usage = (await answer.events())[-2]["usage"]
        else:
            answer = await gate.ask(body)
            usage = (await answer.json())["usage"]
    assert usage["completion_tokens"] == 15
    assert usage["total_tokens"] == usage["prompt_tokens"] + 15
