"""What a chat's client is told of a job: the same events, with the same numbers, for every reader at any time."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from trunkline.calls.media_links import MediaLinks
from trunkline.calls.media_shown import MediaShown, missing
from trunkline.calls.streams import sse_events
from trunkline.core.binding import Binding, decode
from trunkline.core.chat import ChatRequest
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    Progress,
    ReasoningDelta,
    TextDelta,
    Usage,
    UsageReported,
)
from trunkline.core.jobs import Finish, Job, Partial
from trunkline.core.media import MediaRequest
from trunkline.core.money import usd
from trunkline.core.ports import Jobs, MediaStore
from trunkline.core.route import MediaStyle
from trunkline.ingress.completion import Collector
from trunkline.ingress.openai_chat import ChunkEncoder
from trunkline.ingress.openai_images import ImageAs
from trunkline.policy.tokens import count_tokens

ProgressPlace = Literal["reasoning", "content", "off"]


class Telling(Struct, frozen=True, omit_defaults=True):
    """How a client wants to be told of its job; the JSON in `Job.answer`."""

    form: Literal["chat", "images", "edits", "videos"] = "chat"
    """The endpoint's way of writing."""
    stream: bool = False
    style: MediaStyle = "markdown"
    progress: ProgressPlace = "reasoning"
    include_usage: bool = False
    include_cost: bool = False
    given_as: ImageAs = "both"
    """How the images endpoints give a picture."""
    traceparent: str = ""
    """The client's trace, which the job's span goes on."""
    trace: bool = False
    """What the provider sends is to be kept for a while, for the operator to look at."""


class ChatAnswers:
    """Writes jobs as chat answers, streamed and not."""

    def __init__(self, jobs: Jobs, links: MediaLinks, store: MediaStore) -> None:
        self._jobs = jobs
        self.shown = MediaShown(links, store)

    def keepalive(self, job: Job) -> bytes:
        """Write an event that says nothing, for a stream whose role chunk is out."""
        encoder = _encoder(job, telling_of(job))
        encoder.role()
        return encoder.progress()

    async def events(self, job: Job, after: int | None) -> AsyncIterator[tuple[int, bytes]]:
        """Give the stream's events after this number, as they come; None: from the role chunk on, which is number 0.

        Raises as `Jobs.events_from`.
        """
        telling = telling_of(job)
        encoder = _encoder(job, telling)
        role = encoder.role()
        if after is None:
            yield 0, role
            after = -1
        async for number, said in self._jobs.events_from(job.id, max(after, 0)):
            if isinstance(said, Partial):
                continue
            if isinstance(said, Progress):
                events = told(said, telling.progress)
            else:
                events = await self.ending(said, telling)
                if telling.include_cost:
                    encoder.cost_usd = partial(_cost, said.job)
            for at, data in enumerate(sse_events(encoder, events)):
                if number + at > after:
                    yield number + at, data

    async def completion(self, finish: Finish) -> bytes | Failed:
        """Write the unstreamed answer, or say why there is none."""
        job, telling = finish.job, telling_of(finish.job)
        collector = Collector(_request(job, telling), id=_id(job), created=job.created_ms // 1000)
        collector.feed(await self.ending(finish, telling))
        if telling.include_cost and job.cost_microusd is not None:
            collector.cost_usd = usd(job.cost_microusd)
        return collector.failed or collector.body()

    async def ending(self, finish: Finish, telling: Telling) -> list[Event]:
        """Say how a job ended: the media in the client's style, each once; or the error."""
        error = finish.error
        if error is not None:
            return [Failed(error.code, error.message, error.type, error.status, error.param, error.retry_after_s)]
        binding = decode(finish.job.binding)
        events: list[Event] = []
        said = "\n".join([*(part.text for part in binding.parts if part.text), *missing_of(finish)])
        if said:
            events.append(ReasoningDelta(said))
        events.append(await self.shown.piece(telling.style, finish.job.link_base, finish.media, finish.covers))
        media = Raw(msgspec.json.encode(self.members(finish)))
        usage = usage_of(finish.job, binding)
        return [*events, Extras({"media": media}), Finished("stop"), UsageReported(usage), Ended()]

    def members(self, finish: Finish) -> dict[str, Any]:
        """Give the member `media` of the finish chunk, of completions and of callbacks (contract section 7)."""
        return self.shown.members(finish.job.link_base, finish.media, finish.covers)


def telling_of(job: Job) -> Telling:
    """Read how the job's client wants to be told."""
    return msgspec.json.decode(job.answer, type=Telling)


def told(progress: Progress, place: ProgressPlace) -> list[Event]:
    """Say how far a job is, as one line."""
    line = " · ".join(filter(None, (_percent(progress.percent), progress.text)))
    if not line or place == "off":
        return []
    return [ReasoningDelta(f"{line}\n") if place == "reasoning" else TextDelta(f"{line}\n\n")]


def missing_of(finish: Finish) -> list[str]:
    """Say which media of a job that succeeded did not come, if any."""
    parts = decode(finish.job.binding).parts
    why = next((part.error.message for part in parts if part.error is not None), "the provider gave no more.")
    line = missing(finish.job.kind, len(finish.media), sum(part.n for part in parts), why)
    return [line] if line else []


def usage_of(job: Job, binding: Binding) -> Usage:
    """Give what was counted: by the provider, else our own count of the prompt."""
    counted = binding.usage()
    if counted is not None:
        return counted
    prompt = count_tokens(msgspec.json.decode(job.request, type=MediaRequest).prompt)
    return Usage(prompt_tokens=prompt, total_tokens=prompt)


def _percent(percent: float | None) -> str:
    return "" if percent is None else f"{percent:.0f} %"


def _id(job: Job) -> str:
    return f"chatcmpl-{job.id.partition('_')[2]}"


def _request(job: Job, telling: Telling) -> ChatRequest:
    return ChatRequest(job.model, {}, include_usage=telling.include_usage, include_cost=telling.include_cost)


def _encoder(job: Job, telling: Telling) -> ChunkEncoder:
    return ChunkEncoder(_request(job, telling), id=_id(job), created=job.created_ms // 1000)


def _cost(job: Job, _usage: Usage) -> float | None:
    return None if job.cost_microusd is None else usd(job.cost_microusd)
