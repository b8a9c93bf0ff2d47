"""Tells who asked for it (`callback_url`) that a job has ended: signed as Standard Webhooks say, tried again."""

import asyncio
import base64
import hashlib
import hmac
import logging
import time
from collections.abc import Awaitable, Callable

from trunkline.core.jobs import Job
from trunkline.core.ports import HttpClient, HttpError, HttpRequest
from trunkline.core.state import JobStore, StorageError

LOOK_S = 2.0
ANSWER_S = 20.0
AGAIN_S = (5.0, 30.0, 120.0, 600.0, 3600.0)
"""Pauses between the tries; after the last there is none."""

log = logging.getLogger(__name__)


class Callbacks:
    """Delivers callbacks, of whatever process's jobs: each at least once, to public addresses unless told otherwise."""

    def __init__(
        self,
        jobs: JobStore,
        client: HttpClient,
        body: Callable[[Job], Awaitable[bytes]],
        secret: Callable[[Job], bytes],
        *,
        public_only: bool = True,
    ) -> None:
        """`body` gives the JSON to send; `secret` the key that its receiver knows."""
        self._jobs = jobs
        self._client = client
        self._body = body
        self._secret = secret
        self._public_only = public_only

    async def serve(self) -> None:
        """Deliver until cancelled."""
        while True:
            try:
                await self.deliver()
            except StorageError as error:
                log.warning("callbacks wait for the database: %s", error)
            await asyncio.sleep(LOOK_S)

    async def deliver(self) -> int:
        """Send what is due, each once; gives how many were received (answered with 2xx)."""
        due = await self._jobs.due_callbacks()
        return sum(await asyncio.gather(*map(self._one, due)))

    async def _one(self, job: Job) -> bool:
        try:
            received = await self._send(job)
        except StorageError:
            raise
        except Exception:  # whatever it is, those of other jobs are sent
            log.exception("job %s: its callback cannot be made", job.id)
            received = False
        if received:
            await self._jobs.called_back(job.id, "sent")
        elif job.callback_attempts < len(AGAIN_S):
            await self._jobs.called_back(job.id, "pending", AGAIN_S[job.callback_attempts])
        else:
            log.warning("job %s: its callback was not received in %d tries", job.id, job.callback_attempts + 1)
            await self._jobs.called_back(job.id, "failed")
        return received

    async def _send(self, job: Job) -> bool:
        body, now_s = await self._body(job), time.time_ns() // 1_000_000_000
        headers = (("content-type", "application/json"), *signed(f"msg_{job.id}", now_s, body, self._secret(job)))
        request = HttpRequest("POST", job.callback_url, headers, body, public_only=self._public_only, fresh=True)
        try:
            async with asyncio.timeout(ANSWER_S):
                response = await self._client.open(request)
                await response.aclose()
        except (HttpError, TimeoutError) as error:
            log.info("job %s: its callback failed: %s", job.id, error)
            return False
        return 200 <= response.status < 300


def signed(message_id: str, now_s: int, body: bytes, secret: bytes) -> tuple[tuple[str, str], ...]:
    """Give the headers of Standard Webhooks: id, time, and `v1,` HMAC-SHA-256 over `id.time.body`, in base64."""
    digest = hmac.new(secret, f"{message_id}.{now_s}.".encode() + body, hashlib.sha256).digest()
    return (
        ("webhook-id", message_id),
        ("webhook-timestamp", str(now_s)),
        ("webhook-signature", f"v1,{base64.b64encode(digest).decode()}"),
    )
