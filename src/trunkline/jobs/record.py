"""A job's row as its owner writes it: every write fenced by the claim's generation, progress told to the stream."""

import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from trunkline.core.binding import decode, encode
from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Job, JobChanges, JobState, Outcome
from trunkline.core.media import MediaRecord
from trunkline.core.state import StaleOwnerError, StorageError
from trunkline.jobs import pace
from trunkline.jobs.tools import Tools

log = logging.getLogger(__name__)
REPORT_MS = 1000
T = TypeVar("T")


class Entry(Struct, frozen=True, omit_defaults=True):
    """What a job's stream holds: how far it is, or a picture as far as it is drawn (`number` counts from 0)."""

    percent: float | None = None
    text: str = ""
    partial: MediaRecord | None = None
    number: int = 0


class Record:
    """One job in the process that owns it, for as long as its writes are accepted."""

    def __init__(self, job: Job, tools: Tools) -> None:
        self.job = job
        self.generation = job.generation
        """Raised in place when this process loses its lease and claims the job again before anyone else."""
        self.binding = decode(job.binding)
        self.tools = tools
        self._stream_generation: int | None = None
        self._reported_ms = 0
        self._expected_s: float | None = None

    async def change(self, changes: JobChanges, *, durable: bool = False) -> None:
        """Write, waiting for a database that is away. Raises StaleOwnerError when the job is another's."""
        while True:
            generation = self.generation
            try:
                write = partial(self.tools.jobs.change, self.job.id, generation, changes, durable=durable)
                self.job = await lasting(self.tools, write)
            except StaleOwnerError:
                await self.tools.clock.sleep(0.2)  # our own claim may just be on its way to `generation`
                if self.generation == generation:
                    raise
            else:
                return

    async def save(self) -> None:
        """Write what the parts have come to."""
        await self.change(JobChanges(binding=encode(self.binding)))

    async def report(self, percent: float | None, text: str) -> None:
        """Tell how far it is, at most once a second; a percentage never goes back."""
        now_ms = self.tools.clock.now_ms()
        if 0 <= now_ms - self._reported_ms < REPORT_MS:
            return
        if percent is not None:
            percent = float(round(max(0.0, min(percent, 100.0), self.job.progress or 0.0)))
        text = " · ".join(filter(None, (text, await self._times(percent))))
        if (percent, text) == (self.job.progress, self.job.progress_text):
            return
        self._reported_ms = now_ms
        await self.change(JobChanges(progress=percent, progress_text=text))
        await self.tell(Entry(percent, text))

    async def tell(self, entry: Entry) -> None:
        """Add to the job's stream."""
        if generation := await self._stream():
            event = msgspec.json.encode(entry)
            await lasting(self.tools, lambda: self.tools.log.append(self.job.stream_id, generation, [event]))

    async def end(
        self, state: JobState, code: str = "", message: str = "", media: tuple[MediaRecord, ...] = ()
    ) -> None:
        """Book the job and close its stream, then show it as ended: whatever crashes in between is done again."""
        outcome = Outcome(
            state=state,
            error_code=code,
            submitted=self.job.submitting_ms is not None,
            media=media,
            usage=self.binding.usage(),
        )
        cost = await lasting(self.tools, lambda: self.tools.settle(self.job, outcome))
        if generation := await self._stream():
            ended: Literal["ended", "failed"] = "ended" if state == "completed" else "failed"
            await lasting(self.tools, lambda: self.tools.log.end(self.job.stream_id, generation, ended))
            self._stream_generation = 0
        retain_s, now_ms = self.tools.limits.retain_s, self.tools.clock.now_ms()
        await self.change(
            JobChanges(
                state=state,
                error_code=code,
                error_message=message,
                binding=encode(self.binding),
                result=tuple(record.id for record in media),
                progress=100.0 if state == "completed" else self.job.progress,
                cost_microusd=cost,
                expires_ms=now_ms + retain_s * 1000 if retain_s else None,
                callback_state="pending" if self.job.callback_url else "",
                callback_due_ms=now_ms if self.job.callback_url else None,
            )
        )

    def elapsed_s(self) -> float:
        """Say how long ago the submit was."""
        return (self.tools.clock.now_ms() - (self.job.submitting_ms or self.job.created_ms)) / 1000

    async def _times(self, percent: float | None) -> str:
        """Say how long it will take, by what jobs of this model usually take and how far this one is."""
        if self._expected_s is None:
            usual_s = partial(self.tools.jobs.usual_s, self.job.provider, self.job.upstream_model)
            self._expected_s = await lasting(self.tools, usual_s)
        elapsed_s = self.elapsed_s()
        left = pace.left_s(elapsed_s, percent, self._expected_s)
        if left is not None and left >= 0.5:
            return f"{left:.0f} s left" if percent is not None else f"{elapsed_s:.0f} s so far, {left:.0f} s left"
        return "" if percent is not None else f"{elapsed_s:.0f} s so far"

    async def _stream(self) -> int:
        """Give the generation under which this owner writes the job's stream; 0: it has none."""
        if self._stream_generation is None:
            stream_id, owner = self.job.stream_id, self.job.owner
            stream = await lasting(self.tools, lambda: self.tools.log.claim(stream_id, owner)) if stream_id else None
            self._stream_generation = stream.generation if stream else 0
        return self._stream_generation


async def lasting(tools: Tools, work: Callable[[], Awaitable[T]]) -> T:
    """Do what needs the database, again and again while it is away: a job that is paid for is not dropped for that."""
    pause_s = 0.5
    while True:
        try:
            return await work()
        except (StorageError, GatewayError) as error:
            if isinstance(error, GatewayError) and error.code != "storage_unavailable":
                raise
            log.warning("waiting for the database: %s", error)
        await tools.clock.sleep(pause_s)
        pause_s = min(2 * pause_s, 10.0)
