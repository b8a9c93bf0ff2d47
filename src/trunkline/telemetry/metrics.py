"""Prometheus metrics: one module that knows their names (docs/metrics.md lists them)."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from trunkline.calls.meter import Settlement

FIRST_EVENT_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
DURATION_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)


class Metrics:
    """All metrics of one process, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        labels = ("provider", "model")
        self.calls = Counter("trunkline_calls", "Calls by how they ended.", (*labels, "end"), registry=self.registry)
        self.first_event = Histogram(
            "trunkline_first_event_seconds",
            "From the request to the first event of its answer.",
            labels,
            buckets=FIRST_EVENT_BUCKETS_S,
            registry=self.registry,
        )
        self.duration = Histogram(
            "trunkline_call_duration_seconds",
            "From the request to the end of its answer.",
            labels,
            buckets=DURATION_BUCKETS_S,
            registry=self.registry,
        )
        self.tokens = Counter(
            "trunkline_tokens", "Tokens used, ours where estimated.", (*labels, "kind"), registry=self.registry
        )
        self.events = Counter("trunkline_events", "Events given to clients.", labels, registry=self.registry)
        self.repairs = Counter(
            "trunkline_repairs",
            "Departures of upstreams that were repaired.",
            ("provider", "rule"),
            registry=self.registry,
        )
        self.attempts = Counter("trunkline_attempts", "Tries at targets.", ("provider",), registry=self.registry)
        self.open_calls = Gauge("trunkline_open_calls", "Calls in flight.", registry=self.registry)
        self._series: dict[tuple[str, str, str], _Series] = {}

    def settled(self, settlement: Settlement) -> None:
        """Count a call that has ended."""
        target = settlement.target.target if settlement.target else None
        provider, model = (target.provider, target.model) if target else ("", "")
        key = (provider, model, settlement.end_reason)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series(self, *key)
        series.add(settlement)
        for rule, count in settlement.repairs.items():
            self.repairs.labels(provider, rule).inc(count)

    def text(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        return generate_latest(self.registry)


class _Series:
    """The labelled children of one target and end, looked up once: labels() costs more than the counting."""

    def __init__(self, metrics: Metrics, provider: str, model: str, end: str) -> None:
        self._calls = metrics.calls.labels(provider, model, end)
        self._first_event = metrics.first_event.labels(provider, model)
        self._duration = metrics.duration.labels(provider, model)
        self._prompt = metrics.tokens.labels(provider, model, "prompt")
        self._completion = metrics.tokens.labels(provider, model, "completion")
        self._events = metrics.events.labels(provider, model)
        self._attempts = metrics.attempts.labels(provider)

    def add(self, settlement: Settlement) -> None:
        self._calls.inc()
        if settlement.first_event_ms is not None:
            self._first_event.observe(settlement.first_event_ms / 1000)
        self._duration.observe((settlement.ended_ms - settlement.started_ms) / 1000)
        self._prompt.inc(settlement.usage.prompt_tokens)
        self._completion.inc(settlement.usage.completion_tokens)
        self._events.inc(settlement.chunks)
        self._attempts.inc(settlement.attempts)
