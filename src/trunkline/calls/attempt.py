"""One try at one target: its request, its answer as events, its time limits."""

import asyncio
from collections.abc import Callable

from msgspec.structs import replace

from trunkline.calls.deadline import Deadline
from trunkline.calls.upstreams import Upstreams, retry_after
from trunkline.core.chat import ChatRequest, UpstreamRequest
from trunkline.core.dialect import Said
from trunkline.core.errors import GatewayError, UpstreamError
from trunkline.core.events import Event, Failed, Usage
from trunkline.core.notes import Notes
from trunkline.core.ports import HttpError, HttpResponse
from trunkline.core.route import Timeouts
from trunkline.core.stream import ANSWERS
from trunkline.dialects import CHAT_DIALECTS
from trunkline.pipeline import ChatLine
from trunkline.quirks import QUIRKS
from trunkline.routing import order
from trunkline.wire.frame import MAX_EVENT_BYTES

Take = Callable[[Said], bool]
"""Takes events, or the text that is all that was said; False: no more for now."""
ERROR_BODY_BYTES = 1024 * 1024
LARGE_BYTES = 1 << 20
"""Answers, and events, longer than this are read one in a turn of the loop: a picture of 20 MB takes 12 ms or more.

Requests with pictures are built so, too.
"""
TURNS_BETWEEN = 2
"""So that a small stream's chunk, which takes two turns from socket to socket, waits for one large answer at most."""
LINGER_S = 5.0
"""How long an answer that is whole waits for its last numbers."""
LINGER_MARKED_S = 0.25
"""How long it waits for the connection's end when the end mark has come."""
_FRAMING = {"data_prefix_missing", "event_unterminated", "json_over_lines", "done_missing", "message_for_delta"}
_FAILURES = {
    "connect": ("upstream_unavailable", 503),
    "tls": ("upstream_unavailable", 503),
    "address_refused": ("upstream_unavailable", 503),
    "timeout": ("upstream_timeout", 504),
    "reset": ("upstream_incomplete", 502),
    "incomplete": ("upstream_incomplete", 502),
    "protocol": ("upstream_error", 502),
    "too_large": ("upstream_error", 502),
}


_ANSWERS = frozenset(ANSWERS)


class Attempt:
    """Reads one target's answer. `first` once, then `read` or `pipe` until `over`; `aclose` always."""

    _line: ChatLine  # of a stream; an answer that comes whole seldom needs one
    _take: Take

    def __init__(  # noqa: PLR0913 - what an attempt is made of
        self,
        upstreams: Upstreams,
        asked: order.Attempt,
        request: ChatRequest,
        timeouts: Timeouts,
        salt: str,
        *,
        plain_options: bool,
        large: asyncio.Lock,
    ) -> None:
        quirks = asked.item.target.quirks
        if quirks and not request.stream and any(QUIRKS[name].streamed for name in quirks):
            request = replace(request, stream=True)
        self.notes = Notes()
        self.streamed = request.stream
        """Whether the target is asked for a stream."""
        self._upstreams = upstreams
        self._request = request
        self._timeouts = timeouts
        self._asked = asked
        self._plain_options = plain_options
        self._large = large
        self._salt = salt
        self._dialect = CHAT_DIALECTS[asked.item.target.dialect]
        self._loop = loop = asyncio.get_running_loop()
        self._deadline = Deadline(loop, self._limit)
        self._begun_at = loop.time()
        self._alive_at = 0.0
        self._whole_at = 0.0  # since when nothing but numbers may follow
        self._response: HttpResponse | None = None
        self._lined = self._answering = self._labelled = False  # has a line; has begun; is labelled as JSON
        self._held_bytes = 0  # of the event that is not whole
        self._later = b""  # of a large event that may be whole, to be read in a turn of its own; also by who reads next
        self.refused_stream_options = False

    @property
    def over(self) -> bool:
        """Whether the last event, `Ended` or `Failed`, has been given; asked of an attempt that has begun."""
        return not self._lined or self._line.over

    def held_usage(self) -> Usage | None:
        """Give what the provider had counted of an answer that was cut."""
        return self._line.held_usage() if self._lined else None

    @property
    def repairs(self) -> dict[str, int]:
        """What was repaired, by name. A body that was asked for whole is no stream, and departs from none."""
        if self.streamed or not self.notes.counts:
            return self.notes.counts
        return {name: count for name, count in self.notes.counts.items() if name not in _FRAMING}

    async def first(self) -> list[Event]:
        """Send the request and read until the answer begins, or fails: then the last event is `Failed`."""
        pieces: list[bytes] = []
        self._deadline.arm()
        try:
            return await self._begin(pieces)
        except GatewayError as error:
            return [Failed(error.code, error.message, error.type, error.status, error.param)]
        except HttpError as error:
            return self._broken(error, pieces)
        except asyncio.CancelledError:
            if self._deadline.caught():
                return self._late(pieces)
            raise
        finally:
            self._deadline.disarm()

    async def read(self) -> list[Event]:
        """Give the next events of a stream; wait only when nothing has arrived."""
        self._alive_at = self._loop.time()
        self._deadline.arm()
        try:
            return await self._next()
        except HttpError as error:
            return self._line.close(f"the upstream's connection broke: {error}")
        except asyncio.CancelledError:
            if self._deadline.caught():
                return self._timed_out()
            raise
        finally:
            self._deadline.disarm()

    async def pipe(self, take: Take) -> None:
        """Hand the next events to `take` as they come, until it says False or they are the last."""
        self._take = take
        try:
            await self._hand_on(take)
        finally:
            del self._take  # it holds this attempt: without a cycle both go at once

    async def _hand_on(self, take: Take) -> None:
        response, line = self._answer(), self._line
        while not line.over:
            self._later = b""
            self._alive_at = self._loop.time()
            self._deadline.arm()
            try:
                if await response.pipe(self._fed):
                    events = line.close(labelled=self._labelled)
                elif data := self._later:
                    events = await self._feed_large(data)
                    self._held_bytes = 0 if events else self._held_bytes + len(data)
                else:
                    return
            except HttpError as error:
                events = line.close(f"the upstream's connection broke: {error}")
            except asyncio.CancelledError:
                if not self._deadline.caught():
                    raise
                events = self._timed_out()
            finally:
                self._deadline.disarm()
            if events and not take(events):
                return

    def _fed(self, data: bytes) -> bool:
        """Read bytes of a stream that has begun; False: no more for now."""
        if self._held_bytes > LARGE_BYTES and b"}" in data:
            self._later = data
            return False
        line, take = self._line, self._take
        said = line.lone(data)
        if isinstance(said, str):
            self._alive_at = self._loop.time()
            self._held_bytes = 0
            return take(said)
        events = line.feed(data, lone=False) if said is None else said
        self._alive_at = self._loop.time()
        if not events:
            self._held_bytes += len(data)
        else:
            self._whole_at = self._held_bytes = 0
        if line.ending:
            self._deadline.arm()
            return not events or (take(events) and not line.over)
        return not events or take(events)

    async def _begin(self, pieces: list[bytes]) -> list[Event]:
        """Send the request and read; `pieces` are what has come of an unstreamed answer, or of an error."""
        if self._request.said is None:
            built = self._build()
        else:  # a copy of its pictures
            async with self._large:
                await _others()
                built = self._build()
        response = self._response = await self._upstreams.open(self._asked, built, connect_s=self._timeouts.connect_s)
        if response.status >= 400:
            while sum(map(len, pieces)) < ERROR_BODY_BYTES and (piece := await response.read()):
                pieces.append(piece)
            return [self._refused(response, pieces)]
        if not self.streamed:
            return await self._whole(response, pieces)
        self._labelled = _is_json(response)
        response.headers.clear()  # all is read, and a stream may be long
        self._begin_line()
        events = await self._next()
        while not answers(events) and not self._line.over:
            self._deadline.arm()
            events += await self._next()
        return events

    async def _next(self) -> list[Event]:
        """Read a stream until it says something."""
        response, line = self._answer(), self._line
        while data := self._later or await response.read():
            self._alive_at = self._loop.time()
            large = self._held_bytes > LARGE_BYTES and b"}" in data
            events = await self._feed_large(data) if large else line.feed(data)
            if events:
                self._answering = True
                self._whole_at = self._held_bytes = 0
                return events
            self._held_bytes += len(data)
            if line.ending:
                self._deadline.arm()
        return line.close(labelled=self._labelled)

    async def _feed_large(self, data: bytes) -> list[Event]:
        """Read on in an event that is large, and may be whole by now."""
        self._later = data
        self._deadline.disarm()
        async with self._large:
            await _others()
            self._later = b""
            events = self._line.feed(data)
        self._alive_at = self._loop.time()
        self._deadline.arm()
        return events

    async def _whole(self, response: HttpResponse, pieces: list[bytes]) -> list[Event]:
        """Read an unstreamed answer to its end."""
        size = 0
        while data := await response.read():
            self._alive_at = self._loop.time()
            pieces.append(data)
            size += len(data)
            if size > MAX_EVENT_BYTES:
                return [Failed("upstream_malformed", "the provider's answer is too large", status=502)]
        if len(pieces) == 1:
            return self._read_whole(pieces[0])
        self._deadline.disarm()
        async with self._large:
            body = b"".join(pieces)
            pieces.clear()
            if size > LARGE_BYTES:
                await _others()
            return self._read_whole(body)

    def _read_whole(self, body: bytes) -> list[Event]:
        """Read an unstreamed answer: at one go where it is as usual."""
        whole = self._dialect.whole
        said = whole(body) if whole is not None and not self._asked.item.target.quirks else None
        return self._begin_line().whole(body) if said is None else said

    def _begin_line(self) -> ChatLine:
        request, quirks = self._request, self._asked.item.target.quirks
        self._line = line = ChatLine(self._dialect, self.notes, quirks=quirks, n=request.n, salt=self._salt)
        self._lined = True
        line.offer(request.fields.get("tools"))
        return line

    def _answer(self) -> HttpResponse:
        assert self._response is not None  # noqa: S101 - `first` has opened it
        return self._response

    async def aclose(self) -> None:
        """Let the target go: a call that is not over is broken off."""
        self._deadline.close()
        if self._response is not None:
            await self._response.aclose()

    def _build(self) -> UpstreamRequest:
        request, target = self._request, self._asked.item.target
        if target.quirks:
            request = replace(request, fields=dict(request.fields))
            for name in target.quirks:
                change = QUIRKS[name].request
                if change is not None:
                    change(request.fields)
        if self._plain_options:
            target = replace(target, drop=(*target.drop, "stream_options"))
        return self._dialect.build(request, target)

    def _broken(self, error: HttpError, pieces: list[bytes]) -> list[Event]:
        """Say how the exchange broke before the answer began, or before an unstreamed one was whole."""
        response = self._response
        if response is None:
            code, status = _FAILURES[error.kind]
            what = "provider's answer cannot be read" if error.kind == "protocol" else "provider could not be reached"
            return [Failed(code, f"the {what}: {error}", status=status)]
        if response.status >= 400:
            return [self._refused(response, pieces)]
        line = self._line if self._lined else self._begin_line()
        events = line.feed(b"".join(pieces)) if pieces else []
        return events + line.close(f"the upstream's connection broke: {error}")

    def _late(self, pieces: list[bytes]) -> list[Event]:
        """Say that the time was over before the answer began, or before an unstreamed one was whole."""
        if self._response is None:
            return [_timeout(self._timeouts.first_event_s, "the provider did not answer within")]
        return [self._refused(self._response, pieces)] if self._response.status >= 400 else self._timed_out()

    def _refused(self, response: HttpResponse, pieces: list[bytes]) -> Failed:
        """Read an error answer as far as it has come: its status says most."""
        body = b"".join(pieces)
        error = self._dialect.error(response.status, body, retry_after(response.headers))
        self.refused_stream_options = response.status in (400, 422) and b"stream_options" in body
        return _failed(error)

    def _limit(self) -> float:
        """Until when to wait for the next bytes."""
        times = self._timeouts
        if self._lined and self._line.finished:
            self._whole_at = self._whole_at or self._loop.time()
            return self._whole_at + min(LINGER_MARKED_S if self._line.marked else LINGER_S, times.idle_s)
        if self._answering:
            return self._alive_at + times.idle_s
        if self._alive_at:  # comments, white space: the upstream lives
            return min(self._begun_at + times.max_wait_s, self._alive_at + max(times.first_event_s, times.idle_s))
        return self._begun_at + times.first_event_s

    def _timed_out(self) -> list[Event]:
        if self._lined and self._line.finished:
            return self._line.close()
        limit = self._timeouts.idle_s if self._answering else self._timeouts.first_event_s
        what = "the provider sent nothing for" if self._answering else "the provider's answer did not begin within"
        self.notes.add("upstream_incomplete")
        failed = _timeout(limit, what)
        return self._line.fail(failed) if self._lined else [failed]


def answers(events: list[Event]) -> bool:
    """Say whether an answer has begun: from there on it is this target's answer, and its failure."""
    for event in events:  # noqa: SIM110 - half the time of `any`
        if type(event) in _ANSWERS:
            return True
    return False


async def _others() -> None:
    """Let others have their turns."""
    for _ in range(TURNS_BETWEEN):
        await asyncio.sleep(0)


def _is_json(response: HttpResponse) -> bool:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"


def _failed(error: UpstreamError) -> Failed:
    return Failed(error.code, error.message, error.type, error.status, error.param, error.retry_after_s)


def _timeout(limit_s: float, what: str) -> Failed:
    return Failed("upstream_timeout", f"{what} {limit_s:g} s", status=504)
