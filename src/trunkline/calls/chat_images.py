"""A request of the images endpoints for a model that answers over chat: the chat call underneath, told as pictures."""

import time
from collections.abc import Iterator
from typing import Any

from trunkline.calls.chat_media import ChatMediaCall, ChatMediaKit, Prepared
from trunkline.calls.image_answer import ImageAnswers
from trunkline.core.events import Ended, Event, Failed, Finished, Usage, UsageReported
from trunkline.core.media import MediaRecord
from trunkline.ingress.chat_media import Spoken
from trunkline.ingress.openai_chat import error_object
from trunkline.ingress.openai_images import (
    EVENTS,
    Drawn,
    ImageAs,
    ImagesForm,
    error_event,
    image_event,
    images_body,
    last_members,
    shape_of,
)


class ChatImagesCall(ChatMediaCall):
    """Such a call. Its events say only how it ends; then `drawn` holds the pictures."""

    def __init__(
        self, kit: ChatMediaKit, prepared: Prepared, answers: ImageAnswers, given_as: ImageAs, *parts: Any
    ) -> None:
        """`parts`: as `ChatMediaCall` takes them, from the upstreams on."""
        super().__init__(kit, prepared, *parts)
        self.asked = prepared.asked
        self.drawn: list[tuple[MediaRecord, Drawn]] = []
        self._answers = answers
        self._given_as = given_as

    def _failure(self, spoken: list[Spoken]) -> Failed | None:
        failed = super()._failure(spoken)
        if failed is None and not any(one.media for one in spoken):
            words = " ".join(" ".join(one.words for one in spoken).split())
            return Failed("upstream_no_image", f"the model gave no picture: {words[:500]}", status=502)
        return failed

    async def _said(self, spoken: list[Spoken], shown: list[list[MediaRecord]], kept: list[MediaRecord]) -> list[Event]:
        del shown
        for record in kept:
            self.drawn.append((record, await self._answers.drawn(self.caller.link_base, record, self._given_as)))
        return [Finished(one.reason, one.choice) for one in spoken]


class ImagesWriter:
    """Writes such a call's answer: whole, or as events (`http.event_stream` feeds it)."""

    def __init__(self, call: ChatImagesCall, form: ImagesForm) -> None:
        self._call = call
        self._form = form
        self._created = time.time_ns() // 1_000_000_000
        self.usage = Usage()
        self.failed: Failed | None = None

    def feed(self, events: list[Event]) -> None:
        """Take what the events say."""
        for event in events:
            if isinstance(event, UsageReported):
                self.usage = event.usage
            elif isinstance(event, Failed):
                self.failed = event

    def encode(self, events: list[Event]) -> Iterator[bytes]:
        """Write what the events say: each picture when all are there, or the error."""
        self.feed(events)
        for event in events:
            if isinstance(event, Failed):
                yield error_event(error_object(event))
            elif isinstance(event, Ended):
                yield from self._pictures()

    def text(self, _text: str) -> None:
        """Leave text to `encode`, which leaves it out."""

    def body(self) -> bytes:
        """Write the unstreamed answer, when all events were taken."""
        drawn = self._call.drawn
        shape = shape_of(drawn[0][0], self._call.asked)
        return images_body(self._created, [one for _, one in drawn], shape, self.usage, self._warnings)

    @property
    def _warnings(self) -> list[str]:
        return [self._call.missing] if self._call.missing else []

    def _pictures(self) -> Iterator[bytes]:
        drawn = self._call.drawn
        for at, (record, one) in enumerate(drawn, 1):
            tail = last_members(self.usage, self._warnings) if at == len(drawn) else {}
            members = {"created_at": self._created, **shape_of(record, self._call.asked), **tail}
            yield image_event(f"{EVENTS[self._form]}.completed", one, members)
