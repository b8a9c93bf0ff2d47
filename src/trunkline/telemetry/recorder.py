"""Recordings of what upstreams really sent, one file a call: `inspect` reads them, `replay` plays them."""

import asyncio
import logging
import os
import re
import secrets as chance
import time
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

from trunkline.calls import traces
from trunkline.calls.upstreams import Recorder, Upstreams
from trunkline.core.caller import Caller
from trunkline.core.chat import UpstreamRequest
from trunkline.core.ports import HttpError, HttpResponse
from trunkline.core.secret import SHORT_CHARS
from trunkline.inspection import recording
from trunkline.routing.order import Attempt

_log = logging.getLogger(__name__)

MOST_BYTES = 16 * 1024 * 1024
"""What is kept of one answer."""
MOST_TOTAL_BYTES = 1024 * 1024 * 1024
"""What is kept of all; the oldest recordings go first."""
SUFFIX = ".recording.txt"
_SECRET_LIKE = re.compile(
    rb"(?:sk|pk|rk|xai|gsk|hf|r8|key)[-_][A-Za-z0-9_-]{16,}|AIza[A-Za-z0-9_-]{20,}|AKIA[A-Z0-9]{12,}"
    rb"|(?<=[Bb]earer )[A-Za-z0-9._~+/=-]{8,}"
    rb"|(?<=[?&]key=)[^&\s\"']+|(?<=api_key=)[^&\s\"']+|(?<=[Tt]oken=)[^&\s\"']+|(?<=[Ss]ignature=)[^&\s\"']+"
    rb"|(?<=[?&]sig=)[^&\s\"']+"
)
PRIVATE_HEADER = re.compile(r"cookie|auth|token|secret|key|credential|organization", re.IGNORECASE)
_NOT_KEPT = ("content-length", "content-encoding", "transfer-encoding", "connection", "keep-alive")
"""Headers that say how the bytes travelled, which the recording says itself."""
_ODD = re.compile(r"[^\w.-]")


class Keeper(Protocol):
    """Takes what was listened to. `most_bytes` is how much of an answer it wants."""

    most_bytes: int

    async def keep(self, name: str, facts: Mapping[str, str], reads: list[tuple[float, bytes]]) -> None:
        """Keep one exchange: what is known of it, and its reads (seconds since the request, bytes)."""


class FileRecorder:
    """Implements `calls.upstreams.Recorder`: files in a directory, for all calls or for those of marked keys."""

    most_bytes = MOST_BYTES

    def __init__(self, directory: Path, *, always: bool) -> None:
        self._directory = directory
        self._always = always

    def over(self, upstreams: Upstreams, caller: Caller, model: str) -> Upstreams:
        """Give upstreams that are listened to, where the configuration or the caller's key says so."""
        if not self._always and not caller.key.record:
            return upstreams
        return _Recorded(upstreams, self, caller.request_id, model)

    async def keep(self, name: str, facts: Mapping[str, str], reads: list[tuple[float, bytes]]) -> None:
        """Write a recording; a directory that cannot be written to is logged, and costs no call."""
        try:
            await asyncio.to_thread(self._write, name, facts, reads)
        except OSError as error:
            _log.warning("cannot record to %s: %s", self._directory, error.strerror)

    def _write(self, name: str, facts: Mapping[str, str], reads: list[tuple[float, bytes]]) -> None:
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._make_room(sum(len(data) for _, data in reads))
        path = self._directory / name
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.writelines(recording.encode(facts, reads))

    def _make_room(self, needed: int) -> None:
        kept = sorted(self._directory.glob(f"*{SUFFIX}"))
        sizes = {path: path.stat().st_size for path in kept}
        total = sum(sizes.values()) + needed
        for path in kept:
            if total <= MOST_TOTAL_BYTES:
                return
            path.unlink(missing_ok=True)
            total -= sizes[path]


def exchange_of(
    facts: Mapping[str, str],
    reads: list[tuple[float, bytes]],
    *,
    request: str = "",
    asked_s: float = 0.0,
    took_s: float = 0.0,
) -> traces.Exchange:
    """Write what a `Keeper` is given as an exchange of a trace."""
    return traces.Exchange(
        request=request,
        asked_s=asked_s,
        took_s=took_s,
        status=int(facts["status"]),
        headers=[(key[7:], value) for key, value in facts.items() if key.startswith("header-")],
        size=int(facts["size"]),
        truncated="truncated" in facts,
        ended=facts["ended"],
        reads=reads,
    )


class Tracer:
    """Implements `calls.upstreams.Recorder` around another: the calls that are to be traced are kept in memory too."""

    most_bytes = traces.MOST_BYTES

    def __init__(self, recorder: Recorder, kept: traces.Traces) -> None:
        self._recorder = recorder
        self._kept = kept

    def over(self, upstreams: Upstreams, caller: Caller, model: str) -> Upstreams:
        """Give upstreams that are listened to, where the caller wants it."""
        upstreams = self._recorder.over(upstreams, caller, model)
        return _Recorded(upstreams, self, caller.request_id, model) if caller.trace else upstreams

    async def keep(self, name: str, facts: Mapping[str, str], reads: list[tuple[float, bytes]]) -> None:  # noqa: ARG002 - the port's
        """Keep an exchange in memory."""
        provider, _, upstream_model = facts["target"].partition(":")
        await self._kept.keep(
            traces.Trace(
                request_id=facts["call"],
                model=facts["asked for"],
                provider=provider,
                upstream_model=upstream_model,
                started_at=datetime.fromisoformat(facts["recorded"]).timestamp(),
                exchanges=[exchange_of(facts, reads)],
            )
        )


class _Recorded:
    """Upstreams of one call, listened to; implements `calls.upstreams.Upstreams`."""

    def __init__(self, upstreams: Upstreams, recorder: Keeper, request_id: str, model: str) -> None:
        self._upstreams = upstreams
        self._recorder = recorder
        self._request_id = request_id
        self._model = model
        self._tries = 0

    async def open(self, asked: Attempt, request: UpstreamRequest, *, connect_s: float) -> HttpResponse:
        """Send the request on; its answer is kept when it is let go."""
        self._tries += 1
        sent_at = time.monotonic()
        moment = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        response = await self._upstreams.open(asked, request, connect_s=connect_s)
        secrets = _secrets(asked)
        target = asked.item.target
        facts = {
            "target": f"{target.provider}:{target.model}",
            "dialect": target.dialect,
            "asked for": self._model,
            "call": self._request_id,
            "request": shown(f"{request.method} {request.path}", secrets),
            "recorded": moment,
            "status": str(response.status),
        }
        facts |= shown_headers(response, secrets)
        stamp = moment.replace("-", "").replace(":", "")
        name = f"{stamp}-{_ODD.sub('_', self._request_id)[:64]}-{self._tries}-{chance.token_hex(3)}{SUFFIX}"
        return RecordedResponse(response, self._recorder, name, facts, secrets, sent_at)


class RecordedResponse:
    """An answer whose bytes are kept as they are read; implements `core.ports.HttpResponse`."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a recording is made of
        self,
        response: HttpResponse,
        recorder: Keeper,
        name: str,
        facts: dict[str, str],
        secrets: list[bytes],
        sent_at: float,
    ) -> None:
        self.status = response.status
        self.headers = response.headers
        self._response = response
        self._recorder = recorder
        self._name = name
        self._facts = facts
        self._secrets = secrets
        self._sent_at = sent_at
        self._reads: list[tuple[float, bytes]] = []
        self._bytes = 0
        self._size = 0
        self._ended = "left"

    async def read(self) -> bytes:
        """Give the next piece, and keep it."""
        try:
            data = await self._response.read()
        except HttpError:
            self._ended = "broken"
            raise
        if data:
            self._keep(data)
        else:
            self._ended = "complete"
        return data

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand over each piece, and keep it."""

        def kept(data: bytes) -> bool:
            self._keep(data)
            return take(data)

        try:
            whole = await self._response.pipe(kept)
        except HttpError:
            self._ended = "broken"
            raise
        if whole:
            self._ended = "complete"
        return whole

    async def body(self, max_bytes: int) -> bytes:
        """Give the rest of the body, and keep it."""
        data = await self._response.body(max_bytes)
        self._keep(data)
        self._ended = "complete"
        return data

    async def aclose(self) -> None:
        """Let the exchange go, and write what was kept, once."""
        try:
            await self._response.aclose()
        finally:
            name, self._name = self._name, ""
            if name:
                told = {"size": str(self._size), "ended": self._ended}
                await self._recorder.keep(name, self._facts | told, self._masked())

    def _keep(self, data: bytes) -> None:
        self._size += len(data)
        kept = data[: self._recorder.most_bytes - self._bytes]
        if len(kept) < len(data):
            self._facts["truncated"] = f"after {self._recorder.most_bytes} bytes"
        if kept:
            self._bytes += len(kept)
            self._reads.append((time.monotonic() - self._sent_at, kept))

    def _masked(self) -> list[tuple[float, bytes]]:
        """Give the reads with secrets masked, also those that two reads share."""
        whole = masked(b"".join(data for _, data in self._reads), self._secrets)
        reads, position = [], 0
        for at_s, data in self._reads:
            reads.append((at_s, whole[position : position + len(data)]))
            position += len(data)
        return reads


def masked(data: bytes, secrets: Iterable[bytes]) -> bytes:
    """Put stars over known secrets and over what looks like one; the length stays."""
    for secret in secrets:
        data = data.replace(secret, b"*" * len(secret))
    return _SECRET_LIKE.sub(lambda found: b"*" * len(found.group()), data)


def shown_headers(response: HttpResponse, secrets: Iterable[bytes]) -> dict[str, str]:
    """Give the headers that matter, without secrets, each as `header-NAME`."""
    return {
        f"header-{name}": shown(value, secrets)
        for name, value in response.headers.items()
        if name not in _NOT_KEPT and not PRIVATE_HEADER.search(name)
    }


def shown(text: str, secrets: Iterable[bytes]) -> str:
    """Give a text with secrets masked."""
    return masked(text.encode("utf-8", "replace"), secrets).decode("utf-8", "replace")


def _secrets(asked: Attempt) -> list[bytes]:
    """Give the secrets that this target's requests carry."""
    known = [asked.credential.reveal()] if asked.credential else []
    known += [value.reveal() for value in asked.item.provider.headers.values()]
    return [secret.encode() for secret in known if len(secret) >= SHORT_CHARS]
