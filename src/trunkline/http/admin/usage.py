"""Usage and cost, latency, repairs: series over time (docs/admin-api.md sections 0 and 7)."""

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, get_args

from starlette.requests import Request

from trunkline.core.errors import GatewayError
from trunkline.core.reports import Quantiles, Quantity, Reports, Span, UsageBy, Used
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.reading import number, one_of

BUCKETS_S = {"minute": 60, "hour": 3600, "day": 86_400}
POINTS = 200
MOST_POINTS = 2000
MOST_SERIES = 8
MOST_ROWS = 100
DAY_S = 86_400
SUMMED = ("calls", "failed", "prompt_tokens", "completion_tokens", "images", "video_s", "cost_microusd")


class UsagePages:
    """The endpoints of what was used, how quickly it came, and what was repaired."""

    def __init__(self, reports: Reports) -> None:
        self._reports = reports
        self.endpoints = [
            Endpoint("GET", "/usage", self._usage),
            Endpoint("GET", "/latency", self._latency),
            Endpoint("GET", "/repairs", self._repairs),
        ]

    async def _usage(self, request: Request) -> Any:
        span, by = span_of(request), one_of(request, "by", UsageBy) or "model"
        rows = await self._reports.usage(span, by, most=MOST_SERIES)  # type: ignore[arg-type]  # one of its words
        names: dict[str | None, str] = {None: "other", "": "(no key)" if by == "key" else ""}
        if by == "key":
            refs = await self._reports.key_refs(row.name for row in rows if row.name)
            names |= {key_id: ref.name for key_id, ref in refs.items()}
        series: dict[str | None, list[Used]] = {}
        for row in rows:
            series.setdefault(row.name, []).append(row)
        largest = sorted(series.items(), key=lambda each: (each[0] is None, [-sum_ for sum_ in _weight(each[1])]))
        return {
            "bucket_s": span.bucket_ms // 1000,
            "by": by,
            "at": at_of(span),
            "series": [
                {"id": name or None, "name": names.get(name) or name or "—", **columns(span, used)}
                for name, used in largest
            ],
            "totals": totals(rows) | {"estimated_calls": sum(row.estimated for row in rows)},
        }

    async def _latency(self, request: Request) -> Any:
        span = span_of(request)
        model, provider = request.query_params.get("model", ""), request.query_params.get("provider", "")
        told: dict[str, Any] = {"bucket_s": span.bucket_ms // 1000, "at": at_of(span)}
        for quantity in get_args(Quantity):
            rows = await self._reports.quantiles(span, quantity, model=model, provider=provider)
            told[quantity] = _quantiles(span, rows)
        return told

    async def _repairs(self, request: Request) -> Any:
        span = span_of(request)
        model, provider = request.query_params.get("model", ""), request.query_params.get("provider", "")
        rows = await self._reports.repairs(span, model=model, provider=provider)
        rules: Counter[str] = Counter()
        places: Counter[tuple[str, str]] = Counter()
        counts: Counter[tuple[str, int]] = Counter()
        for row in rows:
            rules[row.rule] += row.count
            places[row.provider, row.rule] += row.count
            counts[row.rule, row.at_ms // 1000] += row.count
        at = at_of(span)
        return {
            "bucket_s": span.bucket_ms // 1000,
            "at": at,
            "series": [
                {"rule": rule, "counts": [counts[rule, instant] for instant in at]} for rule, _ in rules.most_common()
            ],
            "by_provider": [
                {"provider": name, "rule": rule, "count": count}
                for (name, rule), count in places.most_common(MOST_ROWS)
            ],
        }


def span_of(request: Request) -> Span:
    """Read from when to when, and in which buckets. Raises GatewayError `invalid_value`."""
    now_s = time.time_ns() / 1e9
    end_s = number(request, "to")
    end_s = now_s if end_s is None else end_s
    start_s = number(request, "from")
    start_s = end_s - DAY_S if start_s is None else start_s
    if start_s >= end_s:
        raise GatewayError("invalid_value", "`from` must be before `to`.", param="from")
    named = one_of(request, "bucket", BUCKETS_S)
    fitting = (size for size in BUCKETS_S.values() if (end_s - start_s) / size <= POINTS)
    bucket_s = BUCKETS_S[named] if named else next(fitting, DAY_S)
    span = span_until(start_s, end_s, bucket_s)
    if (span.end_ms - span.start_ms) // span.bucket_ms > MOST_POINTS:
        told = f"That is more than {MOST_POINTS} points: take larger buckets or a shorter time."
        raise GatewayError("invalid_value", told, param="bucket" if named else "from")
    return span


def span_until(start_s: float, end_s: float, bucket_s: int) -> Span:
    """Give the buckets that this time is in."""
    start = int(start_s // bucket_s) * bucket_s
    end = -int(-end_s // bucket_s) * bucket_s
    return Span(start * 1000, end * 1000, bucket_s * 1000)


def at_of(span: Span) -> list[int]:
    """Give the starts of all buckets, in Unix seconds."""
    return [ms // 1000 for ms in range(span.start_ms, span.end_ms, span.bucket_ms)]


def columns(span: Span, rows: Sequence[Used]) -> dict[str, list[float]]:
    """Give one column for each quantity, a value for each bucket."""
    by_start = {row.at_ms // 1000: row for row in rows}
    found = [by_start.get(at) or Used() for at in at_of(span)]
    return {name: [_value(row, name) for row in found] for name in SUMMED}


def totals(rows: Sequence[Used]) -> dict[str, float]:
    """Sum all buckets."""
    return {name: sum(_value(row, name) for row in rows) for name in SUMMED}


def _value(row: Used, name: str) -> float:
    return row.video_ms / 1000 if name == "video_s" else int(getattr(row, name))


def _weight(rows: Sequence[Used]) -> tuple[int, int]:
    return sum(row.cost_microusd for row in rows), sum(row.calls for row in rows)


def _quantiles(span: Span, rows: Sequence[Quantiles]) -> Mapping[str, list[float | None]]:
    by_start = {row.at_ms // 1000: row for row in rows}
    found = [by_start.get(at) for at in at_of(span)]
    return {name: [None if row is None else getattr(row, name) for row in found] for name in ("p50", "p95", "p99")}
