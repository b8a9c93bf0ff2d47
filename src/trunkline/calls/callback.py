"""What is sent to a `callback_url` when a job has ended, and the secret that its receiver checks the signature with."""

import base64
import hmac
from datetime import UTC, datetime

import msgspec

from trunkline.calls.media_answer import ChatAnswers
from trunkline.core.jobs import Finish, Job
from trunkline.core.ports import Jobs

PREFIX = "whsec_"
"""As Standard Webhooks write secrets."""


class CallbackNews:
    """Writes callbacks. Each key has a secret of its own, made of the server's."""

    def __init__(self, secret: bytes, jobs: Jobs, answers: ChatAnswers) -> None:
        self._secret = hmac.digest(secret, b"callbacks", "sha256")
        self._jobs = jobs
        self._answers = answers

    def secret(self, job: Job) -> bytes:
        """Give the key of the signature."""
        return hmac.digest(self._secret, job.key_id.encode(), "sha256")

    def shown_secret(self, job: Job) -> str:
        """Give it as its receiver is told."""
        return PREFIX + base64.b64encode(self.secret(job)).decode()

    async def body(self, job: Job) -> bytes:
        """Write the news of an ended job."""
        finish = await self._jobs.finish(job.id) if job.state == "completed" else Finish(job)
        ended_ms = job.finished_ms or job.updated_ms
        news = {
            "type": f"{job.kind}.{job.state}",
            "timestamp": datetime.fromtimestamp(ended_ms / 1000, UTC).isoformat(),
            "data": {
                "id": job.id,
                "object": job.kind,
                "model": job.model,
                "status": job.state,
                "created_at": job.created_ms // 1000,
                "completed_at": ended_ms // 1000,
                "error": {"code": job.error_code, "message": job.error_message} if job.error_code else None,
                "media": self._answers.members(finish),
            },
        }
        return msgspec.json.encode(news)
