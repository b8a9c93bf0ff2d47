"""`GET`, `DELETE /v1/streams/{id}`: answers taken up again, or stopped (contract section 8)."""

import time
from collections.abc import Callable

from trunkline.calls.gate import Gate
from trunkline.calls.image_answer import StreamedAnswers
from trunkline.calls.streams import TextStreams, keepalive_of
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Job, StoredStream
from trunkline.core.ports import EventLog, Jobs
from trunkline.http.call_headers import read_request_id
from trunkline.http.cors import cors_headers
from trunkline.http.error_response import JSON, respond_error
from trunkline.http.exchange import Exchange
from trunkline.http.followed_stream import FollowedStream
from trunkline.http.job_answer import JobAnswer
from trunkline.http.live import Live

PREFIX = "/v1/streams/"


class Streams:
    """The endpoint's handler, behind the front door."""

    def __init__(  # noqa: PLR0913, PLR0917 - streams are of two kinds
        self,
        live: Live,
        gate: Gate,
        log: EventLog,
        texts: TextStreams,
        jobs: Jobs,
        answers: Callable[[Job], StreamedAnswers],
        answer: JobAnswer,
    ) -> None:
        self._live = live
        self._gate = gate
        self._log = log
        self._texts = texts
        self._jobs = jobs
        self._answers = answers
        self._answer = answer

    async def __call__(self, exchange: Exchange) -> None:
        """Answer one request."""
        request_id = read_request_id(exchange)
        headers = [("x-request-id", request_id), *cors_headers(exchange, self._live.settings)]
        try:
            stream = await self._find(exchange, request_id)
            if exchange.method == "DELETE":
                await self._stop(stream)
                exchange.respond(200, [JSON, *headers], b'{"id":"%b","object":"stream.cancelled"}' % stream.id.encode())
                return
            after = resume_after(exchange, stream)
            job = await self._job(stream)
        except GatewayError as error:
            respond_error(exchange, error, headers)
            return
        if job is not None:
            told = self._answers(job)
            await self._answer.follow(exchange, job, told.events(job, after), told.keepalive(job), headers)
            return
        keepalive_s = self._live.settings.keepalive_s
        headers.append(("x-trunkline-stream-id", stream.id))
        await FollowedStream(exchange, keepalive_of(stream), keepalive_s).run(
            headers, self._texts.follow(stream.id, after or 0)
        )

    async def _job(self, stream: StoredStream) -> Job | None:
        """Give the job that a stream tells of, if it tells of one."""
        if not stream.job_id:
            return None
        job = await self._jobs.get(stream.job_id)
        if job is None:
            raise GatewayError("stream_expired", f"The job of the stream {stream.id!r} was deleted.")
        return job

    async def _stop(self, stream: StoredStream) -> None:
        if stream.job_id:
            await self._jobs.cancel(stream.job_id)
        else:
            await self._texts.stop(stream.id)

    async def _find(self, exchange: Exchange, request_id: str) -> StoredStream:
        """Give the stream that is asked for, to who began it."""
        caller = await self._gate.caller(exchange.header(b"authorization"), request_id)
        name = exchange.path.removeprefix(PREFIX)
        stream = await self._log.get(name)
        if stream is None or stream.key_id != caller.key.id:
            raise GatewayError("stream_not_found", f"There is no stream {name[:80]!r}.")
        if stream.expires_ms is not None and stream.expires_ms <= time.time_ns() // 1_000_000:
            raise GatewayError("stream_expired", f"The stream {name!r} is no longer kept.")
        return stream


def resume_after(exchange: Exchange, stream: StoredStream) -> int | None:
    """Read `Last-Event-ID`, None when it is absent. Raises GatewayError `invalid_value`, `stream_expired`."""
    sent = exchange.header(b"last-event-id").strip()
    if not sent:
        return None
    if not (sent.isascii() and sent.isdecimal() and len(sent) < 16):
        raise GatewayError("invalid_value", "It must be the number of an event.", param="Last-Event-ID")
    if int(sent) + 1 < stream.first_seq:
        raise GatewayError("stream_expired", f"The events after {sent} are no longer kept.")
    return int(sent)
