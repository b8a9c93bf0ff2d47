"""What providers sent to a job is shown to the operator, exchange by exchange, without secrets, within bounds."""

from pathlib import Path
from typing import Any

import pytest
from admin_client import ADMIN_KEY, Admin
from gateway import gateway
from media_gateway import draw, to_media
from media_providers import MediaProviders
from raw_upstream import Peer, raw_upstream

from trunkline.telemetry import job_tracer

pytestmark = pytest.mark.faults
KEY = "sk-paint-0123456789abcdef"
TRACED = {"x_trunkline_trace": "true"}


def tables(url: str) -> dict[str, Any]:
    made = to_media(url, server={"admin_key": ADMIN_KEY})
    made["providers"]["paint"]["api_key"] = KEY
    return made


async def test_a_film_shows_its_submit_its_polls_and_the_head_of_its_download(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, tables(providers.url)) as gate:
        admin = Admin(gate)
        answer = await gate.ask(draw(model="paint/reel", stream=True), x_request_id="filmed", **TRACED)
        await answer.body()
        job_id = answer.headers["x-trunkline-job-id"]
        trace = await admin("GET", f"traces/{job_id}")
        assert (trace["request_id"], trace["job_id"], trace["kind"]) == ("filmed", job_id, "video")
        assert (trace["provider"], trace["upstream_model"], trace["left_out"]) == ("paint", "reel", 0)
        exchanges = trace["exchanges"]
        lines = [(one["request"].partition(providers.url)[0::2], one["status"]) for one in exchanges]
        task = "/openai/v1/videos/task-1"
        assert lines[0] == (("POST ", "/openai/v1/videos"), 200)
        assert lines[1:4] == [(("GET ", task), 200)] * 3
        assert lines[4] == (("GET ", f"{task}/content"), 200)
        assert '"status"' in exchanges[0]["body"]
        assert "completed" in exchanges[3]["body"]
        assert all(one["ended"] == "completed" and one["took_ms"] >= 0 for one in exchanges)
        asked = [one["asked_ms"] for one in exchanges]
        assert asked == sorted(asked)
        film = exchanges[4]
        assert (film["body"], film["headers"][0]) == (None, ["content-type", "application/octet-stream"])
        assert film["bytes"] > 1000
        assert KEY not in str(trace)


async def test_a_picture_inline_is_cut_and_what_was_not_to_be_traced_is_not_kept(tmp_path: Path) -> None:
    async with MediaProviders() as providers, gateway(tmp_path, tables(providers.url)) as gate:
        admin = Admin(gate)
        answer = await gate.ask(draw("#heavy"), **TRACED)
        await answer.body()
        [one] = (await admin("GET", f"traces/{answer.headers['x-trunkline-job-id']}"))["exchanges"]
        assert one["bytes"] > 10_000_000
        assert (len(one["body"]), one["truncated"]) == (job_tracer.PART_BYTES, True)
        answer = await gate.ask(draw())
        await answer.body()
        missing = await admin.refused("GET", f"traces/{answer.headers['x-trunkline-job-id']}")
        assert missing == (404, "not_found", None)


async def repeating(peer: Peer) -> None:
    """Refuse, and repeat the key that was sent, also in a link."""
    while True:
        await peer.request()
        told = b'{"error": {"message": "%b may not draw; see https://x.example/?sig=s3cr3t&a=1"}}' % KEY.encode()
        head = ("content-type: application/json", f"x-api-key: {KEY}", f"x-said: {KEY}")
        await peer.answer(told, *head, status="400 Bad Request")


async def test_secrets_are_masked_and_who_cannot_be_reached_is_told(tmp_path: Path) -> None:
    async with raw_upstream(repeating) as upstream:
        made = tables("http://127.0.0.1:9")
        made["providers"]["sly"] = made["providers"]["paint"] | {"base_url": upstream.url}
        async with gateway(tmp_path, made) as gate:
            admin = Admin(gate)
            answer = await gate.ask(draw(model="sly/brush"), **TRACED)
            await answer.body()
            trace = await admin("GET", f"traces/{answer.headers['x-trunkline-job-id']}")
            assert KEY not in str(trace)
            assert "s3cr3t" not in str(trace)
            [one] = trace["exchanges"]
            assert (one["status"], one["headers"]) == (
                400,
                [["content-type", "application/json"], ["x-said", "*" * len(KEY)]],
            )
            answer = await gate.ask(draw(), **TRACED)
            await answer.body()
            trace = await admin("GET", f"traces/{answer.headers['x-trunkline-job-id']}")
            assert len(trace["exchanges"]) == 3
            for one in trace["exchanges"]:
                assert (one["status"], one["ended"], one["body"]) == (None, "failed", None)
                assert one["error"].startswith("no connection to 127.0.0.1:9")


async def test_of_very_many_polls_the_first_and_the_last_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_tracer, "MOST", 3)
    monkeypatch.setattr(job_tracer, "FIRST", 1)
    async with MediaProviders() as providers, gateway(tmp_path, tables(providers.url)) as gate:
        answer = await gate.ask(draw(model="paint/reel", stream=True), **TRACED)
        await answer.body()
        trace = await Admin(gate)("GET", f"traces/{answer.headers['x-trunkline-job-id']}")
        kept = [one["request"].partition("/openai/v1")[2] for one in trace["exchanges"]]
        assert kept == ["/videos", "/videos/task-1/content", "/videos/task-1/content?variant=thumbnail"]
        assert trace["left_out"] == 3
