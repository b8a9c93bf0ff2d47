"""A chat call to an image or video model: its media are fetched and kept, and shown once, in the client's style."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from trunkline.calls.attempt import Take
from trunkline.calls.chat import ChatCall, Targets
from trunkline.calls.gate import Admitted
from trunkline.calls.media_answer import ProgressPlace, told
from trunkline.calls.media_inputs import MediaInputs
from trunkline.calls.media_intake import MediaIntake, Origin
from trunkline.calls.media_shown import MediaShown, missing
from trunkline.calls.upstreams import Upstreams
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.errors import GatewayError
from trunkline.core.events import (
    Ended,
    Event,
    Extras,
    Failed,
    Finished,
    MediaReady,
    Progress,
    ReasoningDelta,
    Started,
    TextDelta,
    UsageReported,
)
from trunkline.core.media import Media, MediaInput, MediaRecord, MediaRequest
from trunkline.core.media_type import EXTENSIONS, SNIFF_BYTES, sniff
from trunkline.core.route import MediaStyle, Route, RouteTarget
from trunkline.core.state import MediaIndex
from trunkline.ingress.chat_media import ChatMedia, Spoken, failure_of
from trunkline.ingress.media_fit import hold_against
from trunkline.ingress.media_style import GAP
from trunkline.ingress.picture_chat import as_chat
from trunkline.policy.made import Made, lost_of, made_of
from trunkline.quirks import QUIRKS

EVERY_S = 1.0
"""Progress is told no more often."""
MOST_MEDIA = 16
"""Of one answer."""
NO_MASKS = frozenset({"mask"})
NO_CALLBACK = "`callback_url` is for media that a job makes; {!r} answers over chat, within the call."


class Prepared(Struct, frozen=True):
    """A chat as each of its targets is to be asked, and what was asked for."""

    route: Route
    """Its targets are those that take the request."""
    requests: tuple[ChatRequest, ...]
    """By target."""
    asked: MediaRequest
    """As the first target takes it; without the pictures to go by."""
    style: MediaStyle

    def of(self, item: RouteTarget) -> ChatRequest:
        """Give the request for one target."""
        return next(request for known, request in zip(self.route.targets, self.requests, strict=True) if known is item)


class ChatMediaKit:
    """What such calls work with; begins them."""

    def __init__(self, intake: MediaIntake, inputs: MediaInputs, index: MediaIndex, shown: MediaShown) -> None:
        self.intake = intake
        self.index = index
        self.shown = shown
        self._inputs = inputs

    async def prepare(
        self, read: Callable[[RouteTarget], MediaRequest], request: ChatRequest, route: Route, caller: Caller
    ) -> Prepared:
        """Read what is asked for, for every target; `request` is, or stands for, the client's chat.

        Raises GatewayError (400) when no target can give it.
        """
        if "callback_url" in request.fields:
            raise GatewayError("invalid_value", NO_CALLBACK.format(route.name), param="callback_url")
        refused: GatewayError | None = None
        taken: list[tuple[RouteTarget, ChatRequest, MediaRequest]] = []
        for item in route.targets:
            if item.target.side != "chat":
                continue
            try:
                asked = hold_against(read(item), NO_MASKS)
                asked = replace(asked, inputs=await self._held(asked, caller))
                chat = as_chat(request, asked, item, [QUIRKS[name] for name in item.target.quirks])
            except GatewayError as error:
                refused = refused or error
            else:
                taken.append((item, chat, asked))
        if not taken:
            raise refused or GatewayError("upstream_unavailable", f"No target of {route.name!r} makes media.")
        style: Any = caller.media_style or caller.key.media_style or route.settings.media_style or "markdown"
        targets, requests, asked_of = zip(*taken, strict=True)
        settings = replace(route.settings, hedge_s=None)  # asking twice may buy twice
        first = replace(asked_of[0], inputs=())
        return Prepared(replace(route, targets=targets, settings=settings), requests, first, style)

    async def _held(self, asked: MediaRequest, caller: Caller) -> tuple[MediaInput, ...]:
        """Give the pictures as a chat's provider can have them: public links, or their bytes."""
        held = []
        for one in asked.inputs:
            try:
                as_sent = sniff(one.data[:SNIFF_BYTES]) in EXTENSIONS
                kept = one if as_sent else await self._inputs.hold(one, caller, "messages", links=True)
            except GatewayError as error:
                if one.former and error.code == "invalid_value":
                    continue
                raise
            held.append(replace(kept, data=await self.intake.load(kept.sha256)) if kept.sha256 else kept)
        return tuple(held)


class ChatMediaCall(ChatCall):
    """Such a call. Words and media come when the answer is whole; before that, its progress."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a call is made of
        self,
        kit: ChatMediaKit,
        prepared: Prepared,
        upstreams: Upstreams,
        targets: Targets,
        request: ChatRequest,
        caller: Caller,
        admitted: Admitted,
    ) -> None:
        super().__init__(upstreams, targets, prepared.route, request, caller, admitted)
        self.meter.kind = prepared.route.kind
        self._kit = kit
        self._prepared = prepared
        self._answer = ChatMedia(prepared.route.kind)
        self._loop = asyncio.get_running_loop()
        self._begun_at = self._told_at = self._loop.time()
        self._told = ""
        self.missing = ""
        """Which media could not be kept, if any; said once the answer is there."""

    async def begin(self) -> list[Event]:
        """See `ChatCall`. A failure before anything could be told raises, too."""
        try:
            events = await self._until_said(await super().begin())
        except GatewayError as error:
            raise _final(error) from None
        last = events[-1]
        if isinstance(last, Failed) and not any(isinstance(event, TextDelta | ReasoningDelta) for event in events):
            raise _final(GatewayError(last.code, last.message, status=last.status, type=last.type, param=last.param))
        return events

    async def read(self) -> list[Event]:
        """See `ChatCall`."""
        events = await super().read()
        return await self._until_said(events) if events else []

    async def pipe(self, take: Take) -> bool:
        """See `ChatCall`; what media become is waited for."""
        while events := await self.read():
            if not take(events):
                return False
        return True

    def _request_for(self, item: RouteTarget) -> ChatRequest:
        return self._prepared.of(item)

    def _metered(self, events: list[Event]) -> list[Event]:
        """Leave metering until the media are known."""
        if events and isinstance(events[-1], Failed):
            self._failed = self._unrepeated(events[-1])
            return [*events[:-1], self._failed]
        return events

    async def _until_said(self, events: list[Event]) -> list[Event]:
        """Read on until there is something to tell: more than that the answer has begun."""
        said: list[Event] = []
        while events:
            said += self._told_of(self._answer.feed(events))
            if self._answer.ended:
                return [*said, *await self._ending()]
            if any(not isinstance(event, Started | Extras) for event in said):
                break
            events = await super().read()
        return self.meter.feed(said)

    def _told_of(self, events: list[Event]) -> list[Event]:
        """Write progress as the client wants it told: each line another, at most one a second."""
        out: list[Event] = []
        for event in events:
            if not isinstance(event, Progress):
                out.append(event)
                continue
            now = self._loop.time()
            if now - self._told_at < EVERY_S:
                continue
            place: ProgressPlace = self.route.settings.progress
            known = event.percent is not None or event.text
            said = event if known else Progress(text=f"{now - self._begun_at:.0f} s")
            lines = told(said, place)
            if lines and f"{said.percent} {said.text}" != self._told:
                self._told, self._told_at = f"{said.percent} {said.text}", now
                out += lines
        return out

    async def _ending(self) -> list[Event]:
        """Fetch the media, and give the whole answer; or say why there is none."""
        async with self._targets.large:
            await asyncio.sleep(0)
            spoken = list(self._answer.spoken())
        usage: list[Event] = [self._answer.usage] if self._answer.usage else []
        failed = self._failure(spoken)
        if failed is None:
            kept: dict[str, MediaRecord] = {}
            try:
                shown, failed = await self._kept(spoken, kept)
            except asyncio.CancelledError:
                self.meter.feed([*usage, *self._lost(spoken)])
                raise
            if failed is not None:
                usage += self._lost(spoken)
        if failed is not None:
            self._failed = self._unrepeated(failed)
            return self.meter.feed([*usage, self._failed])[-1:]
        counted: list[Event] = [TextDelta(one.words, one.choice) for one in spoken if one.words]
        counted += self._counted([made_of(self._prepared.asked, record) for record in kept.values()])
        metered = self.meter.feed([*counted, *usage, Ended()])
        events = await self._said(spoken, shown, list(kept.values()))
        return [*events, *(event for event in metered if isinstance(event, UsageReported)), Ended()]

    def _lost(self, spoken: list[Spoken]) -> list[Event]:
        """Count media that nobody gets: they are billed by the provider all the same."""
        return self._counted([lost_of(self._prepared.asked) for one in spoken for _ in one.media])

    def _counted(self, made: list[Made]) -> list[Event]:
        """Note what was made, for the bill; gives what the meter counts it by."""
        self.meter.made = tuple(made)
        return [MediaReady(Media("image", url="-")) for _ in made]

    def _failure(self, spoken: list[Spoken]) -> Failed | None:
        """Say why there is no medium, where that is a failure."""
        return failure_of(spoken, self.route.kind)

    async def _said(self, spoken: list[Spoken], shown: list[list[MediaRecord]], kept: list[MediaRecord]) -> list[Event]:
        """Give the whole answer but for its usage; `shown` are the media of each choice."""
        events: list[Event] = [ReasoningDelta(self.missing)] if self.missing else []
        for one, records in zip(spoken, shown, strict=True):
            events += await self._choice(one, records)
        if kept:
            media = self._kit.shown.members(self.caller.link_base, kept, await self._covers(kept))
            events.append(Extras({"media": Raw(msgspec.json.encode(media))}))
        return [*events, *(Finished(one.reason, one.choice) for one in spoken)]

    async def _choice(self, spoken: Spoken, records: Sequence[MediaRecord]) -> list[Event]:
        """Give one choice's words and media as one piece."""
        if not records:
            return [TextDelta(spoken.words, spoken.choice)] if spoken.words else []
        before = spoken.words + GAP if spoken.words else ""
        style, covers = self._prepared.style, await self._covers(records)
        piece = await self._kit.shown.piece(style, self.caller.link_base, records, covers, before, spoken.choice)
        words: list[Event] = [TextDelta(spoken.words, spoken.choice)] if isinstance(piece, Extras) and before else []
        return [*words, piece]

    async def _kept(
        self, spoken: list[Spoken], kept: dict[str, MediaRecord]
    ) -> tuple[list[list[MediaRecord]], Failed | None]:
        """Take the media in, each bytes once; a failure only where there is none at all."""
        shown: list[list[MediaRecord]] = []
        failed: Failed | None = None
        wanted = bad = 0
        for one in spoken:
            records = []
            wanted += len(one.media)
            for medium in one.media[:MOST_MEDIA]:
                try:
                    record = await self._take(medium)
                except GatewayError as error:
                    failed = failed or Failed(error.code, error.message, error.type, error.status)
                    bad += 1
                    continue
                if record.sha256 not in kept:
                    kept[record.sha256] = record
                    records.append(record)
            bad += len(one.media[MOST_MEDIA:])
            shown.append(records)
        if kept and bad:
            why = failed.message if failed else f"at most {MOST_MEDIA} are taken."
            self.missing = missing(self.route.kind, wanted - bad, wanted, why)
        return shown, None if kept else failed

    async def _take(self, medium: Media) -> MediaRecord:
        item, asked = self.target, self._prepared.asked
        assert item is not None  # noqa: S101 - it has answered
        origin = Origin(
            key_id=self.caller.key.id,
            model=self.request.model,
            target=item.target,
            credential_id=self.credential,
            output_format=asked.output_format or asked.convert_to or "" if medium.kind == "image" else "",
        )
        return await self._kit.intake.take(medium, origin)

    async def _covers(self, records: Sequence[MediaRecord]) -> dict[str, MediaRecord]:
        found = {one.id: await self._kit.index.get(one.cover_id) for one in records if one.cover_id}
        return {name: cover for name, cover in found.items() if cover is not None}


def _final(error: GatewayError) -> GatewayError:
    """Tell client libraries not to ask again by themselves: it may buy a second picture."""
    headers = (*error.headers, ("x-should-retry", "false"))
    return GatewayError(
        error.code, error.message, status=error.status, type=error.type, param=error.param, headers=headers
    )
