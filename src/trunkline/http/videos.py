"""`/v1/videos/{id}` and its list: film jobs, however they were asked for (OpenAI Videos; wire.md section 2.2)."""

import asyncio
from typing import Any
from urllib.parse import parse_qs

from trunkline.calls.gate import Gate
from trunkline.calls.media_answer import ChatAnswers
from trunkline.calls.media_retention import MediaRetention
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import FINISHED, Finish, Job
from trunkline.core.media import MediaRecord
from trunkline.core.ports import Jobs, MediaStore
from trunkline.core.state import JobStore, MediaIndex
from trunkline.http.call_headers import read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import respond_error, respond_json
from trunkline.http.exchange import Exchange
from trunkline.http.live import Live
from trunkline.http.media import send_file
from trunkline.ingress.openai_videos import STATUS, video_object

PREFIX = "/v1/videos/"
POLL = ("openai-poll-after-ms", "1000")
CANCEL_S = 10.0
MOST_LISTED = 100
Told = list[tuple[str, str]]


class Films:
    """The handler of everything but the asking, behind the front door."""

    def __init__(  # noqa: PLR0913, PLR0917 - where films are
        self,
        live: Live,
        gate: Gate,
        jobs: Jobs,
        store: JobStore,
        answers: ChatAnswers,
        index: MediaIndex,
        files: MediaStore,
        retention: MediaRetention,
    ) -> None:
        self._live = live
        self._gate = gate
        self._jobs = jobs
        self._store = store
        self._answers = answers
        self._index = index
        self._files = files
        self._retention = retention

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        try:
            caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
            if exchange.path == PREFIX[:-1]:
                respond_json(exchange, await self._list(exchange, caller.key.id), headers)
                return
            name, _, rest = exchange.path.removeprefix(PREFIX).partition("/")
            shows_content = rest == "content" and exchange.method != "DELETE"
            job = await self._find(name if shows_content or not rest else f"{name}/{rest}", caller.key.id)
            if shows_content:
                await self._content(exchange, job, headers)
            elif exchange.method == "DELETE":
                respond_json(exchange, await self._delete(job), headers)
            else:
                respond_json(exchange, await self.shown(job), [*headers, POLL, ("x-trunkline-job-id", job.id)])
        except GatewayError as error:
            respond_error(exchange, error, headers)

    async def shown(self, job: Job) -> dict[str, Any]:
        """Give a job as a `video` object, with its links when it is done."""
        finish = await self._jobs.ended(job) if job.state == "completed" else Finish(job)
        members = {"media": self._answers.members(finish)} if finish.media else {}
        return {**video_object(finish), **members}

    async def _find(self, name: str, key_id: str) -> Job:
        """Give a film's job to who asked for it."""
        job = await self._jobs.get(name)
        if job is None or job.key_id != key_id or job.kind != "video":
            raise GatewayError("not_found", f"There is no video {name[:80]!r}.")
        return job

    async def _list(self, exchange: Exchange, key_id: str) -> dict[str, Any]:
        query = parse_qs(exchange.query.decode("latin-1"))
        after, limit, order = (query.get(name, [""])[0] for name in ("after", "limit", "order"))
        if limit and not (limit.isascii() and limit.isdecimal() and 1 <= int(limit[:9]) <= MOST_LISTED):
            raise GatewayError("invalid_value", f"`limit` must be from 1 to {MOST_LISTED}.", param="limit")
        if order not in {"", "asc", "desc"}:
            raise GatewayError("invalid_value", "`order` must be `asc` or `desc`.", param="order")
        if after:
            await self._find(after, key_id)
        most = int(limit or 20)
        found = await self._store.page(
            key_id=key_id, kind="video", after=after, limit=most + 1, ascending=order == "asc"
        )
        data = [await self.shown(job) for job in found[:most]]
        return {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": len(found) > most,
        }

    async def _delete(self, job: Job) -> dict[str, Any]:
        """Stop a running job; delete an ended one with its film."""
        if job.state not in FINISHED:
            await self._jobs.cancel(job.id)
            try:
                async with asyncio.timeout(CANCEL_S):
                    job = (await self._jobs.finish(job.id)).job
            except TimeoutError:
                return {"id": job.id, "object": "video.deleted", "deleted": False}
        await self._retention.delete(job.result)
        return {"id": job.id, "object": "video.deleted", "deleted": await self._store.delete(job.id)}

    async def _content(self, exchange: Exchange, job: Job, headers: Told) -> None:
        variant = parse_qs(exchange.query.decode("latin-1")).get("variant", ["video"])[0]
        if variant not in {"video", "thumbnail"}:
            raise GatewayError("invalid_value", "`variant` must be `video` or `thumbnail`.", param="variant")
        if job.state != "completed":
            why = job.error_message if job.state in FINISHED else f"It is {STATUS[job.state]}; ask again later."
            raise GatewayError("not_found", f"The video {job.id} has no content. {why}")
        record = await self._record(job, variant)
        if record is None:
            raise GatewayError("not_found", f"The {variant} of {job.id} is no longer kept.")
        await send_file(exchange, self._files, record, headers)

    async def _record(self, job: Job, variant: str) -> MediaRecord | None:
        film = await self._index.get(job.result[0]) if job.result else None
        if film is None or variant == "video":
            return film
        return await self._index.get(film.cover_id) if film.cover_id else None
