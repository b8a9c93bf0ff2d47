"""The first page: what runs, what today has cost (docs/admin-api.md section 2)."""

import time
from typing import Any

from msgspec.structs import asdict
from starlette.requests import Request

from trunkline import __version__
from trunkline.calls.open_calls import OpenCalls
from trunkline.core.money import DAY_MS, day_of
from trunkline.core.reports import Reports, Span
from trunkline.core.state import JobStore, MediaIndex
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.providers import ProviderPages
from trunkline.http.admin.usage import at_of, columns, span_until, totals

HOUR_S = 3600


class OverviewPage:
    """The endpoint of the overview."""

    def __init__(
        self, calls: OpenCalls, store: JobStore, index: MediaIndex, reports: Reports, providers: ProviderPages
    ) -> None:
        self._calls = calls
        self._store = store
        self._index = index
        self._reports = reports
        self._providers = providers
        self.endpoints = [Endpoint("GET", "/overview", self._show)]

    async def _show(self, _request: Request) -> Any:
        now_ms = time.time_ns() // 1_000_000
        replicas = await self._calls.everywhere()
        jobs = await self._store.count()
        midnight = now_ms // DAY_MS * DAY_MS
        today = await self._reports.used(Span(midnight, midnight + DAY_MS, DAY_MS))
        hours = span_until(now_ms / 1000 - 23 * HOUR_S, now_ms / 1000, HOUR_S)
        last = columns(hours, await self._reports.used(hours))
        count, size = await self._index.totals()
        return {
            "version": __version__,
            "uptime_s": round(time.monotonic() - self._calls.begun_s, 1),
            "replicas": [
                {"id": each.name, "started_at": each.started_ms / 1000, "calls": each.count} for each in replicas
            ],
            "calls_in_flight": sum(each.count for each in replicas) + sum(jobs.values()),
            "jobs": jobs,
            "today": totals(today),
            "media": {"count": count, "bytes": size, "max_bytes": None},
            "keys": asdict(await self._reports.key_counts(day_of(now_ms))),
            "providers": await self._providers.counted(),
            "last_24h": {
                "at": at_of(hours),
                **{name: last[name] for name in ("calls", "failed", "cost_microusd")},
            },
        }
