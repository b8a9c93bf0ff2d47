"""One job under way: submit, wait, store. Every step may be begun again after a crash, from what the job's row says."""

import asyncio
import logging
from collections.abc import Coroutine, Iterable
from typing import Any

import msgspec
from msgspec.structs import replace

from trunkline.calls.media_intake import Origin
from trunkline.core.binding import Item, Part, encode
from trunkline.core.chat import UpstreamRequest
from trunkline.core.dialect import Ready, Refused, Submitted, Working
from trunkline.core.errors import GatewayError, UpstreamError
from trunkline.core.jobs import FINISHED, Job, JobChanges, JobState
from trunkline.core.media import Media, MediaRecord, MediaRequest
from trunkline.core.ports import HttpError, HttpResponse
from trunkline.core.state import StaleOwnerError, StorageError
from trunkline.jobs import pace
from trunkline.jobs.ask import ask, exchange, is_stream, received, said
from trunkline.jobs.record import Entry, Record
from trunkline.jobs.tools import Tools

TRIES = 3
"""How often a submit is sent that never arrived, or that the provider knows again by its key."""
CANCEL_S = 10.0
AWAY_S = 1.0
LAST_S = 60.0
"""So long at least whoever takes a job up asks its provider: the work may have been done, and paid for, meanwhile."""
UNFINISHED = 500
"""Where the places of unfinished pictures begin in a part's thousand."""
UNKNOWN = "The gateway broke off while it submitted this; the provider may be at work, so it was not submitted again."

log = logging.getLogger(__name__)


class Run(Record):
    """A job's work in this process."""

    def __init__(self, job: Job, tools: Tools) -> None:
        super().__init__(job, tools)
        self.cancelling = job.cancel_requested
        self.dropped = False
        self._target = self.binding.target
        self._dialect = tools.dialects[self._target.dialect]
        self._to = (self._target, job.credential_id)
        self._task: asyncio.Task[Any] | None = None
        self._partials: dict[int, int] = {}

    async def step(self, name: str) -> bool:
        """Run a step to its end; False: the job has ended. Raises StaleOwnerError when it is another's by now."""
        if self.job.state in FINISHED:
            return False
        self._task = asyncio.current_task()
        try:
            return await self._lasting_step(name)
        except asyncio.CancelledError:
            if self.dropped or not self.cancelling or self._task is None or self._task.uncancel():
                raise
            await self._cancelled()
        except GatewayError as error:
            await self.end("failed", error.code, error.message)
        except StaleOwnerError:
            raise
        except Exception:
            log.exception("job %s broke", self.job.id)
            await self.end("failed", "internal_error", "The gateway failed at this job; see its log.")
        finally:
            self._task = None
        return False

    def cancel(self) -> None:
        """Stop the work. A submit that will be answered with a task is let through: then the task can be stopped."""
        if self.cancelling:  # what ends the job, and tells its provider, is not to be broken off
            return
        self.cancelling = True
        if self._task is not None and not (self.job.state == "submitting" and self._dialect.poll is not None):
            self._task.cancel()

    def drop(self) -> None:
        """Stop without a word: the job is another's, or this process ends."""
        self.dropped = True
        if self._task is not None:
            self._task.cancel()

    async def _step(self, name: str) -> bool:
        if self.cancelling:
            await self._cancelled()
            return False
        return await {"submit": self._submit, "wait": self._wait, "store": self._store}[name]()

    async def _lasting_step(self, name: str) -> bool:
        """Run a step, and again when the database was away in it: every step goes on from what is known."""
        while True:
            try:
                return await self._step(name)
            except StorageError as error:
                log.warning("job %s waits for the database: %s", self.job.id, error)
            await self.tools.clock.sleep(AWAY_S)

    # The three steps.

    async def _submit(self) -> bool:
        if self.job.state not in {"queued", "submitting"}:
            return True
        new = [(at, part) for at, part in enumerate(self.binding.parts) if part.state == "new"]
        if self.job.state == "submitting" and not self._dialect.submit_is_idempotent:
            for _, part in new:
                part.state = "unknown"
        else:
            async with self.tools.submits:
                deadline_ms = self.tools.clock.now_ms() + int(self.tools.limits.max_wait_s * 1000)
                await self.change(JobChanges(state="submitting", deadline_ms=deadline_ms), durable=True)
                await at_once(self._submit_part(at, part) for at, part in new)
        if any(part.state == "working" for part in self.binding.parts):
            tasks = ",".join(part.task for part in self.binding.parts if part.task)
            await self.change(JobChanges(state="running", upstream_task_id=tasks, binding=encode(self.binding)))
            return True
        return await self._go_on()

    async def _wait(self) -> bool:
        if self.job.state != "running":
            return True
        working = [(at, part) for at, part in enumerate(self.binding.parts) if part.state == "working"]
        await at_once(self._poll(at, part) for at, part in working)
        return await self._go_on()

    async def _go_on(self) -> bool:
        """Go on to storing what there is; when nothing came of any part, end with the first one's reason."""
        parts = self.binding.parts
        if any(part.state == "ready" for part in parts):
            await self.change(JobChanges(state="storing", binding=encode(self.binding)))
            return True
        error = next((part.error for part in parts if part.error is not None), None)
        if error is None or any(part.state == "unknown" for part in parts):
            state: JobState = "submit_unknown" if self.job.state == "submitting" else "failed"
            await self.end(state, "submit_unknown", error.message if error else UNKNOWN)
        else:
            await self.end("failed", error.code, error.message)
        return False

    async def _store(self) -> bool:
        records: list[MediaRecord] = []
        failures: list[GatewayError] = []
        for at, part in enumerate(self.binding.parts):
            for nth, item in enumerate(part.items):
                try:
                    record = await self._take(item.media, self._origin(at, nth))
                except GatewayError as error:
                    failures.append(error)
                    part.error = UpstreamError(error.code, error.message, error.status)
                else:
                    item.media_id = record.id
                    records.append(record)
        if not records:
            raise failures[0]
        await self.end("completed", media=tuple(records))
        return False

    async def _cancelled(self) -> None:
        for part in self.binding.parts:
            if part.state == "working" and part.task and self._dialect.cancel is not None:
                request = self._dialect.cancel(part.task, self._target)
                try:
                    await ask(self.tools.upstream, request, self._to, within_s=CANCEL_S)
                except HttpError as error:
                    log.warning("job %s: the provider was not told to cancel: %s", self.job.id, error)
        await self.end("cancelled", "cancelled", "The job was cancelled.")

    # What they are made of.

    async def _submit_part(self, at: int, part: Part) -> None:
        key = self.job.id if len(self.binding.parts) == 1 else f"{self.job.id}-{at}"
        request = self._dialect.submit(await self._request(part.n), self._target, key)
        for left in reversed(range(TRIES)):
            try:
                await self._hear(at, part, await self._submitted(at, part, request))
                break
            except HttpError as error:
                if not left or (error.sent and not self._dialect.submit_is_idempotent):
                    part.state = "unknown" if error.sent else "refused"
                    part.error = unreachable(error)
                    break
            await self.tools.clock.sleep(0.5 * (TRIES - left))
        await self.save()

    async def _submitted(self, at: int, part: Part, request: UpstreamRequest) -> Submitted | Ready | Refused:
        within_s = self.tools.limits.max_wait_s
        async with exchange(self.tools.upstream, request, self._to, within_s=within_s, fresh=True) as response:
            if self._dialect.stream is not None and is_stream(response):
                async for saying in said(response, self._dialect.stream()):
                    if not isinstance(saying, Working):
                        return saying
                    await self._hear(at, part, saying)
            pieces = await received(response)
            async with self.tools.large:
                body = b"".join(pieces)
                pieces.clear()
                await asyncio.sleep(0)
                return told_when(self._dialect.submitted(response.status, body), response)

    async def _poll(self, at: int, part: Part) -> None:
        """Ask until there is an answer; what says nothing about the work is forgiven until the job's deadline."""
        tools, failures, hint_s, trouble = self.tools, 0, None, ""
        left_s = ((self.job.deadline_ms or 0) - tools.clock.now_ms()) / 1000
        until_s = tools.clock.steady_s() + min(max(left_s, LAST_S), tools.limits.max_wait_s)
        while part.state == "working":
            left_s = until_s - tools.clock.steady_s()
            if left_s <= 0:
                part.state, part.error = "refused", self._too_late(trouble)
                return
            await tools.clock.sleep(min(pace.pause_s(self.elapsed_s(), failures, hint_s), left_s))
            try:
                saying, hint_s = await self._progress(part.task)
            except HttpError as error:
                failures, hint_s, trouble = failures + 1, None, str(error)
                continue
            if saying is None or (isinstance(saying, Refused) and saying.error.code == "upstream_malformed"):
                failures, trouble = failures + 1, saying.error.message if saying else "an error status"
                continue
            failures = 0
            await self._hear(at, part, saying)

    async def _progress(self, task: str) -> tuple[Working | Ready | Refused | None, float | None]:
        """Ask once: what is said (None: nothing about the work), and when the provider wants to be asked again."""
        if self._dialect.poll is None or self._dialect.progress is None:
            raise GatewayError("internal_error", f"The dialect {self._dialect.name} gave a task and knows no poll.")
        request = self._dialect.poll(task, self._target)
        answer = await ask(self.tools.upstream, request, self._to, within_s=self.tools.limits.poll_s)
        hint_s = pace.hint_s(answer.headers)
        if pace.is_transient(answer.status):
            return None, hint_s
        saying = self._dialect.progress(task, answer.status, answer.body)
        if isinstance(saying, Working) and saying.poll_after_s is not None:
            hint_s = saying.poll_after_s
        return saying, hint_s

    def _too_late(self, trouble: str) -> UpstreamError:
        waited = f"The provider did not finish within {self.tools.limits.max_wait_s:g} s"
        return UpstreamError("upstream_timeout", f"{waited}; its last word: {trouble or 'still working'}.", 504)

    async def _hear(self, at: int, part: Part, saying: Submitted | Working | Ready | Refused) -> None:
        """Take in what the provider says of one part."""
        if isinstance(saying, Refused):
            part.state, part.error = "refused", saying.error
        elif isinstance(saying, Submitted):
            part.state, part.task = "working", saying.task
        elif isinstance(saying, Working):
            if saying.task and saying.task != part.task:
                part.task = saying.task
                await self.save()
            if saying.partial is not None:
                await self._show(at, saying.partial)
            part.percent = saying.percent if saying.percent is not None else part.percent
            await self.report(self._percent(), saying.text)
        else:
            part.items = [await self._item(at, nth, media) for nth, media in enumerate(saying.media)]
            part.state, part.usage, part.text, part.percent = "ready", saying.usage, saying.text, 100.0

    async def _show(self, at: int, picture: Media) -> None:
        """Keep an unfinished picture for a while, and tell of it; a bad one is no failure of the job."""
        number = self._partials.get(at, 0)
        self._partials[at] = number + 1
        origin = replace(self._origin(at, UNFINISHED + number), passing=True, output_format="")
        try:
            record = await self._take(picture, origin)
        except GatewayError as error:
            log.warning("job %s: an unfinished picture was left out: %s", self.job.id, error)
        else:
            await self.tell(Entry(partial=record, number=number))

    async def _item(self, at: int, nth: int, media: Media) -> Item:
        """Keep inline bytes at once: they are too large for the job's row."""
        if not media.data and not media.url.startswith("data:"):
            return Item(media)
        record = await self._take(media, self._origin(at, nth))
        return Item(replace(media, data=b"", url=""), record.id)

    async def _take(self, media: Media, origin: Origin) -> MediaRecord:
        """Take a medium in, waiting for a database that is away: it is paid for."""
        while True:
            try:
                return await self.tools.intake.take(media, origin)
            except StorageError as error:
                log.warning("job %s waits for the database: %s", self.job.id, error)
            await self.tools.clock.sleep(AWAY_S)

    async def _request(self, n: int) -> MediaRequest:
        request = msgspec.json.decode(self.job.request, type=MediaRequest)
        inputs = [
            replace(one, data=await self.tools.intake.load(one.sha256)) if one.sha256 else one for one in request.inputs
        ]
        return replace(request, n=n, inputs=tuple(inputs))

    def _origin(self, at: int, nth: int) -> Origin:
        request = msgspec.json.decode(self.job.request, type=MediaRequest)
        return Origin(
            key_id=self.job.key_id,
            job_id=self.job.id,
            model=self.job.model,
            target=self._target,
            credential_id=self.job.credential_id,
            output_format=request.convert_to or request.output_format or "",
            ordinal=1000 * at + nth,
        )

    def _percent(self) -> float | None:
        known = [part.percent for part in self.binding.parts if part.percent is not None]
        return sum(known) / len(self.binding.parts) if known else None


def told_when(saying: Submitted | Ready | Refused, response: HttpResponse) -> Submitted | Ready | Refused:
    """Add to a refusal when the provider wants to be asked again, which its headers say."""
    if not isinstance(saying, Refused) or saying.error.retry_after_s is not None:
        return saying
    return Refused(replace(saying.error, retry_after_s=pace.hint_s(response.headers)))


def unreachable(error: HttpError) -> UpstreamError:
    """Say that a submit failed on its way, or, worse, after it."""
    if error.sent:
        return UpstreamError("submit_unknown", f"{UNKNOWN} ({error})", 502)
    return UpstreamError("upstream_unavailable", f"The provider cannot be reached: {error}.", 503)


async def at_once(works: Iterable[Coroutine[Any, Any, None]]) -> None:
    """Do all at once; the first failure stops the others and is raised as it is."""
    try:
        async with asyncio.TaskGroup() as group:
            for work in works:
                group.create_task(work)
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None
