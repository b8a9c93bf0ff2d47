"""A file fetched from the outside, piece by piece: every hop checked, size and time limited, taken up again once."""

import asyncio
import re
from collections.abc import AsyncGenerator, Coroutine
from typing import TypeVar
from urllib.parse import urljoin

from trunkline.core.ports import HttpClient, HttpError, HttpRequest, HttpResponse
from trunkline.upstream.url import Place, split

REDIRECTS = 5
"""Hops that are followed."""

_REDIRECTING = frozenset({301, 302, 303, 307, 308})

Headers = tuple[tuple[str, str], ...]
T = TypeVar("T")


class DownloadError(Exception):
    """The upstream answered, but not with the file. `status` is its last answer's."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


async def download(  # noqa: PLR0913 - each is a limit of its own
    client: HttpClient,
    url: str,
    *,
    max_bytes: int,
    total_s: float,
    headers: Headers = (),
    public_only: bool = True,
) -> AsyncGenerator[bytes, None]:
    """Yield the pieces of the file behind a URL; close the generator (`contextlib.aclosing`) to let it go early.

    `headers` (credentials among them) go to the URL's own host and to no other; a redirect from https to http is
    refused. A transfer that is cut is taken up once where it broke.
    Raises DownloadError when the answer is not the file; HttpError `too_large` beyond `max_bytes`, `timeout` beyond
    `total_s`, and as the exchange broke.
    """
    source = _Source(
        client, url, headers, public_only=public_only, deadline=asyncio.get_running_loop().time() + total_s
    )
    got = 0
    response = await source.open(0)
    try:
        expected = _length(response)
        while True:
            if expected > max_bytes or got > max_bytes:
                raise HttpError("too_large", f"the file is longer than {max_bytes} bytes", sent=True)
            try:
                piece = await source.in_time(response.read())
            except HttpError as error:
                await response.aclose()
                response = await source.resume(got, error)
                continue
            if not piece:
                return
            got += len(piece)
            if got <= max_bytes:
                yield piece
    finally:
        await response.aclose()


class _Source:
    """Where a file comes from, and what is known of it."""

    def __init__(self, client: HttpClient, url: str, headers: Headers, *, public_only: bool, deadline: float) -> None:
        self._client = client
        self._url = url
        self._headers = headers
        self._public_only = public_only
        self._deadline = deadline
        self._first: HttpResponse | None = None
        self._resumed = False

    async def in_time(self, work: Coroutine[None, None, T]) -> T:
        """Do it before the deadline; raises HttpError `timeout`."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await work
        except TimeoutError as error:
            raise HttpError("timeout", "the download takes too long", sent=True) from error

    async def open(self, start: int) -> HttpResponse:
        """Ask for the file from a byte on, and follow where that leads."""
        url, home = self._url, split(self._url)[0]
        ranged: Headers = ()
        if start and self._first is not None:
            known = self._first.headers
            tag = known.get("etag", "")
            tag = known.get("last-modified", "") if not tag or tag.startswith("W/") else tag
            ranged = (("range", f"bytes={start}-"), *((("if-range", tag),) if tag else ()))
        for _ in range(REDIRECTS + 1):
            place, _ = split(url)
            own = self._headers if _same_host(home, place) else ()
            request = HttpRequest("GET", url, (*own, *ranged), public_only=self._public_only)
            response = await self.in_time(self._client.open(request))
            if response.status not in _REDIRECTING or "location" not in response.headers:
                break
            await response.aclose()
            url = _target(url, response)
            if place.scheme == "https" and split(url)[0].scheme != "https":
                raise DownloadError(response.status, "a redirect from https to http is not followed")
        else:
            raise DownloadError(response.status, f"more than {REDIRECTS} redirects are not followed")
        if response.status != (206 if start else 200):
            await response.aclose()
            raise DownloadError(response.status, f"the upstream answered {response.status} in place of the file")
        self._first = self._first or response
        return response

    async def resume(self, got: int, error: HttpError) -> HttpResponse:
        """Ask for the rest, once; raises the error that cut the file when that does not lead to just the rest."""
        first = self._first
        if self._resumed or error.kind not in ("reset", "incomplete") or first is None or _coded(first):
            raise error
        self._resumed = True
        try:
            response = await self.open(got)
        except (HttpError, DownloadError) as second:
            raise error from second
        total = _length(first)
        rest = re.fullmatch(r"bytes (\d+)-\d+/(\d+|\*)", response.headers.get("content-range", "").strip())
        if got and (rest is None or int(rest[1]) != got or (total and rest[2] not in (str(total), "*"))):
            await response.aclose()
            raise error
        return response


def _target(url: str, response: HttpResponse) -> str:
    """Give where an answer redirects to; some servers write UTF-8 into a header that is Latin-1."""
    try:
        return urljoin(url, response.headers["location"].encode("latin-1").decode())
    except ValueError as error:
        raise DownloadError(response.status, "the upstream redirects to what is not a URL") from error


def _same_host(home: Place, place: Place) -> bool:
    """Say whether a place may see what was meant for home: itself, or itself by https."""
    return place == home or place == Place("https", home.host, 443)


def _length(response: HttpResponse) -> int:
    """Give the length that the head promises, or 0."""
    text = response.headers.get("content-length", "")
    return int(text) if text.isdigit() and not _coded(response) else 0


def _coded(response: HttpResponse) -> bool:
    return response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")
