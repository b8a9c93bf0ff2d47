"""What a client of the images endpoints is told of a job: the same events, with the same numbers, for every reader."""

import logging
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import msgspec

from trunkline.calls.media_answer import ChatAnswers, missing_of, telling_of, usage_of
from trunkline.calls.media_links import MediaLinks
from trunkline.calls.media_shown import base64_of
from trunkline.core.binding import decode
from trunkline.core.errors import GatewayError
from trunkline.core.events import Failed
from trunkline.core.jobs import Finish, Job, Partial
from trunkline.core.media import MediaRecord, MediaRequest
from trunkline.core.ports import Jobs, MediaStore
from trunkline.ingress.openai_chat import error_object
from trunkline.ingress.openai_images import (
    EVENTS,
    KEEPALIVE,
    Drawn,
    ImageAs,
    ImagesForm,
    error_event,
    image_event,
    images_body,
    last_members,
    shape_of,
)

log = logging.getLogger(__name__)


class StreamedAnswers(Protocol):
    """A way of telling a job as a stream."""

    def keepalive(self, job: Job) -> bytes:
        """Write what says nothing."""

    def events(self, job: Job, after: int | None) -> AsyncIterator[tuple[int, bytes]]:
        """Give the stream's events after this number; None: from the first on."""


class ImageAnswers:
    """Writes jobs as answers of `/v1/images/generations` and `/v1/images/edits`, streamed and not."""

    def __init__(self, jobs: Jobs, links: MediaLinks, store: MediaStore) -> None:
        self._jobs = jobs
        self._links = links
        self._store = store

    def keepalive(self, job: Job) -> bytes:  # noqa: ARG002 - of the protocol
        """Write a line that says nothing."""
        return KEEPALIVE

    async def events(self, job: Job, after: int | None) -> AsyncIterator[tuple[int, bytes]]:
        """Give the stream's events after this number, as they come; the first is number 1. Raises as the engine."""
        after = after or 0
        async for number, said in self._jobs.events_from(job.id, after):
            if isinstance(said, Partial) and (sketch := await self._sketch(job, said)):
                yield number, sketch
            elif isinstance(said, Finish):
                async for at, data in self._ending(said):
                    if number + at > after:
                        yield number + at, data

    async def body(self, finish: Finish) -> bytes:
        """Write the unstreamed answer of a job that succeeded."""
        job = finish.job
        drawn = [await self._drawn(job, record) for record in finish.media]
        shape = shape_of(finish.media[0], request_of(job)) if finish.media else {}
        usage, warnings = usage_of(job, decode(job.binding)), missing_of(finish)
        return images_body(job.created_ms // 1000, drawn, shape, usage, warnings)

    async def _sketch(self, job: Job, partial: Partial) -> bytes:
        """Write an unfinished picture; empty: it is no longer kept, as they are for a day."""
        try:
            drawn = await self._drawn(job, partial.media)
        except GatewayError as error:
            log.info("job %s: a sketch is gone: %s", job.id, error)
            return b""
        members = {**_members(job, partial.media), "partial_image_index": partial.number}
        return image_event(f"{EVENTS[form_of(job)]}.partial_image", drawn, members)

    async def _ending(self, finish: Finish) -> AsyncIterator[tuple[int, bytes]]:
        """Write one event a picture, usage in the last; or the error."""
        job, error = finish.job, finish.error
        if error is not None:
            failed = Failed(error.code, error.message, error.type, error.status, error.param)
            yield 0, error_event(error_object(failed))
            return
        tail = last_members(usage_of(job, decode(job.binding)), missing_of(finish))
        for at, record in enumerate(finish.media):
            members = {**_members(job, record), **(tail if at == len(finish.media) - 1 else {})}
            yield at, image_event(f"{EVENTS[form_of(job)]}.completed", await self._drawn(job, record), members)

    async def drawn(self, base: str, record: MediaRecord, given_as: ImageAs, revised_prompt: str = "") -> Drawn:
        """Give a picture as the client wants it; links begin with `base`."""
        return Drawn(
            url=self._links.url(base, record) if given_as != "b64_json" else "",
            b64_json=await base64_of(self._store, record) if given_as != "url" else "",
            revised_prompt=revised_prompt,
        )

    async def _drawn(self, job: Job, record: MediaRecord) -> Drawn:
        parts = decode(job.binding).parts
        revised = {item.media_id: item.media.revised_prompt for part in parts for item in part.items}
        return await self.drawn(job.link_base, record, telling_of(job).given_as, revised.get(record.id, ""))


def answers_of(chats: ChatAnswers, images: ImageAnswers) -> Callable[[Job], StreamedAnswers]:
    """Give what chooses a job's way of being told: as it was asked for; films as chats are."""
    return lambda job: images if telling_of(job).form in EVENTS else chats


def form_of(job: Job) -> ImagesForm:
    """Say at which of the two endpoints the job was asked for."""
    return "edits" if telling_of(job).form == "edits" else "images"


def request_of(job: Job) -> MediaRequest:
    """Read what was asked for."""
    return msgspec.json.decode(job.request, type=MediaRequest)


def _members(job: Job, record: MediaRecord) -> dict[str, object]:
    return {"created_at": job.created_ms // 1000, **shape_of(record, request_of(job))}
