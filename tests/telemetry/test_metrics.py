"""What the metrics say of calls: every end by its name, tokens by kind, and no more series than are good for it."""

import asyncio
import json
from pathlib import Path

import pytest
from gateway import Answer, chat, chunk, gateway, to_upstream
from prometheus_client.parser import text_string_to_metric_families
from raw_upstream import Peer, raw_upstream

from trunkline.telemetry import labels

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
USAGE = {
    "prompt_tokens": 100,
    "completion_tokens": 50,
    "total_tokens": 150,
    "prompt_tokens_details": {"cached_tokens": 40},
    "completion_tokens_details": {"reasoning_tokens": 30},
}


async def as_asked(peer: Peer) -> None:
    """End as the model's name says."""
    _, body = await peer.request()
    model = json.loads(body)["model"]
    if model == "filter":
        told = {"error": {"message": "not that", "code": "content_filter"}}
        await peer.answer(json.dumps(told).encode(), "content-type: application/json", status="400 Bad Request")
        return
    if model == "mute":
        await peer.gone()
        return
    await peer.send(HEAD + chunk({"content": "so"}))
    if model in {"left", "stuck", "late"}:
        await peer.gone()
    elif model != "cut":
        await peer.send(chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n")


async def samples(page: Answer) -> dict[str, float]:
    """A page of metrics, read as Prometheus' own client reads it."""
    families = text_string_to_metric_families((await page.body()).decode())
    return {
        f"{sample.name} {' '.join(f'{name}={value}' for name, value in sorted(sample.labels.items()))}".strip(): value
        for family in families
        for sample in family.samples
        for value in [sample.value]
    }


async def test_every_end_has_its_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ends = {"well": "completed", "cut": "failed", "stuck": "timeout", "filter": "refused", "left": "cancelled"}
    ends |= {"mute": "timeout"}
    tables = to_upstream("", idle_s=30)
    for model in ("stuck", "mute"):
        tables["models"][model] = {"targets": [f"up:{model}"], "timeouts": {"idle_s": 0.2, "first_event_s": 0.5}}
    async with raw_upstream(as_asked) as upstream:
        tables["providers"]["up"]["base_url"] = upstream.url
        tables["server"] = {"grace_s": 1}
        async with gateway(tmp_path, tables) as gate:
            for model in ends:
                answer = await gate.ask(chat(model, stream=True), x_request_id=model)
                if model == "left":
                    await answer.chunk()
                    answer.leave()
                else:
                    await answer.body()
            await gate.ask(chat("", stream=True), x_request_id="bad")
            late = await gate.ask(chat("late", stream=True), x_request_id="late")
            await late.chunk()
            late.kept = True
            async with asyncio.timeout(60):
                while (seen := await samples(await gate.get("/metrics"))).get("trunkline_open_calls") != 1:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
        assert b'"server_shutdown"' in await late.body()
        late.leave()
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert {line["call"]: line["end"] for line in told} == {**ends, "bad": "not_admitted", "late": "shutdown"}
    assert len(told) == 8  # one line a call
    assert {line["call"]: line["error"] for line in told if "error" in line} == {
        "cut": "upstream_incomplete",
        "stuck": "upstream_timeout",
        "filter": "content_filter",
        "bad": "missing_required_parameter",
        "mute": "upstream_timeout",
    }
    for model, end in ends.items():
        assert seen[f"trunkline_calls_total end={end} model={model} provider=up"] == 1
        assert seen[f"trunkline_call_duration_seconds_count model={model} provider=up"] == 1
    assert seen["trunkline_open_streams"] == 1
    assert seen["trunkline_attempts_total provider=up"] == 7
    assert seen["trunkline_failed_attempts_total provider=up why=refused"] == 1
    tokens = {kind: seen[f"trunkline_tokens_total kind={kind} model=well provider=up"] for kind in USAGE_KINDS}
    assert tokens == USAGE_KINDS
    assert seen["trunkline_refused_calls_total error=missing_required_parameter route=/v1/chat/completions"] == 1


USAGE_KINDS = {"prompt": 100, "completion": 50, "cached": 40, "reasoning": 30}


async def test_names_that_clients_make_up_do_not_make_series(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(labels, "MOST_TARGETS", 3)
    async with raw_upstream(as_asked) as upstream, gateway(tmp_path, to_upstream(upstream.url)) as gate:
        for number in range(6):
            await (await gate.ask(chat(f"well-{number}", stream=True))).body()
        seen = await samples(await gate.get("/metrics"))
    counted = {name: value for name, value in seen.items() if name.startswith("trunkline_calls_total")}
    assert sorted(counted.values()) == [1, 1, 1, 3]
    assert counted["trunkline_calls_total end=completed model=others provider=up"] == 3
