"""A chat call: from its route to its last event, with fallback until the answer begins, settled once."""

import asyncio
import random
import time

from msgspec.structs import replace

from trunkline.calls.attempt import Attempt, Take, answers
from trunkline.calls.gate import Admitted
from trunkline.calls.hedge import Race
from trunkline.calls.meter import CacheUse, Meter
from trunkline.calls.upstreams import Upstreams
from trunkline.core.caller import Caller
from trunkline.core.chat import ChatRequest
from trunkline.core.dialect import Said
from trunkline.core.errors import GatewayError
from trunkline.core.events import Event, Failed, Usage
from trunkline.core.money import END_OF_CODE, EndReason, usd
from trunkline.core.route import Route, RouteTarget
from trunkline.core.secret import SHORT_CHARS
from trunkline.ingress.inline_media import InlineMedia
from trunkline.routing import order
from trunkline.routing.fallback import Failure, judge, retry_delay_s, verdict
from trunkline.routing.health import Health

LEFT = ("cancelled", "shutdown")
"""How calls end whose provider may have read the request, and go on with it for nobody."""
MOST_ROUTES = 4096
"""Of so many routes their one attempt is remembered."""


class Targets:
    """What is remembered of targets between calls."""

    def __init__(self) -> None:
        self.health = Health()
        self.plain_options: set[tuple[str, str]] = set()
        """Provider and model of targets that refuse `stream_options`."""
        self.large = asyncio.Lock()
        """Held while a large answer is read; see `attempt.LARGE_BYTES`."""
        self._turn = 0
        self._alone: dict[str, tuple[Route, order.Attempt]] = {}
        """The one attempt of routes that have no other."""

    def plan(self, route: Route) -> list[order.Attempt]:
        """Give the attempts of a call, best first."""
        alone = self._alone.get(route.name)
        if alone is not None and alone[0] is route:
            return [alone[1]]
        self._turn += 1
        if len(route.targets) == 1 and len(route.targets[0].credentials) < 2:
            if len(self._alone) >= MOST_ROUTES:
                self._alone.clear()
            item = route.targets[0]
            attempt = order.Attempt(item, item.credentials[0] if item.credentials else None)
            self._alone[route.name] = (route, attempt)
            return [attempt]
        return order.plan(route, self.health, time.monotonic(), chance=random.random(), turn=self._turn)  # noqa: S311


class ChatCall:
    """One call. `begin` once, then `read` until it gives nothing, or `pipe` until it is True; `close` always."""

    _inline: InlineMedia
    """Of a stream."""
    _tell: Take

    def __init__(  # noqa: PLR0913, PLR0917 - what a call is made of
        self,
        upstreams: Upstreams,
        targets: Targets,
        route: Route,
        request: ChatRequest,
        caller: Caller,
        admitted: Admitted,
    ) -> None:
        self.route = route
        self.request = request
        self.caller = caller
        self.meter = Meter(request, caller, admitted)
        self.attempts = 0
        self.fallback_from = ""
        self.cache: CacheUse = ""
        self._admitted = admitted
        self._upstreams = upstreams
        self._targets = targets
        self._attempt: Attempt | None = None
        self._asked: order.Attempt | None = None
        self._failed: Failed | None = None
        if request.stream:
            self._inline = InlineMedia()

    @property
    def target(self) -> RouteTarget | None:
        """The target that answers, or was asked last."""
        return self._asked.item if self._asked else None

    @property
    def credential(self) -> str:
        """The name of the credential that was used last."""
        return self._asked.key[2] if self._asked else ""

    def cost_usd(self, usage: Usage) -> float | None:
        """Give what the call costs with this usage, as the ledger will have it; None: no price is known."""
        cost = self._admitted.cost(self._asked.item, usage, self.meter.tally) if self._asked else 0
        return None if cost is None else usd(cost)

    async def begin(self) -> list[Event]:
        """Try the route's targets until one answers; give its first events. Raises GatewayError when none does."""
        begun = time.monotonic()
        left = self._targets.plan(self.route)
        failures: list[tuple[Failure, Failed]] = []
        tries = 0
        if self.route.settings.hedge_s is not None and len(left) > 1:
            events = await self._race(self.route.settings.hedge_s, left, failures)
            if events:
                return self._metered(events)
        while left:
            asked = left.pop(0)
            tries = tries + 1 if asked is self._asked else 1
            asked_at = time.monotonic()
            if self._attempt is not None:
                await self._attempt.aclose()
            self._asked = asked
            self._attempt, events = await self._run(asked)
            last = events[-1]
            if type(last) is not Failed or answers(events):
                now, whole = time.monotonic(), not self._attempt.streamed
                self._targets.health.succeeded(asked.key, now, now - asked_at, whole=whole)
                return self._metered(events)
            failure = judge(last.code, last.status, last.retry_after_s, self.route.settings.fallback_on)
            self._targets.health.failed(asked.key, time.monotonic(), failure)
            failures.append((failure, last))
            elapsed_s = time.monotonic() - begun
            delay_s = retry_delay_s(failure, tries, elapsed_s, self.route.settings, random.random())  # noqa: S311
            if delay_s is not None:
                await asyncio.sleep(delay_s)
                left.insert(0, asked)
                continue
            left = order.following(left, asked, failure)
            if left and left[0].item is not asked.item:
                self.fallback_from = self.fallback_from or f"{asked.item.target.provider}:{asked.item.target.model}"
        self._failed = verdict(failures)
        raise _error(self._failed)

    async def read(self) -> list[Event]:
        """Give the next events, none after the last."""
        attempt = self._attempt
        while attempt is not None and not attempt.over:
            events = self._metered(await attempt.read())
            if events:  # a picture that stands in the text already leaves none
                return events
        return []

    async def pipe(self, take: Take) -> bool:
        """Hand the next events to `take` as they come, until it says False; True: there are no more."""
        attempt = self._attempt
        if attempt is None or attempt.over:
            return True
        self._tell = take
        try:
            await attempt.pipe(self._piped)
        finally:
            del self._tell  # who takes holds this call: without a cycle both go at once
        return attempt.over

    def _piped(self, said: Said) -> bool:
        tell = self._tell
        if not isinstance(said, str):
            events = self._metered(said)
            return not events or tell(events)
        self.meter.feed_text(said)  # nearly all of a stream that comes slowly
        spoken = self._inline.spoken
        if 0 not in spoken:
            spoken.append(0)
        return tell(said)

    async def close(self, end_reason: EndReason) -> None:
        """Let the upstream go and settle; `end_reason` is how the client's side ended."""
        failed, asked, attempt = self._failed, self._asked, self._attempt
        if failed is not None and end_reason in {"completed", "failed"}:
            end_reason = END_OF_CODE.get(failed.code, "failed")
        if asked is not None and end_reason == "cancelled":
            self._targets.health.left(asked.key)
        try:
            if attempt is not None:
                await attempt.aclose()
        finally:
            self.meter.settle(
                end_reason,
                target=asked.item if asked else None,
                attempts=self.attempts,
                credential=asked.key[2] if asked else "",
                repairs=attempt.repairs if attempt else {},
                error_code=failed.code if failed else "",
                status=(failed.status or 502) if failed else 200,
                cache=self.cache,
                unanswered=failed is None and self.attempts > 0 and end_reason in LEFT,
                held=attempt.held_usage() if attempt and not self.meter.told else None,
            )

    async def _race(
        self, hedge_s: float, left: list[order.Attempt], failures: list[tuple[Failure, Failed]]
    ) -> list[Event]:
        """Ask the first target, and after `hedge_s` the next as well; give the events of the one that answers first.

        The other is broken off and booked. No events: both failed, and what is left may still be tried.
        """
        race = Race(self._run, left, hedge_s)
        self._asked = left[0]
        try:
            await race.run()
        except asyncio.CancelledError:
            for asked in race.asked:
                self._targets.health.left(asked.key)
            failed = [asked for asked, _ in race.failed]
            reading = [asked for asked in race.asked if asked not in failed]
            self._asked = reading[0] if reading else self._asked  # it is settled by `close`
            for asked in reading[1:]:
                self.meter.lose(asked.item, asked.key[2])
            raise
        for lost in race.lost:
            self._targets.health.left(lost.key)
            self.meter.lose(lost.item, lost.key[2])
        for asked, last in race.failed:
            failure = judge(last.code, last.status, last.retry_after_s, self.route.settings.fallback_on)
            self._targets.health.failed(asked.key, time.monotonic(), failure)
            failures.append((failure, last))
            left[:] = order.following(left, asked, failure)
            self._asked = asked
        first = race.asked[0]
        if race.won is None or race.won[0] is not first:
            self.fallback_from = f"{first.item.target.provider}:{first.item.target.model}"
        if race.won is None:
            return []
        self._asked, self._attempt, events, took_s = race.won
        whole = not self._attempt.streamed
        self._targets.health.succeeded(self._asked.key, time.monotonic(), took_s, whole=whole)
        return events

    async def _run(self, asked: order.Attempt) -> tuple[Attempt, list[Event]]:
        """Ask one target, and once more without what it refuses; give its first events."""
        self.attempts += 1
        self._targets.health.began(asked.key, time.monotonic())
        plain = asked.key[:2] in self._targets.plain_options
        attempt, events = await self._ask(asked, plain=plain)
        if attempt.refused_stream_options and not plain:
            await attempt.aclose()
            attempt, events = await self._ask(asked, plain=True)
            if not isinstance(events[-1], Failed):
                self._targets.plain_options.add(asked.key[:2])
        return attempt, events

    async def _ask(self, asked: order.Attempt, *, plain: bool) -> tuple[Attempt, list[Event]]:
        request, timeouts = self._request_for(asked.item), self.route.settings.timeouts
        salt, large = self.caller.request_id[-12:], self._targets.large
        attempt = Attempt(self._upstreams, asked, request, timeouts, salt, plain_options=plain, large=large)
        try:
            return attempt, await attempt.first()
        except BaseException:
            await attempt.aclose()
            raise

    def _request_for(self, _item: RouteTarget) -> ChatRequest:
        """Give the request as one target is to have it."""
        return self.request

    def _metered(self, events: list[Event]) -> list[Event]:
        if events and type(events[-1]) is Failed:
            self._failed = self._unrepeated(events[-1])
            events = [*events[:-1], self._failed]
        events = self.meter.feed(events)
        if self.request.stream:
            return self._inline.feed(events)
        return InlineMedia().feed(events) if self.meter.media else events

    def _unrepeated(self, failed: Failed) -> Failed:
        """Take the provider's key out of what it says."""
        key = self._asked.credential if self._asked else None
        secret = key.reveal() if key else ""
        if len(secret) >= SHORT_CHARS and secret in failed.message:
            return replace(failed, message=failed.message.replace(secret, "***"))
        return failed


def _error(failed: Failed) -> GatewayError:
    headers = (("retry-after", f"{failed.retry_after_s:g}"),) if failed.retry_after_s else ()
    return GatewayError(
        failed.code, failed.message, status=failed.status, type=failed.type, param=failed.param, headers=headers
    )
