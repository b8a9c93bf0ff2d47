"""Answering a client whose call became a job: waiting for its end, or following it (contract sections 7 and 8)."""

import asyncio
from collections.abc import AsyncIterator, Callable

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Finish, Job
from trunkline.core.money import usd
from trunkline.core.ports import Jobs
from trunkline.http.error_response import respond_error
from trunkline.http.event_stream import SHUTDOWN
from trunkline.http.exchange import Exchange
from trunkline.http.followed_stream import FollowedStream
from trunkline.http.live import Live

NO_RETRY = ("x-should-retry", "false")
Told = list[tuple[str, str]]


class JobAnswer:
    """What the endpoints of media share."""

    def __init__(self, live: Live, jobs: Jobs, callback_secret: Callable[[Job], str]) -> None:
        """`callback_secret` is what a receiver of the job's callback checks its signature with."""
        self._live = live
        self._jobs = jobs
        self._callback_secret = callback_secret

    async def wait(self, exchange: Exchange, job: Job, headers: Told) -> Finish | None:
        """Wait for the job's success; None: it did not come, and the client has been told why."""
        wait_s = self._live.settings.unstreamed_wait_s
        headers = [*headers, *self.told(job), NO_RETRY]
        try:
            async with asyncio.timeout(wait_s):
                finish = await self._jobs.finish(job.id)
        except TimeoutError:
            where = f"/v1/videos/{job.id}" if job.kind == "video" else f"/v1/streams/{job.stream_id}"
            message = f"The job {job.id} is not done after {wait_s:g} s, and goes on: ask GET {where}."
            respond_error(exchange, GatewayError("job_still_running", message), headers)
            return None
        except asyncio.CancelledError:
            await self._left(exchange, job)
            if exchange.interrupted:
                respond_error(exchange, GatewayError("shutting_down", SHUTDOWN.message), headers)
            return None
        error = finish.error
        if error is None:
            return finish
        if error.retry_after_s is not None:
            headers.append(("retry-after", f"{error.retry_after_s:g}"))
        failure = GatewayError(error.code, error.message, status=error.status, type=error.type, param=error.param)
        respond_error(exchange, failure, headers)
        return None

    async def follow(
        self, exchange: Exchange, job: Job, events: AsyncIterator[tuple[int, bytes]], keepalive: bytes, headers: Told
    ) -> None:
        """Stream what is told of the job."""
        stream = FollowedStream(exchange, keepalive, self._live.settings.keepalive_s)
        if await stream.run([*headers, *self.told(job)], events) == "cancelled":
            await self._left(exchange, job)

    def told(self, job: Job) -> Told:
        """Say in headers which job it is, and who does it."""
        headers = [
            ("x-trunkline-job-id", job.id),
            ("x-trunkline-stream-id", job.stream_id),
            ("x-trunkline-provider", job.provider),
            ("x-trunkline-model", job.upstream_model),
        ]
        if job.callback_url:
            headers.append(("x-trunkline-callback-secret", self._callback_secret(job)))
        return headers

    async def _left(self, exchange: Exchange, job: Job) -> None:
        """Stop the job of a client that has left, if that is how it wants it."""
        if job.on_disconnect == "cancel" and not exchange.interrupted:
            await self._jobs.cancel(job.id)


def cost_of(job: Job) -> Told:
    """Say in a header what the job cost, in USD; nothing where that is not known."""
    return [] if job.cost_microusd is None else [("x-trunkline-cost", f"{usd(job.cost_microusd):.6f}")]
