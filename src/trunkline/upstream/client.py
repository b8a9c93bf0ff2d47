"""Our own HTTP/1.1 client, the implementation of `core.ports.HttpClient`: pooled connections, TLS, proxies."""

import asyncio
import os
import re
import socket
import ssl
from collections.abc import Coroutine, Mapping
from typing import NamedTuple, TypeVar

from trunkline import __version__
from trunkline.core.ports import HttpError, HttpRequest
from trunkline.upstream.address import dial, resolve
from trunkline.upstream.connection import Connection
from trunkline.upstream.pool import Origin, Origins, Pool
from trunkline.upstream.proxies import Proxies
from trunkline.upstream.response import Response
from trunkline.upstream.tls import TlsContext

TUNNEL_BYTES = 16 * 1024
"""The longest answer of a proxy to CONNECT."""

CLOSING_TURNS = 10
"""Turns of the loop that closed transports get to say so: TLS takes a few."""

T = TypeVar("T")


class Way(NamedTuple):
    """Where requests go, and what they say but for their bodies."""

    origin: Origin
    head: bytes
    """But for the length of the body and the empty line."""
    method: str
    where: str
    """The address that a proxy is given, where it was vetted."""


_OURS = frozenset({"connection", "content-length", "transfer-encoding"})
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Client:
    """The only door to providers.

    `environ` is where the proxies are read from (none by default); `tls` stands in for the system's authorities.
    """

    def __init__(self, environ: Mapping[str, str] | None = None, tls: TlsContext | None = None) -> None:
        self._pool = Pool(tls)
        self._origins = Origins(self._pool, Proxies(environ or {}))

    async def open(self, request: HttpRequest) -> Response:
        """Send a request and wait for the head of the answer; see `core.ports.HttpClient`."""
        way = self.way(request)
        if way.origin.public_only and way.origin.proxy is not None:
            # It would resolve the name once more, and perhaps to another address: it is given the one that was vetted.
            where = await _connecting(way.origin, request.connect_s, _vetted(way.origin))
            way = self.way(request, where)
        return await self.exchange(way, request.body, request.connect_s, fresh=request.fresh)

    def way(self, request: HttpRequest, where: str = "") -> Way:
        """Give where a request goes, and its head; the same for many requests. Raises HttpError `protocol`."""
        origin, target = self._origins.find(request.url, public_only=request.public_only)
        return Way(origin, _head(request, origin, target, where), request.method, where)

    async def exchange(self, way: Way, body: bytes, connect_s: float, *, fresh: bool = False) -> Response:
        """Send a body on a way that is known, and wait for the head of the answer; as `open`."""
        origin, head, method, where = way
        head = b"%bcontent-length: %d\r\n\r\n" % (head, len(body)) if body or method in _WITH_BODY else head + b"\r\n"
        connection = None if fresh else origin.take()
        kept = connection is not None
        while True:
            if connection is None:
                connection = await _connecting(origin, connect_s, self._dial(origin, where))
                if connection.transport.is_closing():
                    raise HttpError("reset", "the upstream closed the connection before the request")
            response = connection.send(head, body, bodiless=method == "HEAD")
            try:
                while not response.status:
                    response.check()
                    await connection.event()
            except HttpError as error:
                if not kept or error.kind != "reset" or connection.heard or self._pool.closed:
                    raise
            except (asyncio.CancelledError, GeneratorExit):
                response.drop()
                raise
            else:
                return response
            kept, connection = False, None

    async def aclose(self) -> None:
        """Close all connections; whoever still reads gets an HttpError."""
        self._pool.close()
        for _ in range(CLOSING_TURNS):
            if not self._pool.live:
                break
            await asyncio.sleep(0)

    async def _dial(self, origin: Origin, where: str) -> Connection:
        if self._pool.closed:
            raise HttpError("connect", "the client is closed")
        proxy = origin.proxy
        if proxy is None:
            raw = await dial(await resolve(origin.place.host, origin.place.port, public_only=origin.public_only))
        else:
            raw = await dial(await resolve(proxy.host, proxy.port, public_only=False))
        connection = Connection(origin)
        try:
            if proxy is not None and origin.tls:
                await _tunnel(raw, where or origin.place.endpoint, proxy.authorization)
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=raw,
                ssl=self._pool.tls if origin.tls else None,
                server_hostname=origin.place.host.rstrip(".") if origin.tls else None,
            )
        except BaseException:
            raw.close()
            origin.gone(connection)  # uvloop does not say so
            raise
        return connection


def _head(request: HttpRequest, origin: Origin, target: str, where: str) -> bytes:
    """Write a head but for the length of the body and the empty line."""
    given = dict(request.headers)
    by_proxy = origin.proxy if not origin.tls else None
    if by_proxy is not None:
        target = f"http://{where or origin.authority}{target}"
    lines = [f"{request.method} {target} HTTP/1.1"]
    if "host" not in given:
        lines.append(f"host: {origin.authority}")
    lines += [f"{name}: {value}" for name, value in request.headers if name not in _OURS]
    if "user-agent" not in given:
        lines.append(f"user-agent: trunkline/{__version__}")
    if "accept" not in given:
        lines.append("accept: */*")
    if "accept-encoding" not in given:
        lines.append("accept-encoding: identity")
    if by_proxy is not None and by_proxy.authorization:
        lines.append(f"proxy-authorization: {by_proxy.authorization}")
    head = "\r\n".join(lines)
    if not head.count("\r") == head.count("\n") == len(lines) - 1 or "\0" in head:
        raise HttpError("protocol", "a header of the request holds a line break")
    return f"{head}\r\n".encode()


async def _connecting(origin: Origin, connect_s: float, work: Coroutine[None, None, T]) -> T:
    """Do what it takes to connect, in time; raises HttpError."""
    try:
        async with asyncio.timeout(connect_s):
            return await work
    except TimeoutError as error:
        raise HttpError("timeout", f"no connection to {origin.authority} within {connect_s:g} s") from error
    except ssl.SSLError as error:
        raise HttpError("tls", f"no TLS connection to {origin.authority}: {error}") from error
    except OSError as error:
        raise HttpError("connect", f"no connection to {origin.authority}: {_reason(error)}") from error


def _reason(error: OSError) -> str:
    """Say what went wrong in the system's words: asyncio's tell the address once more."""
    number = error.errno or 0
    return os.strerror(number) if number > 0 else error.strerror or str(error)  # below 0: a name that was not found


async def _vetted(origin: Origin) -> str:
    _, address = (await resolve(origin.place.host, origin.place.port, public_only=True))[0]
    return origin.place._replace(host=str(address[0])).endpoint


async def _tunnel(raw: socket.socket, where: str, authorization: str) -> None:
    """Ask a proxy for a way through (RFC 9110, section 9.3.6)."""
    loop = asyncio.get_running_loop()
    line = f"proxy-authorization: {authorization}\r\n" if authorization else ""
    await loop.sock_sendall(raw, f"CONNECT {where} HTTP/1.1\r\nhost: {where}\r\n{line}\r\n".encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        piece = await loop.sock_recv(raw, TUNNEL_BYTES)
        answer += piece
        if not piece or len(answer) > TUNNEL_BYTES:
            raise HttpError("connect", f"the proxy did not answer CONNECT {where}")
    status = answer.split(b"\r\n", 1)[0].decode("latin-1")
    if not re.match(r"HTTP/1\.\d 2\d\d", status):
        raise HttpError("connect", f"the proxy refused CONNECT {where}: {status[:100]}")
