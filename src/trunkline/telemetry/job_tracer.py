"""Listens to what providers send to jobs that are to be traced, exchange by exchange: submit, polls, downloads."""

import time
from collections.abc import Callable, Mapping

from trunkline.calls.media_answer import telling_of
from trunkline.calls.traces import Exchange, Trace, Traces
from trunkline.core.jobs import Job
from trunkline.core.ports import HttpClient, HttpError, HttpRequest, HttpResponse
from trunkline.core.secret import SHORT_CHARS
from trunkline.telemetry.recorder import PRIVATE_HEADER, RecordedResponse, exchange_of, shown, shown_headers

PART_BYTES = 16 * 1024
"""What is kept of one answer; of pictures and films: nothing."""
MOST_BYTES = 512 * 1024
MOST = 200
"""Exchanges of one job; beyond that, those after the first few are left out."""
FIRST = 10
BINARY = ("image/", "video/", "audio/", "application/octet-stream")


class JobTracer:
    """Keeps a trace of each job whose client asked for one."""

    def __init__(self, kept: Traces) -> None:
        self._kept = kept

    def listener(self, job: Job) -> Callable[[HttpClient], HttpClient] | None:
        """Give what makes a client that is listened to for this job; None: it is not to be traced."""
        if not telling_of(job).trace:
            return None
        listening = _JobTrace(self._kept, job)
        return lambda client: _Heard(client, listening)


class _JobTrace:
    """What is known of one job so far."""

    def __init__(self, kept: Traces, job: Job) -> None:
        self._kept = kept
        self._job = job
        self._trace: Trace | None = None

    def now_s(self) -> float:
        """Say how long ago the job began."""
        return (time.time_ns() // 1_000_000 - self._job.created_ms) / 1000

    async def add(self, exchange: Exchange) -> None:
        job = self._job
        if self._trace is None:
            former = await self._kept.get(job.id)  # of this job's life in a process that died
            self._trace = self._trace or former
        trace = self._trace = self._trace or Trace(
            request_id=job.request_id,
            model=job.model,
            provider=job.provider,
            upstream_model=job.upstream_model,
            started_at=job.created_ms / 1000,
            exchanges=[],
            kind=job.kind,
            job_id=job.id,
        )
        trace.exchanges.append(exchange)
        while len(trace.exchanges) > MOST or sum(len(one.data) for one in trace.exchanges) > MOST_BYTES:
            del trace.exchanges[FIRST]
            trace.left_out += 1
        await self._kept.keep(trace)


class _Heard:
    """Implements `core.ports.HttpClient` around another."""

    def __init__(self, client: HttpClient, trace: _JobTrace) -> None:
        self._client = client
        self._trace = trace

    async def open(self, request: HttpRequest) -> HttpResponse:
        asked_s, sent_at = self._trace.now_s(), time.monotonic()
        secrets = _secrets(request)
        what = shown(f"{request.method} {request.url}", secrets)
        try:
            response = await self._client.open(request)
        except HttpError as error:
            took_s = time.monotonic() - sent_at
            told = shown(str(error), secrets)
            await self._trace.add(Exchange(request=what, asked_s=asked_s, took_s=took_s, ended="broken", error=told))
            raise
        keeper = _Keeper(self._trace, what, asked_s, sent_at, response)
        facts = {"status": str(response.status), **shown_headers(response, secrets)}
        return RecordedResponse(response, keeper, what, facts, secrets, sent_at)

    async def aclose(self) -> None:
        """Not ours to close."""


class _Keeper:
    """Takes one answer; implements `telemetry.recorder.Keeper`."""

    def __init__(self, trace: _JobTrace, request: str, asked_s: float, sent_at: float, response: HttpResponse) -> None:
        self.most_bytes = 0 if response.headers.get("content-type", "").lower().startswith(BINARY) else PART_BYTES
        self._trace = trace
        self._request = request
        self._asked_s = asked_s
        self._sent_at = sent_at

    async def keep(self, name: str, facts: Mapping[str, str], reads: list[tuple[float, bytes]]) -> None:  # noqa: ARG002 - the port's
        """Add it to the job's trace."""
        took_s = time.monotonic() - self._sent_at
        await self._trace.add(exchange_of(facts, reads, request=self._request, asked_s=self._asked_s, took_s=took_s))


def _secrets(request: HttpRequest) -> list[bytes]:
    """Give the secrets that a request carries: they may come back in its answer."""
    said = [value.rpartition(" ")[2] for name, value in request.headers if PRIVATE_HEADER.search(name)]
    return [secret.encode() for secret in said if len(secret) >= SHORT_CHARS]
