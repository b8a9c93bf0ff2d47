"""One exchange with a provider, whole: request, answer, limits."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.dialect import MediaDecoder, Ready, Refused, Working
from trunkline.core.errors import UpstreamError
from trunkline.core.ports import HttpError, HttpResponse, Upstream

ANSWER_BYTES = 256 << 20
"""The longest answer that is read: some pictures of 20 MB each, inline."""


class Answer(Struct, frozen=True):
    """A provider's answer, read to its end."""

    status: int
    headers: Mapping[str, str]
    body: bytes


@asynccontextmanager
async def exchange(
    upstream: Upstream, request: UpstreamRequest, to: tuple[Target, str], *, within_s: float, fresh: bool = False
) -> AsyncIterator[HttpResponse]:
    """Give the answer's head, to be read in the block; `to` is target and credential.

    Raises HttpError, also for what breaks in the block: then `sent` tells whether the request may have arrived.
    """
    sent = False
    try:
        async with asyncio.timeout(within_s):
            response = await upstream.open(request, *to, fresh=fresh)
            sent = True
            try:
                yield response
            finally:
                await response.aclose()
    except TimeoutError:
        raise HttpError("timeout", f"no whole answer within {within_s:g} s", sent=True) from None
    except HttpError as error:
        error.sent |= sent
        raise


async def ask(upstream: Upstream, request: UpstreamRequest, to: tuple[Target, str], *, within_s: float) -> Answer:
    """Make a request that may be repeated, and read its answer. Raises HttpError."""
    async with exchange(upstream, request, to, within_s=within_s) as response:
        return Answer(response.status, response.headers, await response.body(ANSWER_BYTES))


async def received(response: HttpResponse) -> list[bytes]:
    """Wait for the whole body, and give it in the pieces that came. Raises HttpError."""
    pieces: list[bytes] = []
    total = 0
    while piece := await response.read():
        pieces.append(piece)
        total += len(piece)
        if total > ANSWER_BYTES:
            raise HttpError("too_large", f"the answer is longer than {ANSWER_BYTES} bytes", sent=True)
    return pieces


def is_stream(response: HttpResponse) -> bool:
    """Tell whether an answer comes as events, not as one JSON value."""
    kind = response.headers.get("content-type", "").lower()
    return response.status < 300 and any(word in kind for word in ("event-stream", "ndjson", "jsonl"))


async def said(response: HttpResponse, decoder: MediaDecoder) -> AsyncIterator[Working | Ready | Refused]:
    """Give what a streamed answer says, up to Ready or Refused: one of the two always comes."""
    broken = ""
    try:
        while piece := await response.read():
            for saying in decoder.feed(piece):
                yield saying
                if not isinstance(saying, Working):
                    return
    except HttpError as error:
        broken = str(error)
    for saying in decoder.close():
        yield saying
        return
    yield Refused(UpstreamError("upstream_incomplete", broken or "The provider's stream ended without a result.", 502))
