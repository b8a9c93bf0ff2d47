"""What the tests of the upstream client say and hear on the wire."""

import asyncio

from raw_upstream import Peer, RawUpstream, Script

from trunkline.core.ports import HttpError, HttpRequest, HttpResponse

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
CHUNKED = HEAD + b"transfer-encoding: chunked\r\n\r\n"


def post(upstream: RawUpstream, body: bytes = b"{}", *, fresh: bool = False) -> HttpRequest:
    return HttpRequest("POST", upstream.url, (), body, fresh=fresh)


async def read_to_the_end(response: HttpResponse) -> tuple[bytes, str]:
    """What could be read, and how it ended."""
    got = b""
    try:
        while piece := await response.read():
            got += piece
    except HttpError as error:
        return got, error.kind if error.sent else "not sent"
    finally:
        await response.aclose()
    return got, "end"


def sends(*pieces: bytes, then: str = "close") -> Script:
    """Read one request, send the pieces, then close, reset or hang."""

    async def script(peer: Peer) -> None:
        await peer.request()
        for piece in pieces:
            await peer.send(piece)
            await asyncio.sleep(0.01)
        if then == "reset":
            peer.reset()
        elif then == "hang":
            await peer.gone()

    return script
