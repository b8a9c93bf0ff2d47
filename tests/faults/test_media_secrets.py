"""Pictures and films leave a line a job; no prompt, key or provider's link is in logs, metrics or errors."""

import json
from pathlib import Path

import pytest
from gateway import chat, gateway
from media_gateway import draw, to_media
from media_providers import MediaProviders
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges

pytestmark = pytest.mark.faults
PROMPT = "my grandmother on a horse"
KEY = "sk-paint-0123456789abcdef"


async def repeating(peer: Peer) -> None:
    """Refuse, and repeat the key that was sent."""
    while True:
        await peer.request()
        told = {"error": {"message": f"the key {KEY} may not draw", "code": "billing"}}
        await peer.answer(json.dumps(told).encode(), "content-type: application/json", status="400 Bad Request")


async def test_of_media_nothing_secret_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with MediaProviders() as providers, raw_upstream(repeating) as wrong:
        tables = to_media(providers.url, keys={"required": True})
        tables["providers"]["paint"]["api_key"] = KEY
        tables["providers"]["wrong"] = tables["providers"]["paint"] | {"base_url": wrong.url}
        async with gateway(tmp_path, tables) as gate:
            new = await gate.application.keys.create(KeyChanges(name="anna"))
            auth = {"authorization": f"Bearer {new.token}"}
            good = await gate.ask(draw(PROMPT, stream=True), x_request_id="drawn", **auth)
            assert b"[DONE]" in await good.body()
            film = await gate.ask(draw(PROMPT, model="paint/reel", stream=True), x_request_id="filmed", **auth)
            assert b"[DONE]" in await film.body()
            bad = await gate.ask(draw(PROMPT, model="wrong/brush"), x_request_id="refused", **auth)
            error = (await bad.body()).decode()
            unknown = (await (await gate.ask(chat("nobody"), **auth)).body()).decode()
            metrics = (await (await gate.get("/metrics")).body()).decode()
    written = capfd.readouterr().err
    lines = {line["call"]: line for line in map(json.loads, filter(lambda x: x.startswith("{"), written.splitlines()))}
    assert (lines["drawn"]["end"], lines["drawn"]["images"], lines["drawn"]["cost_usd"]) == ("completed", 1, 0.04)
    assert (lines["filmed"]["end"], lines["filmed"]["job"][:6]) == ("completed", "video_")
    assert lines["refused"]["end"] == "failed"
    assert "the key *** may not draw" in error
    assert 'trunkline_jobs_total{end="completed",kind="image",model="brush",provider="paint"} 1.0' in metrics
    for text in (written, metrics, error, unknown):
        assert all(secret not in text for secret in (PROMPT, KEY, new.token, providers.url))
