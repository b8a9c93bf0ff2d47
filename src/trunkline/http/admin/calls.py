"""Calls in flight, over all replicas, and ending them (docs/admin-api.md section 3)."""

from typing import Any

from starlette.requests import Request

from trunkline.calls.open_calls import OpenCall, OpenCalls
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import UNFINISHED, Job
from trunkline.core.ports import Jobs
from trunkline.core.reports import KeyRef, Reports
from trunkline.core.state import JobStore
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.media import shown_key
from trunkline.http.admin.reading import MOST, listed


class CallPages:
    """The endpoints of calls. A job that runs is shown as the call that began it."""

    def __init__(self, calls: OpenCalls, engine: Jobs, store: JobStore, reports: Reports) -> None:
        self._calls = calls
        self._engine = engine
        self._store = store
        self._reports = reports
        self.endpoints = [
            Endpoint("GET", "/calls", self._list),
            Endpoint("DELETE", "/calls/{id:path}", self._end, 202),
        ]

    async def _list(self, _request: Request) -> Any:
        jobs = await self._store.page(states=tuple(UNFINISHED), limit=MOST)
        keys = await self._reports.key_refs(job.key_id for job in jobs if job.key_id)
        shown = [_job(job, keys.get(job.key_id)) for job in jobs]
        for replica in await self._calls.everywhere():
            shown += [_call(replica.name, call) for call in replica.calls]
        return listed(sorted(shown, key=lambda call: call["started_at"], reverse=True))

    async def _end(self, request: Request) -> Any:
        name = request.path_params["id"]
        ended = await self._calls.end(name)
        for job in await self._store.page(states=tuple(UNFINISHED), limit=MOST):
            if name in (job.id, job.request_id):
                await self._engine.cancel(job.id)
                ended = True
        if not ended:
            raise GatewayError("not_found", f"There is no call {name!r} in flight.")
        return {"id": name, "cancelled": True}


def _call(replica: str, call: OpenCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "call_id": call.call_id or call.id,
        "replica": replica,
        "route": call.route,
        "key": shown_key(KeyRef(call.key_id, call.key_name) if call.key_id else None),
        "model": call.model,
        "kind": "text",
        "provider": call.provider,
        "upstream_model": call.upstream_model,
        "state": "waiting" if call.first_event_ms is None else "streaming",
        "started_at": call.started_ms / 1000,
        "first_event_ms": call.first_event_ms,
        "events": call.events,
        "completion_tokens": call.completion_tokens,
        "attempts": call.attempts,
        "stream_id": call.stream_id or None,
        "job_id": None,
    }


def _job(job: Job, key: KeyRef | None) -> dict[str, Any]:
    return {
        "id": job.request_id,
        "call_id": job.id,
        "replica": job.owner.partition("#")[0],
        "route": job.route,
        "key": shown_key(key),
        "model": job.model,
        "kind": job.kind,
        "provider": job.provider or None,
        "upstream_model": job.upstream_model or None,
        "state": "waiting" if job.progress is None else "streaming",
        "started_at": job.created_ms / 1000,
        "first_event_ms": None,
        "events": 0,
        "completion_tokens": 0,
        "attempts": 1,
        "stream_id": job.stream_id or None,
        "job_id": job.id,
    }
