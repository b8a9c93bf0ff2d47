"""Spans and metrics, as a collector receives them over a socket."""

import asyncio
import gzip
import sys
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk, gateway, to_upstream
from media_gateway import draw, to_media
from media_providers import MediaProviders
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from raw_upstream import Peer, raw_upstream

from trunkline.app import Application
from trunkline.config.load import build
from trunkline.config.read import ConfigError
from trunkline.config.spoken import this_build
from trunkline.telemetry import otel

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
PROMPT = "my grandmother's recipe"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}


class Collector:
    """Takes what is exported to it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.spans: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.resource: dict[str, Any] = {}

    async def __call__(self, peer: Peer) -> None:
        while True:
            head, body = await peer.request()
            if "content-encoding: gzip" in head.lower():
                body = gzip.decompress(body)
            self.bodies.append(body)
            if head.startswith("POST /v1/traces "):
                self._traces(body)
            else:
                assert head.startswith("POST /v1/metrics ")
                self._metrics(body)
            await peer.answer(b"", "content-type: application/x-protobuf")

    def _traces(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resource = members(resource.resource.attributes)
            for scope in resource.scope_spans:
                self.spans += scope.spans

    def _metrics(self, body: bytes) -> None:
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                self.metrics |= {metric.name: metric for metric in scope.metrics}


def members(attributes: Any) -> dict[str, Any]:
    return {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in attributes}


async def answer(peer: Peer) -> None:
    _, body = await peer.request()
    if b"broken" in body:
        await peer.answer(b"{}", status="500 Internal Server Error")
        return
    events = chunk({"content": "take two eggs"}) + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n"
    await peer.answer(events, "content-type: text/event-stream")


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a collector that hears time to do so."""
    monkeypatch.setattr(otel, "EXPORT_S", 60.0)


async def test_a_collector_hears_of_calls(tmp_path: Path, patient: None) -> None:
    collector = Collector()
    async with raw_upstream(answer) as upstream, raw_upstream(collector) as collecting:
        tables = to_upstream(upstream.url)
        tables["models"]["*"]["price"] = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
        tables["server"] = {"otlp": collecting.url.removesuffix("/v1")}
        async with gateway(tmp_path, tables) as gate:
            body = chat(stream=True) | {"messages": [{"role": "user", "content": PROMPT}]}
            parent = f"00-{TRACE}-{SPAN}-01"
            await (await gate.ask(body, traceparent=parent, x_request_id="call-1")).body()
            await (await gate.ask(chat("broken"), x_request_id="call-2")).body()
    spans = {members(span.attributes)["trunkline.call.id"]: span for span in collector.spans}
    good, bad = spans["call-1"], spans["call-2"]
    assert (good.trace_id.hex(), good.parent_span_id.hex(), good.name) == (TRACE, SPAN, "chat m")
    assert 0 < good.end_time_unix_nano - good.start_time_unix_nano < 60_000_000_000
    assert [event.name for event in good.events] == ["trunkline.first_event"]
    said = members(good.attributes)
    assert said["gen_ai.provider.name"] == "up"
    assert (said["gen_ai.usage.input_tokens"], said["gen_ai.usage.output_tokens"]) == (1000, 500)
    assert (said["trunkline.cost_usd"], said["trunkline.end"]) == (0.006, "completed")
    assert bad.status.code == 2
    assert members(bad.attributes)["error.type"] == "upstream_error"
    assert bad.trace_id.hex() != TRACE
    assert collector.resource["service.name"] == "trunkline"
    tokens = {
        members(point.attributes)["gen_ai.token.type"]: point.sum
        for point in collector.metrics["gen_ai.client.token.usage"].histogram.data_points
    }
    assert tokens == {"input": 1000, "output": 500}
    assert sum(p.count for p in collector.metrics["gen_ai.client.operation.duration"].histogram.data_points) == 2
    assert collector.metrics["gen_ai.client.operation.time_to_first_chunk"].histogram.data_points[0].count == 1
    assert collector.metrics["trunkline.cost"].sum.data_points[0].as_double == 0.006
    for secret in (PROMPT, "take two eggs", "sk-upstream"):
        assert all(secret.encode() not in body for body in collector.bodies)


@pytest.mark.faults
async def test_a_job_goes_on_with_its_clients_trace(tmp_path: Path, patient: None) -> None:
    collector = Collector()
    async with MediaProviders() as providers, raw_upstream(collector) as collecting:
        tables = to_media(providers.url, server={"otlp": collecting.url.removesuffix("/v1")})
        async with gateway(tmp_path, tables) as gate:
            parent = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
            await (await gate.ask(draw(), **parent)).body()
            picture = {"model": "paint/brush", "prompt": "a cat"}
            await (await gate.ask(picture, "/v1/images/generations", **parent)).body()
    assert [(span.trace_id.hex(), span.parent_span_id.hex()) for span in collector.spans] == [(TRACE, SPAN)] * 2
    assert all(members(span.attributes)["trunkline.job.id"].startswith("image_") for span in collector.spans)


@pytest.mark.faults
async def test_a_collector_that_is_away_holds_up_nothing(tmp_path: Path) -> None:
    async with raw_upstream(answer) as upstream:
        tables = to_upstream(upstream.url) | {"server": {"otlp": "http://127.0.0.1:9"}}
        async with asyncio.timeout(60), gateway(tmp_path, tables) as gate:
            assert (await gate.ask(chat(stream=True))).status == 200


def test_without_the_extra_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    tables = {
        "server": {"data_dir": str(tmp_path), "otlp": "http://h:4318"},
        "providers": {"local": {"enabled": False}},
    }
    with pytest.raises(ConfigError, match=r"needs the extra `otel`: pip install 'trunkline\[otel\]'"):
        Application(build(tables, {}, {}, this_build()), {})
