"""What the outside world is: the ports that use cases speak through and shells implement."""

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

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


class HttpError(Exception):
    """The exchange broke. `kind` says how; `sent` whether the request may have reached the upstream."""

    def __init__(self, kind: HttpFailure, message: str, *, sent: bool = False) -> None:
        super().__init__(message)
        self.kind = kind
        self.sent = sent


class HttpResponse(Protocol):
    """An answer whose head has arrived."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case; of repeated headers the last."""

    async def read(self) -> bytes:
        """Give the next piece of the body as it came, content codings undone; `b""` at the end.

        Reading slower than the upstream sends stops the upstream (at most 256 KiB are held).
        Raises HttpError: `reset`, `incomplete` (fewer bytes than promised), `protocol`.
        """

    async def aclose(self) -> None:
        """Let the exchange go: back to the pool when the body was read to its end, else closed at once."""


class HttpClient(Protocol):
    """The only door to providers."""

    async def open(self, request: HttpRequest) -> HttpResponse:
        """Send the request and wait for the answer's head; no timeout but `connect_s`.

        A pooled connection that turns out to be dead before the first byte of an answer is replaced once.
        Cancelling closes the connection at once. Raises HttpError.
        """

    async def aclose(self) -> None:
        """Close all connections."""
