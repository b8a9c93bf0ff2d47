"""What a job needs of the world, handed to it by the composition root."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from trunkline.calls.media_intake import MediaIntake
from trunkline.core.dialect import MediaDialect
from trunkline.core.jobs import Job, Outcome
from trunkline.core.ports import EventLog, Upstream
from trunkline.core.state import JobStore


class Clock(Protocol):
    """The time, and waiting for it."""

    def steady_s(self) -> float:
        """Give the seconds of a clock that nobody sets."""

    def now_ms(self) -> int:
        """Give Unix milliseconds."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class RealClock:
    """The machine's clock."""

    def steady_s(self) -> float:
        """See `Clock`."""
        return time.monotonic()

    def now_ms(self) -> int:
        """See `Clock`."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await asyncio.sleep(seconds)


Settle = Callable[[Job, Outcome], Awaitable[int | None]]
"""Books a job and ends its reservation, before it is shown as ended; gives the cost in micro-dollars, if known.

Called at least once for each job, and again with the same outcome after a crash: idempotent by the job's id.
"""


STEPS = ("submit", "wait", "store")
Step = Callable[[str, str], Awaitable[bool | None]]
"""Runs one of `STEPS` of a job, by id. False: the job has ended, no further step. None: the job is not ours."""


class Workflows(Protocol):
    """What remembers that a job is to go through its steps, whatever dies in between."""

    async def start(self) -> None:
        """Begin; no workflow runs before."""

    async def stop(self) -> None:
        """End this process's part in it."""

    async def ensure(self, job_id: str) -> None:
        """See to it that the job's workflow runs here: begun, or taken over from whoever had it."""

    async def prune(self, living: Collection[str]) -> int:
        """Forget workflows that ended, and what belonged to replicas that are not living; gives how many workflows."""


class Limits(Struct, frozen=True):
    """Bounds of the engine."""

    max_wait_s: float = 1800.0
    """From the submit to the result."""
    poll_s: float = 30.0
    """For one poll, answer included."""
    submits: int = 64
    """Submits at a time in this process; further jobs stay queued."""
    retain_s: int = 30 * 24 * 3600
    """How long ended jobs are kept; 0: for ever."""


def _unheard(_job: Job) -> None:
    """Listen to no job."""


class Tools(Struct, frozen=True):
    """See the ports."""

    jobs: JobStore
    log: EventLog
    upstream: Upstream
    intake: MediaIntake
    dialects: Mapping[str, MediaDialect]
    settle: Settle
    submits: asyncio.Semaphore
    limits: Limits
    clock: Clock
    large: asyncio.Lock = field(default_factory=asyncio.Lock)
    """Answers are read one in a turn of the loop: those with pictures hold it up for some 2 ms a megabyte."""
    listened: Callable[[Job], Upstream | None] = _unheard
    """Gives the upstream of a job that is listened to."""

    def of(self, job: Job) -> "Tools":
        """Give the tools of one job."""
        if (upstream := self.listened(job)) is None:
            return self
        return replace(self, upstream=upstream, intake=self.intake.over(upstream))
