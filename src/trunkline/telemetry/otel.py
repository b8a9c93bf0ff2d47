"""OpenTelemetry: a span and GenAI metrics of every call and job, over OTLP (the extra `otel`, imported when it is on).

Names are those of the semantic conventions for generative AI; what they have no name for is `trunkline.*`.
"""

from collections.abc import Mapping
from typing import Any

from trunkline import __version__
from trunkline.calls.meter import Settlement
from trunkline.core.money import LedgerRow, usd
from trunkline.telemetry.labels import Targets

EXPORT_S = 3.0
"""How long a collector may take; what it does not take is dropped."""
METRICS_EVERY_MS = 15_000
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
OPERATIONS = {"text": "chat", "embedding": "embeddings"}


class OpenTelemetry:
    """Tells a collector of what has ended; threads of the library's own send it. Raises ImportError without the extra.

    `endpoint` is the collector's, without a path; further `OTEL_…` variables of the environment are the library's.
    """

    def __init__(self, endpoint: str, environ: Mapping[str, str], replica: str) -> None:
        from opentelemetry import trace  # noqa: PLC0415 - an extra, imported when it is on
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter  # noqa: PLC0415
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
        from opentelemetry.sdk.metrics import MeterProvider  # noqa: PLC0415
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader  # noqa: PLC0415
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
        from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator  # noqa: PLC0415

        self._targets = Targets()
        name = {} if environ.get("OTEL_SERVICE_NAME") else {"service.name": "trunkline"}
        resource = Resource.create({**name, "service.version": __version__, "service.instance.id": replica})
        base = endpoint.rstrip("/")
        self._spans = TracerProvider(resource=resource)
        self._spans.add_span_processor(
            BatchSpanProcessor(OTLPSpanExporter(endpoint=f"{base}/v1/traces", timeout=EXPORT_S))
        )
        reader = PeriodicExportingMetricReader(
            OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=EXPORT_S),
            export_interval_millis=METRICS_EVERY_MS,
        )
        self._metrics = MeterProvider(resource=resource, metric_readers=[reader])
        self._tracer = self._spans.get_tracer("trunkline", __version__)
        self._context = TraceContextTextMapPropagator().extract
        self._kind = trace.SpanKind.CLIENT
        self._failed = trace.Status(trace.StatusCode.ERROR)
        meter = self._metrics.get_meter("trunkline", __version__)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage", "{token}", "Tokens used.", explicit_bucket_boundaries_advisory=TOKENS
        )
        self._duration = meter.create_histogram(
            "gen_ai.client.operation.duration", "s", "Duration.", explicit_bucket_boundaries_advisory=SECONDS
        )
        self._first = meter.create_histogram(
            "gen_ai.client.operation.time_to_first_chunk",
            "s",
            "From the request to the first chunk of a streamed answer.",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self._cost = meter.create_counter("trunkline.cost", "{USD}", "Dollars, of calls whose price is known.")

    def settled(self, settlement: Settlement, row: LedgerRow) -> None:
        """Tell of a call that has ended, as part of its client's trace."""
        self._tell(row, settlement.caller.traceparent)

    def job_ended(self, row: LedgerRow, traceparent: str) -> None:
        """Tell of a job that has ended, as part of its client's trace."""
        self._tell(row, traceparent)

    def close(self) -> None:
        """Send what is left, for a moment; waits."""
        self._spans.shutdown()
        self._metrics.shutdown(timeout_millis=EXPORT_S * 1000)

    def _tell(self, row: LedgerRow, traceparent: str) -> None:
        provider, model = self._targets.place(row.provider, row.upstream_model or row.model)
        common = {
            "gen_ai.operation.name": OPERATIONS.get(row.kind, "generate_content"),
            "gen_ai.provider.name": provider or "none",
            "gen_ai.request.model": model,
        }
        asked = {"gen_ai.request.model": row.upstream_model or row.model}
        context = self._context({"traceparent": traceparent}) if traceparent else None
        span = self._tracer.start_span(
            f"{common['gen_ai.operation.name']} {row.upstream_model or row.model}",
            context,
            self._kind,
            {**common, **asked, **_details(row)},
            start_time=row.started_ms * 1_000_000,
        )
        if row.end_reason != "completed":
            span.set_status(self._failed)
        if row.first_event_ms is not None:
            span.add_event("trunkline.first_event", timestamp=(row.started_ms + row.first_event_ms) * 1_000_000)
        span.end(row.ended_ms * 1_000_000)
        if row.prompt_tokens:
            self._tokens.record(row.prompt_tokens, {**common, "gen_ai.token.type": "input"})
        if row.completion_tokens:
            self._tokens.record(row.completion_tokens, {**common, "gen_ai.token.type": "output"})
        error = {"error.type": row.error_code or row.end_reason} if row.end_reason != "completed" else {}
        self._duration.record((row.ended_ms - row.started_ms) / 1000, {**common, **error})
        if row.streamed and row.first_event_ms is not None:
            self._first.record(row.first_event_ms / 1000, common)
        if row.cost_microusd:
            self._cost.add(usd(row.cost_microusd), common)


def _details(row: LedgerRow) -> dict[str, Any]:
    """Give what a span says beside that; no prompt, no answer, no key."""
    said: dict[str, Any] = {
        "gen_ai.usage.input_tokens": row.prompt_tokens,
        "gen_ai.usage.output_tokens": row.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": row.cached_tokens,
        "gen_ai.output.type": row.kind if row.kind in ("image", "text") else "",
        "gen_ai.request.stream": row.streamed,
        "http.response.status_code": row.status,
        "trunkline.model": row.model,
        "trunkline.call.id": row.request_id,
        "trunkline.job.id": row.job_id,
        "trunkline.key.id": row.key_id,
        "trunkline.group.id": row.group_id,
        "trunkline.end": row.end_reason,
        "trunkline.attempts": row.attempts,
        "trunkline.estimated": row.estimated,
        "trunkline.cache_hit": row.cache_hit,
        "error.type": row.error_code,
    }
    if row.cost_microusd is not None:
        said["trunkline.cost_usd"] = usd(row.cost_microusd)
    return {name: value for name, value in said.items() if value != ""}
