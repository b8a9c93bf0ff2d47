"""Prometheus metrics: one module that knows their names (docs/metrics.md lists them)."""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from trunkline.calls.meter import Settlement

FIRST_EVENT_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
DURATION_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
NAMES = {
    "trunkline_calls": "Calls by how they ended.",
    "trunkline_first_event_seconds": "From the request to the first event of its answer.",
    "trunkline_call_duration_seconds": "From the request to the end of its answer.",
    "trunkline_tokens": "Tokens used, by our own count where the provider gave none.",
    "trunkline_events": "Events given to clients.",
    "trunkline_attempts": "Tries at targets.",
    "trunkline_repairs": "Departures of upstreams from the output contract, by rule.",
    "trunkline_open_calls": "Calls in flight.",
}
_TARGET = ("provider", "model")


class Metrics(Collector):
    """All metrics of one process: counted in plain numbers at the end of each call, written out when asked."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(self)
        self.open_calls: Callable[[], int] = lambda: 0
        """Set by the composition root."""
        self._series: dict[tuple[str, str, str], _Series] = {}
        self._repairs: dict[tuple[str, str], int] = {}

    def settled(self, settlement: Settlement) -> None:
        """Count a call that has ended."""
        target = settlement.target.target if settlement.target else None
        provider, model = (target.provider, target.model) if target else ("", "")
        key = (provider, model, settlement.end_reason)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = _Series()
        series.add(settlement)
        for rule, count in settlement.repairs.items():
            self._repairs[provider, rule] = self._repairs.get((provider, rule), 0) + count

    def text(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        return generate_latest(self.registry)

    def collect(self) -> Iterator[Metric]:
        """Give all metrics to the registry."""
        calls = _counter("trunkline_calls", (*_TARGET, "end"))
        tokens = _counter("trunkline_tokens", (*_TARGET, "kind"))
        events = _counter("trunkline_events", _TARGET)
        attempts = _counter("trunkline_attempts", ("provider",))
        repairs = _counter("trunkline_repairs", ("provider", "rule"))
        first = _histogram("trunkline_first_event_seconds")
        duration = _histogram("trunkline_call_duration_seconds")
        tried: dict[str, int] = {}
        for place, series in self._by_target().items():
            tokens.add_metric([*place, "prompt"], series.prompt)
            tokens.add_metric([*place, "completion"], series.completion)
            events.add_metric(list(place), series.events)
            first.add_metric(list(place), series.first_event.buckets(), series.first_event.sum)
            duration.add_metric(list(place), series.duration.buckets(), series.duration.sum)
            tried[place[0]] = tried.get(place[0], 0) + series.attempts
        for key, series in self._series.items():
            calls.add_metric(list(key), series.calls)
        for provider, count in tried.items():
            attempts.add_metric([provider], count)
        for repair, count in self._repairs.items():
            repairs.add_metric(list(repair), count)
        yield from (calls, tokens, events, attempts, repairs, first, duration)
        yield GaugeMetricFamily("trunkline_open_calls", NAMES["trunkline_open_calls"], self.open_calls())

    def _by_target(self) -> "dict[tuple[str, str], _Series]":
        summed: dict[tuple[str, str], _Series] = {}
        for (provider, model, _), series in self._series.items():
            summed.setdefault((provider, model), _Series()).merge(series)
        return summed


class _Buckets:
    """A histogram in plain numbers."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    def merge(self, other: "_Buckets") -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True)]
        self.sum += other.sum

    def buckets(self) -> list[tuple[str, float]]:
        names = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class _Series:
    """What was counted of one target and one kind of end."""

    __slots__ = ("attempts", "calls", "completion", "duration", "events", "first_event", "prompt")

    def __init__(self) -> None:
        self.calls = self.prompt = self.completion = self.events = self.attempts = 0
        self.first_event = _Buckets(FIRST_EVENT_BUCKETS_S)
        self.duration = _Buckets(DURATION_BUCKETS_S)

    def add(self, settlement: Settlement) -> None:
        self.calls += 1
        self.prompt += settlement.usage.prompt_tokens
        self.completion += settlement.usage.completion_tokens
        self.events += settlement.chunks
        self.attempts += settlement.attempts
        if settlement.first_event_ms is not None:
            self.first_event.add(settlement.first_event_ms / 1000)
        self.duration.add((settlement.ended_ms - settlement.started_ms) / 1000)

    def merge(self, other: "_Series") -> None:
        self.calls += other.calls
        self.prompt += other.prompt
        self.completion += other.completion
        self.events += other.events
        self.attempts += other.attempts
        self.first_event.merge(other.first_event)
        self.duration.merge(other.duration)


def _counter(name: str, labels: Sequence[str]) -> CounterMetricFamily:
    return CounterMetricFamily(name, NAMES[name], labels=labels)


def _histogram(name: str) -> HistogramMetricFamily:
    return HistogramMetricFamily(name, NAMES[name], labels=_TARGET)
