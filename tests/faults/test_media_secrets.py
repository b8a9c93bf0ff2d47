"""Pictures and films leave a line a job; no prompt, key or provider's link is in logs, metrics or errors."""

import json
from pathlib import Path

import pytest
from gateway import chat, gateway
from media_gateway import draw, to_media
from media_providers import MediaProviders
from raw_upstream import Peer, raw_upstream

from trunkline.core.keys import KeyChanges, Rates

pytestmark = pytest.mark.faults
PROMPT = "my grandmother on a horse"
KEY = "sk-paint-0123456789abcdef"


async def repeating(peer: Peer) -> None:
    """Refuse, and repeat the key that was sent."""
    while True:
        await peer.request()
        told = {"error": {"message": f"the key {KEY} may not draw", "code": "billing"}}
        await peer.answer(json.dumps(told).encode(), "content-type: application/json", status="400 Bad Request")


async def sly(peer: Peer) -> None:
    """Take a film on; say that it failed, as a success, and repeat the key."""
    while True:
        head, _ = await peer.request()
        film: dict[str, object] = {"id": "t", "object": "video", "status": "queued"}
        if head.startswith("GET"):
            film |= {"status": "failed", "error": {"code": "server_error", "message": f"the key {KEY} is lost"}}
        await peer.answer(json.dumps(film).encode(), "content-type: application/json")


async def test_of_media_nothing_secret_is_written(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with MediaProviders() as providers, raw_upstream(repeating) as wrong, raw_upstream(sly) as slyly:
        tables = to_media(providers.url, keys={"required": True})
        tables["providers"]["paint"]["api_key"] = KEY
        tables["providers"]["wrong"] = tables["providers"]["paint"] | {"base_url": wrong.url}
        tables["providers"]["sly"] = tables["providers"]["paint"] | {"base_url": slyly.url}
        async with gateway(tmp_path, tables) as gate:
            new = await gate.application.keys.create(KeyChanges(name="anna"))
            auth = {"authorization": f"Bearer {new.token}"}
            good = await gate.ask(draw(PROMPT, stream=True), x_request_id="drawn", **auth)
            assert b"[DONE]" in await good.body()
            film = await gate.ask(draw(PROMPT, model="paint/reel", stream=True), x_request_id="filmed", **auth)
            assert b"[DONE]" in await film.body()
            bad = await gate.ask(draw(PROMPT, model="wrong/brush"), x_request_id="refused", **auth)
            error = (await bad.body()).decode()
            bad = await gate.ask(draw(PROMPT, model="sly/reel"), x_request_id="failed", **auth)
            failed = (await bad.body()).decode()
            unknown = (await (await gate.ask(chat("nobody"), **auth)).body()).decode()
            metrics = (await (await gate.get("/metrics")).body()).decode()
    written = capfd.readouterr().err
    lines = {line["call"]: line for line in map(json.loads, filter(lambda x: x.startswith("{"), written.splitlines()))}
    assert (lines["drawn"]["end"], lines["drawn"]["images"], lines["drawn"]["cost_usd"]) == ("completed", 1, 0.04)
    assert (lines["filmed"]["end"], lines["filmed"]["job"][:6]) == ("completed", "video_")
    assert lines["refused"]["end"] == "failed"
    assert "the key *** may not draw" in error
    assert 'trunkline_jobs_total{end="completed",kind="image",model="brush",provider="paint"} 1.0' in metrics
    assert "the key *** is lost" in failed
    for text in (written, metrics, error, failed, unknown):
        assert all(secret not in text for secret in (PROMPT, KEY, new.token, providers.url))


async def test_who_is_not_let_in_has_a_line_too(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        new = await gate.application.keys.create(KeyChanges(name="anna", models=("paint/*",)))
        auth = {"authorization": f"Bearer {new.token}"}
        asked: dict[str, dict[str, object]] = {
            "/v1/images/generations": {"prompt": PROMPT},
            "/v1/videos": {"prompt": PROMPT},
            "/v1/embeddings": {"input": PROMPT},
            "/v1/chat/completions": {"messages": [{"role": "user", "content": PROMPT}]},
        }
        for path, body in asked.items():
            answer = await gate.ask({"model": "nobody", **body}, path, x_request_id=path, **auth)
            assert answer.status == 404
    lines = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert [(line["call"], line["route"], line["error"], line["key"]) for line in lines] == [
        (path, path, "model_not_found", new.key.id) for path in asked
    ]


async def test_pictures_and_films_a_minute_are_exact(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, to_media(providers.url)) as gate:
        new = await gate.application.keys.create(KeyChanges(name="anna", rates=Rates(images=4)))
        auth = {"authorization": f"Bearer {new.token}"}

        async def status(path: str, **body: object) -> int:
            answer = await gate.ask({"model": "paint/brush", "prompt": "a cat", **body}, path, **auth)
            if answer.status == 429:
                assert 0 < int(answer.headers["retry-after"]) <= 61
            return answer.status

        images = "/v1/images/generations"
        assert [await status(images, n=n) for n in (2, 3)] == [200, 429]
        assert await status("/v1/videos", model="paint/reel") == 200
        assert [await status(images, n=n) for n in (2, 1, 1)] == [429, 200, 429]
        drawn = await gate.ask(draw(), **auth)
        assert (drawn.status, (await drawn.json())["error"]["code"]) == (429, "rate_limit_exceeded")
