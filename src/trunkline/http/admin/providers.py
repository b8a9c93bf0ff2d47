"""Providers: which are on, how they do, what they offer (docs/admin-api.md section 8)."""

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct
from starlette.requests import Request

from trunkline.core.provider import Provider
from trunkline.core.reports import ProviderCalls, Reports
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.reading import listed
from trunkline.routing.health import Health

HOUR_MS = 3_600_000
WELL = 0.95
"""A provider with a smaller share of successes in the last hour is degraded."""
STATES = ("up", "degraded", "down", "unknown")


class Known(Struct, frozen=True):
    """The providers of the configuration: those that are on, and why the others are not, by name."""

    on: Mapping[str, Provider]
    off: Mapping[str, str]


class ProviderPages:
    """The endpoint of providers. What rests is told by the process that was asked; figures are of all replicas."""

    def __init__(self, known: Callable[[], Known], health: Health, reports: Reports) -> None:
        self._known = known
        self._health = health
        self._reports = reports
        self.endpoints = [Endpoint("GET", "/providers", self._list)]

    async def counted(self) -> dict[str, int]:
        """Count providers that are on by how they do."""
        calls = await self._reports.providers(_hour_ago())
        states = Counter(self._state(name, calls.get(name, ProviderCalls())) for name in self._known().on)
        return {state: states[state] for state in STATES}

    async def _list(self, _request: Request) -> Any:
        known = self._known()
        calls = await self._reports.providers(_hour_ago())
        on = [self._shown(name, known.on[name], calls.get(name, ProviderCalls())) for name in sorted(known.on)]
        return listed([*on, *(_off(name, known.off[name]) for name in sorted(known.off))])

    def _shown(self, name: str, provider: Provider, calls: ProviderCalls) -> dict[str, Any]:
        error = None
        if calls.last_error_code:
            error = {"code": calls.last_error_code, "at": calls.last_error_ms / 1000}
        sides = {"chat": provider.chat, "image": provider.image, "video": provider.video}
        return {
            "name": name,
            "enabled": True,
            "why": None,
            "docs": provider.docs,
            "base_url": provider.base_url,
            **{side: part.dialect if part else None for side, part in sides.items()},
            "credentials": [self._credential(name, secret.name) for secret in provider.api_key],
            "health": {
                "state": self._state(name, calls),
                "success_rate": 1 - calls.failed / calls.calls if calls.calls else None,
                "first_event_ms": calls.first_event_ms,
                "last_error": error,
            },
            "calls_1h": calls.calls,
            "failed_1h": calls.failed,
            "models": [{"id": f"{name}/{model}", "kind": facts.kind} for model, facts in provider.models.items()],
        }

    def _credential(self, provider: str, credential: str) -> dict[str, Any]:
        resting = self._health.resting(time.monotonic())
        rests = [rest for key, rest in resting.items() if (key[0], key[2]) == (provider, credential)]
        state = "ok" if not rests else "refused" if any(refused for _, refused in rests) else "cooling"
        until_at = time.time_ns() / 1e9 + max(left_s for left_s, _ in rests) if rests else None
        shown = "literal" if credential.startswith("literal:") else credential
        return {"name": shown, "set": True, "state": state, "until_at": until_at}

    def _state(self, name: str, calls: ProviderCalls) -> str:
        usable = [fit for key, (fit, _) in self._health.snapshot(time.monotonic()).items() if key[0] == name]
        if usable and not any(usable):
            return "down"
        if not usable and not calls.calls:
            return "unknown"
        return "up" if all(usable) and calls.failed <= (1 - WELL) * calls.calls else "degraded"


def _off(name: str, why: str) -> dict[str, Any]:
    return {
        "name": name,
        "enabled": False,
        "why": why,
        "docs": "",
        "base_url": "",
        "chat": None,
        "image": None,
        "video": None,
        "credentials": [],
        "health": {"state": "unknown", "success_rate": None, "first_event_ms": None, "last_error": None},
        "calls_1h": 0,
        "failed_1h": 0,
        "models": [],
    }


def _hour_ago() -> int:
    return time.time_ns() // 1_000_000 - HOUR_MS
