"""Jobs: how far they are, what came of them, stopping them (docs/admin-api.md section 4)."""

from collections.abc import Sequence
from typing import Any, get_args

import msgspec
from msgspec import Struct
from starlette.requests import Request

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import FINISHED, UNFINISHED, Job, JobState
from trunkline.core.ports import Jobs
from trunkline.core.reports import KeyRef, Reports
from trunkline.core.state import JobStore, MediaIndex
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.media import KINDS, MediaPages, shown_key
from trunkline.http.admin.reading import after_of, limit_of, listed, one_of

STATES = (*get_args(JobState), "active", "ended")


class _Asked(Struct):
    """The part of a job's request that people read."""

    prompt: str = ""


class JobPages:
    """The endpoints of jobs."""

    def __init__(self, engine: Jobs, store: JobStore, index: MediaIndex, media: MediaPages, reports: Reports) -> None:
        self._engine = engine
        self._store = store
        self._index = index
        self._media = media
        self._reports = reports
        self.endpoints = [
            Endpoint("GET", "/jobs", self._list),
            Endpoint("GET", "/jobs/{id}", self._get),
            Endpoint("POST", "/jobs/{id}/cancel", self._cancel),
        ]

    async def _list(self, request: Request) -> Any:
        state, limit = one_of(request, "state", STATES), limit_of(request)
        sets = {None: (), "active": tuple(UNFINISHED), "ended": tuple(FINISHED)}
        jobs = await self._store.page(
            key_id=request.query_params.get("key") or None,
            kind=one_of(request, "kind", KINDS),
            states=sets.get(state, (state or "",)),
            after=after_of(request),
            limit=limit,
        )
        return listed(await self._shown(request, jobs), limit)

    async def _get(self, request: Request) -> Any:
        job = _found(await self._engine.get(request.path_params["id"]), request)
        return (await self._shown(request, [job]))[0] | {"history": _history(job)}

    async def _cancel(self, request: Request) -> Any:
        job = _found(await self._engine.cancel(request.path_params["id"]), request)
        return (await self._shown(request, [job]))[0]

    async def _shown(self, request: Request, jobs: Sequence[Job]) -> list[dict[str, Any]]:
        keys = await self._reports.key_refs(job.key_id for job in jobs if job.key_id)
        expected: dict[tuple[str, str], float | None] = {}
        shown = []
        for job in jobs:
            place = job.provider, job.upstream_model
            if job.state in UNFINISHED and place not in expected:
                expected[place] = await self._store.usual_s(*place) or None
            records = [record for record in await self._index.of_job(job.id) if record.kind in KINDS]
            shown.append(
                _job(job, keys.get(job.key_id))
                | {
                    "expected_s": expected.get(place) if job.state in UNFINISHED else None,
                    "media": await self._media.shown(request, records),
                }
            )
        return shown


def _job(job: Job, key: KeyRef | None) -> dict[str, Any]:
    kept = key is not None and key.record
    error = {"code": job.error_code, "message": job.error_message} if job.error_code else None
    return {
        "id": job.id,
        "kind": job.kind,
        "state": job.state,
        "model": job.model,
        "provider": job.provider,
        "upstream_model": job.upstream_model,
        "upstream_id": job.upstream_task_id or None,
        "key": shown_key(key),
        "stream_id": job.stream_id or None,
        "percent": job.progress,
        "prompt": msgspec.json.decode(job.request, type=_Asked).prompt if kept else None,
        "created_at": job.created_ms / 1000,
        "started_at": _at(job.submitting_ms),
        "finished_at": _at(job.finished_ms),
        "cost_microusd": job.cost_microusd,
        "error": error,
    }


def _history(job: Job) -> list[dict[str, Any]]:
    steps = [
        (job.created_ms, "queued", ""),
        (job.submitting_ms, "submitting", ""),
        (job.running_ms, "running", job.upstream_task_id),
        (job.storing_ms, "storing", ""),
        (job.finished_ms, job.state, job.error_message),
    ]
    return [{"at": at / 1000, "state": state, "text": text} for at, state, text in steps if at is not None]


def _at(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _found(job: Job | None, request: Request) -> Job:
    if job is None:
        raise GatewayError("not_found", f"There is no job {request.path_params['id']!r}.")
    return job
