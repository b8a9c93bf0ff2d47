"""What the outside world is: the ports that use cases speak through and shells implement.

Those of stored state (keys, money, jobs, streams, media index, leases) are in `core.state`, rates in `core.rates`.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct

from trunkline.core.chat import Target, UpstreamRequest
from trunkline.core.events import Progress
from trunkline.core.jobs import Finish, Idempotency, Job, Partial, StoredStream
from trunkline.core.media import MediaFacts, MediaFile

HttpFailure = Literal["connect", "tls", "timeout", "reset", "incomplete", "protocol", "too_large", "address_refused"]


class HttpRequest(Struct, frozen=True):
    """One request to an upstream, whole; header names in lower case."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    connect_s: float = 5.0
    public_only: bool = False
    """Refuse private, loopback, link-local and reserved addresses, at connect time and after every redirect."""
    fresh: bool = False
    """Dial anew, so that the request is never sent twice: for a submit that costs money."""


class HttpError(Exception):
    """The exchange broke. `kind` says how; `sent` whether the request may have reached the upstream."""

    def __init__(self, kind: HttpFailure, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.sent = sent


class HttpResponse(Protocol):
    """An answer whose head has arrived."""

    status: int
    headers: dict[str, str]
    """Names in lower case; of repeated headers the last. Who reads on may clear them."""

    async def read(self) -> bytes:
        """Give the next piece of the body as it came, content codings undone; `b""` at the end.

        Reading slower than the upstream sends stops the upstream (a little over 256 KiB are held).
        Raises HttpError: `reset`, `incomplete` (fewer bytes than promised), `protocol`.
        """

    async def pipe(self, take: Callable[[bytes], bool]) -> bool:
        """Hand each piece to `take` in the very callback that brings it, until `take` says False or all has come.

        What a stream costs beside its bytes is the waking of who reads it: this wakes nobody. True: all has come.
        Raises HttpError as `read` does.
        """

    async def body(self, max_bytes: int) -> bytes:
        """Give the rest of the body at once; raises HttpError as `read` does, and `too_large` beyond `max_bytes`."""

    async def aclose(self) -> None:
        """Let the exchange go: back to the pool when the body was read to its end, else closed at once."""


class MediaStore(Protocol):
    """The bytes of pictures and films, under the hash of their bytes; what they mean is in the media index.

    Raises GatewayError everywhere: `media_refused` (too large, not a picture or film, a bomb), `media_damaged` (cannot
    be decoded, cut short), `storage_unavailable` (disk full, S3 away); then nothing is half kept.
    """

    def receive(self, pieces: AsyncIterator[bytes], max_bytes: int) -> AbstractAsyncContextManager[MediaFile]:
        """Take a file in, piece by piece, never whole in memory; it is gone at the block's end unless kept."""

    async def facts(self, file: MediaFile) -> MediaFacts:
        """Look at the file: size and duration, within decode limits."""

    def convert(self, file: MediaFile, mime_type: str) -> AbstractAsyncContextManager[MediaFile]:
        """Give the same picture as `image/png`, `image/jpeg` or `image/webp`, without metadata; empty: as suits it."""

    def cover(self, file: MediaFile) -> AbstractAsyncContextManager[MediaFile]:
        """Give a JPEG of a film's first telling frame."""

    async def keep(self, file: MediaFile) -> None:
        """Keep the bytes under their hash; the same bytes are kept once."""

    def read(self, sha256: str, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """Give the bytes from `start` to before `end`. Raises GatewayError `not_found` before the first piece."""

    async def delete(self, sha256: str) -> None:
        """Let the bytes go; unknown ones are no error."""


class Upstream(Protocol):
    """Providers, as the job engine and the media intake see them: requests with a credential, and downloads."""

    async def open(
        self, request: UpstreamRequest, target: Target, credential_id: str, *, fresh: bool = False
    ) -> HttpResponse:
        """Send a request with this credential of the target's provider, and wait for the answer's head.

        `fresh`: never send it twice, whatever the connection does (for a submit).
        Raises HttpError; GatewayError `upstream_auth` when the provider has no such credential any longer.
        """

    def download(
        self,
        url: str,
        *,
        max_bytes: int,
        target: Target | None = None,
        credential_id: str = "",
        authorized: bool = False,
    ) -> AsyncIterator[bytes]:
        """Give a file piece by piece, redirects followed, every address checked, time bounded.

        `url` may be a path of the target (`/videos/7/content`). When `authorized`, the credential is sent along, only
        to the provider's own origin.
        Raises GatewayError: `media_refused` (address not allowed, larger than `max_bytes`, not http(s)), which will be
        so again, or `media_unavailable` (status, broken, too slow), which may pass;
        `media_gone`: there is nothing behind the link.
        """


class Jobs(Protocol):
    """The durable engine, as calls see it. Raises what the stores behind it raise."""

    async def start(self, job: Job, idempotency: Idempotency | None = None) -> tuple[Job, bool]:
        """Store a job with its stream and begin it; or give the one that the key stands for (False)."""

    async def get(self, job_id: str) -> Job | None:
        """Give one job, whoever asks: the caller compares `key_id`."""

    async def cancel(self, job_id: str) -> Job | None:
        """Ask for a job to be stopped, wherever it runs; an ended one is given as it is. None: unknown."""

    def events_from(self, job_id: str, after: int = 0) -> AsyncIterator[tuple[int, Progress | Partial | Finish]]:
        """Give what is said of a job after event `after`, numbered from 1, as it happens; always to the Finish.

        Raises GatewayError `stream_not_found`, `stream_expired`.
        """

    async def finish(self, job_id: str) -> Finish:
        """Wait for a job's end. Raises GatewayError `not_found`."""

    async def ended(self, job: Job) -> Finish:
        """Give what came of a job that has ended."""


class EventLog(Protocol):
    """Stored streams, and a way to follow them; raises what the `core.state.StreamStore` behind it raises."""

    async def open(self, stream: StoredStream, idempotency: Idempotency | None = None) -> tuple[StoredStream, bool]:
        """Begin a stream, or give the one that the idempotency key stands for; True: it is new."""

    async def get(self, stream_id: str) -> StoredStream | None:
        """Give one stream, whoever asks: the caller compares `key_id`."""

    async def claim(self, stream_id: str, holder: str) -> StoredStream | None:
        """Take over an open stream as its writer. None: unknown or ended."""

    async def append(self, stream_id: str, generation: int, events: Sequence[bytes]) -> int:
        """Add events, within the bounds of the configuration; gives the last number.

        Repeated after a StorageError, it adds nothing twice.
        """

    async def end(self, stream_id: str, generation: int, state: Literal["ended", "failed"]) -> None:
        """Say that no event follows; may be repeated."""

    def follow(self, stream_id: str, after: int) -> AsyncIterator[tuple[int, bytes]]:
        """Give the events after this number as they come, whoever writes them; ends when the stream has ended.

        Raises GatewayError: `stream_not_found`; `stream_expired` when events after that number are gone.
        """


class AnswerCache(Protocol):
    """Answers of providers, written down, by the name of their question; never raises: what is not there is asked."""

    async def get(self, name: bytes) -> bytes | None:
        """Give what is kept under a name."""

    async def put(self, name: bytes, data: bytes) -> None:
        """Keep an answer for a while, unless it is too large."""


class HttpClient(Protocol):
    """The only door to providers."""

    async def open(self, request: HttpRequest) -> HttpResponse:
        """Send the request and wait for the answer's head; no timeout but `connect_s`.

        A pooled connection that turns out to be dead before the first byte of an answer is replaced once.
        Cancelling closes the connection at once. Raises HttpError.
        """

    async def aclose(self) -> None:
        """Close all connections."""
