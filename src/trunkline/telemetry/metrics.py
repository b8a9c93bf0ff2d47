"""Prometheus metrics: one module that knows their names (docs/metrics.md lists them)."""

import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, cast

from trunkline.calls.admission import Refusal
from trunkline.calls.meter import GAP_BOUNDS_S, Settlement
from trunkline.core.money import LedgerRow, usd
from trunkline.routing.health import Health
from trunkline.telemetry.labels import Targets

if TYPE_CHECKING:  # imported when metrics are first asked for: a server that starts does not need it
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
    from prometheus_client.registry import Collector

FIRST_EVENT_BUCKETS_S = (0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 64, 128)
DURATION_BUCKETS_S = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 900)
NAMES = {
    "trunkline_calls": "Calls by how they ended.",
    "trunkline_refused_calls": "Calls that were not let in, by the error's code.",
    "trunkline_first_event_seconds": "From the request to the first event of its answer.",
    "trunkline_inter_event_seconds": "Between two reads of an answer's events.",
    "trunkline_call_duration_seconds": "From the request to the end of its answer.",
    "trunkline_tokens": "Tokens used, by our own count where the provider gave none.",
    "trunkline_cost_usd": "Dollars, of calls and jobs whose price is known.",
    "trunkline_events": "Events given to clients.",
    "trunkline_attempts": "Tries at targets.",
    "trunkline_failed_attempts": "Tries that failed before an answer began, by what was wrong.",
    "trunkline_repairs": "Departures of upstreams from the output contract, by rule.",
    "trunkline_cached_calls": "Calls that may be answered from the response cache.",
    "trunkline_open_calls": "Calls in flight.",
    "trunkline_open_streams": "Those of them whose answer is streamed.",
    "trunkline_jobs": "Pictures and films asked for, by how their jobs ended.",
    "trunkline_job_duration_seconds": "From the request of a job to its end.",
    "trunkline_open_jobs": "Jobs of this process.",
    "trunkline_upstream_usable": "1: calls go there; 0: it rests after failures.",
    "trunkline_upstream_first_event_seconds": "The usual time to the first event, lately.",
    "trunkline_storage_usable": "1: it answers; 0: it is away.",
    "trunkline_log_lines_dropped": "Lines of the call log that nobody read.",
}
_TARGET = ("provider", "model")


class Metrics:
    """All metrics of one process: counted in plain numbers at the end of each call, written out when asked."""

    def __init__(self) -> None:
        self.open_calls: Callable[[], int] = lambda: 0
        """Set by the composition root, like those below."""
        self.open_streams: Callable[[], int] = lambda: 0
        self.open_jobs: Callable[[], Mapping[str, int]] = dict
        """Jobs of this process by what they do."""
        self.health = Health()
        """Of the targets."""
        self.storage: Callable[[], Mapping[str, bool]] = dict
        """Which databases answer, by name."""
        self.dropped: Callable[[], int] = lambda: 0
        """Lines of the call log that were dropped."""
        self._series: dict[tuple[str, str, str], _Series] = {}
        self._cache: dict[str, int] = defaultdict(int)
        self._refused: dict[tuple[str, str], int] = defaultdict(int)
        self._jobs: dict[tuple[str, str, str, str], _Jobs] = {}
        self._repairs: dict[tuple[str, str], int] = defaultdict(int)
        self._targets = Targets()

    def settled(self, settlement: Settlement, row: LedgerRow) -> None:
        """Count a call that has ended."""
        if settlement.cache:
            self._cache[settlement.cache] += 1
            if settlement.cache == "hit":  # no provider was asked
                return
        series = self._series.get((row.provider, row.upstream_model, row.end_reason)) or self._series_of(row)
        series.calls += 1
        series.prompt += row.prompt_tokens
        series.completion += row.completion_tokens
        series.cached += row.cached_tokens
        series.reasoning += row.reasoning_tokens
        series.events += settlement.chunks
        series.cost += row.cost_microusd or 0
        if row.first_event_ms is not None:
            series.first_event.add(row.first_event_ms / 1000)
        series.duration.add((row.ended_ms - row.started_ms) / 1000)
        if settlement.gaps:
            series.gaps.take(settlement.gaps, settlement.gaps_s)
        for rule, count in settlement.repairs.items():
            self._repairs[row.provider, rule] += count

    def _series_of(self, row: LedgerRow) -> "_Series":
        """Give the series of a target that is new, or one of the many that share one."""
        place = self._targets.place(row.provider, row.upstream_model) if row.provider else ("", "")
        return self._series.setdefault((*place, row.end_reason), _Series())

    def refused(self, refusal: Refusal) -> None:
        """Count a call that was not let in."""
        self._refused[refusal.route, refusal.error] += 1

    def job_ended(self, row: LedgerRow, _traceparent: str) -> None:
        """Count a job that has ended."""
        key = (*self._targets.place(row.provider, row.upstream_model), row.kind, row.end_reason)
        jobs = self._jobs.get(key)
        if jobs is None:
            jobs = self._jobs[key] = _Jobs()
        jobs.duration.add((row.ended_ms - row.started_ms) / 1000)
        jobs.cost += row.cost_microusd or 0

    def text(self) -> bytes:
        """Write all metrics in Prometheus' text format."""
        from prometheus_client import CollectorRegistry, generate_latest  # noqa: PLC0415

        registry = CollectorRegistry()
        registry.register(cast("Collector", self))
        return generate_latest(registry)

    def collect(self) -> "Iterator[Metric]":
        """Give all metrics to the registry."""
        calls = _counter("trunkline_calls", (*_TARGET, "end"))
        tokens = _counter("trunkline_tokens", (*_TARGET, "kind"))
        cost = _counter("trunkline_cost_usd", _TARGET)
        events = _counter("trunkline_events", _TARGET)
        repairs = _counter("trunkline_repairs", ("provider", "rule"))
        first = _histogram("trunkline_first_event_seconds")
        gaps = _histogram("trunkline_inter_event_seconds")
        duration = _histogram("trunkline_call_duration_seconds")
        costs: dict[tuple[str, str], int] = {}
        for place, series in self._by_target().items():
            tokens.add_metric([*place, "prompt"], series.prompt)
            tokens.add_metric([*place, "completion"], series.completion)
            tokens.add_metric([*place, "cached"], series.cached)
            tokens.add_metric([*place, "reasoning"], series.reasoning)
            costs[place] = series.cost
            events.add_metric(list(place), series.events)
            gaps.add_metric(list(place), series.gaps.buckets(), series.gaps.sum)
            first.add_metric(list(place), series.first_event.buckets(), series.first_event.sum)
            duration.add_metric(list(place), series.duration.buckets(), series.duration.sum)
        for key, series in self._series.items():
            calls.add_metric(list(key), series.calls)
        for repair, count in self._repairs.items():
            repairs.add_metric(list(repair), count)
        for (provider, model, _, _), jobs in self._jobs.items():
            costs[provider, model] = costs.get((provider, model), 0) + jobs.cost
        for place, microusd in costs.items():
            cost.add_metric(list(place), usd(microusd))
        yield from (calls, tokens, cost, events, repairs, first, gaps, duration)
        cached = _counter("trunkline_cached_calls", ("cache",))
        for use, count in self._cache.items():
            cached.add_metric([use], count)
        refused = _counter("trunkline_refused_calls", ("route", "error"))
        for place, count in self._refused.items():
            refused.add_metric(list(place), count)
        yield from (cached, refused)
        yield from self._of_jobs()
        yield from self._of_attempts()
        yield from self._of_now()

    def _of_jobs(self) -> "Iterator[Metric]":
        ended = _counter("trunkline_jobs", (*_TARGET, "kind", "end"))
        duration = _histogram("trunkline_job_duration_seconds", (*_TARGET, "kind", "end"))
        for key, jobs in self._jobs.items():
            buckets = jobs.duration.buckets()
            ended.add_metric(list(key), buckets[-1][1])
            duration.add_metric(list(key), buckets, jobs.duration.sum)
        yield from (ended, duration)

    def _of_attempts(self) -> "Iterator[Metric]":
        attempts = _counter("trunkline_attempts", ("provider",))
        for provider, count in self.health.attempts.items():
            attempts.add_metric([provider], count)
        failed = _counter("trunkline_failed_attempts", ("provider", "why"))
        for (provider, why), count in self.health.failures.items():
            failed.add_metric([provider, why], count)
        yield from (attempts, failed)

    def _of_now(self) -> "Iterator[Metric]":
        """Give what is so at this moment."""
        open_calls = _gauge("trunkline_open_calls", ())
        open_calls.add_metric([], self.open_calls())
        open_streams = _gauge("trunkline_open_streams", ())
        open_streams.add_metric([], self.open_streams())
        open_jobs = _gauge("trunkline_open_jobs", ("state",))
        for state, number in self.open_jobs().items():
            open_jobs.add_metric([state], number)
        usable = _gauge("trunkline_upstream_usable", (*_TARGET, "credential"))
        speed = _gauge("trunkline_upstream_first_event_seconds", (*_TARGET, "credential"))
        for key, (well, first_event_s) in self.health.snapshot(time.monotonic()).items():
            usable.add_metric(list(key), int(well))
            if first_event_s is not None:
                speed.add_metric(list(key), first_event_s)
        storage = _gauge("trunkline_storage_usable", ("part",))
        for part, answers in self.storage().items():
            storage.add_metric([part], int(answers))
        dropped = _counter("trunkline_log_lines_dropped", ())
        dropped.add_metric([], self.dropped())
        yield from (open_calls, open_streams, open_jobs, usable, speed, storage, dropped)

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

    def take(self, counts: Sequence[int], total: float) -> None:
        self.counts = [mine + theirs for mine, theirs in zip(self.counts, counts, strict=True)]
        self.sum += total

    def merge(self, other: "_Buckets") -> None:
        self.take(other.counts, other.sum)

    def buckets(self) -> list[tuple[str, float]]:
        names = [*(str(float(bound)) for bound in self.bounds), "+Inf"]
        return list(zip(names, accumulate(self.counts), strict=True))


class _Series:
    """What was counted of one target and one kind of end."""

    __slots__ = (
        "cached", "calls", "completion", "cost", "duration", "events", "first_event", "gaps", "prompt", "reasoning",
    )  # fmt: skip

    def __init__(self) -> None:
        self.calls = self.prompt = self.completion = self.cached = self.reasoning = self.events = self.cost = 0
        self.gaps = _Buckets(GAP_BOUNDS_S)
        self.first_event = _Buckets(FIRST_EVENT_BUCKETS_S)
        self.duration = _Buckets(DURATION_BUCKETS_S)

    def merge(self, other: "_Series") -> None:
        self.calls += other.calls
        self.prompt += other.prompt
        self.completion += other.completion
        self.cached += other.cached
        self.reasoning += other.reasoning
        self.events += other.events
        self.first_event.merge(other.first_event)
        self.duration.merge(other.duration)
        self.gaps.merge(other.gaps)
        self.cost += other.cost


class _Jobs:
    """What was counted of one target's jobs that ended alike."""

    __slots__ = ("cost", "duration")

    def __init__(self) -> None:
        self.duration = _Buckets(DURATION_BUCKETS_S)
        self.cost = 0


def _counter(name: str, labels: Sequence[str]) -> "CounterMetricFamily":
    from prometheus_client.core import CounterMetricFamily  # noqa: PLC0415

    return CounterMetricFamily(name, NAMES[name], labels=labels)


def _gauge(name: str, labels: Sequence[str]) -> "GaugeMetricFamily":
    from prometheus_client.core import GaugeMetricFamily  # noqa: PLC0415

    return GaugeMetricFamily(name, NAMES[name], labels=labels)


def _histogram(name: str, labels: Sequence[str] = _TARGET) -> "HistogramMetricFamily":
    from prometheus_client.core import HistogramMetricFamily  # noqa: PLC0415

    return HistogramMetricFamily(name, NAMES[name], labels=labels)
