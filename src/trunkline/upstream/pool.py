"""The connections of one client: those at work, those that wait for their next exchange, and where they lead."""

import asyncio

from trunkline.upstream.connection import Connection
from trunkline.upstream.proxies import Proxies, Proxy
from trunkline.upstream.tls import TlsContext, make_context
from trunkline.upstream.url import Place, split

IDLE_S = 30.0
"""How long a connection waits for its next exchange, at the least."""
IDLE_COUNT = 512
"""How many connections wait, over all origins."""
ORIGINS = 1024
"""How many origins, and how many URLs, are remembered."""


class Pool:
    """What the origins of one client share."""

    def __init__(self, tls: TlsContext | None) -> None:
        self._tls = tls
        self.live: set[Connection] = set()
        self.idle = 0
        self.closed = False
        self.sweeps = 1
        """How often half of IDLE_S has gone by: a clock that costs nothing to read."""
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def tls(self) -> TlsContext:
        """The context of all connections; made at the first use, for it takes a while."""
        if self._tls is None:
            self._tls = make_context()
        return self._tls

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """See to it that connections do not wait too long."""
        if self._sweeper is None and not self.closed:
            self._sweeper = loop.call_later(IDLE_S / 2, self._sweep)

    def close(self) -> None:
        """Close everything; whoever still reads gets an HttpError."""
        self.closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for connection in list(self.live):
            connection.fail("reset", "the client was closed")

    def _sweep(self) -> None:
        self._sweeper = None
        if self.live:
            self.watch(asyncio.get_running_loop())
            self.sweeps += 1
            for connection in list(self.live):
                if connection.idle_since and connection.idle_since < self.sweeps - 2:  # half a time, and two halves
                    connection.transport.abort()


class Origin:
    """A scheme, host and port, and the idle connections to it (those for `public_only` requests are kept apart)."""

    __slots__ = ("_idle", "_pool", "authority", "live", "place", "proxy", "public_only", "tls")

    def __init__(self, pool: Pool, place: Place, *, proxy: Proxy | None, public_only: bool) -> None:
        self._pool = pool
        self._idle: list[Connection] = []
        self.live = 0
        self.place = place
        self.authority = place.authority
        self.tls = place.scheme == "https"
        self.proxy = proxy
        self.public_only = public_only

    def take(self) -> Connection | None:
        """Give the connection that has waited shortest, if any."""
        while self._idle:
            connection = self._idle.pop()
            self._pool.idle -= 1
            if not connection.transport.is_closing():
                connection.idle_since = 0
                return connection
        return None

    # What a connection tells.

    def made(self, connection: Connection) -> None:
        """Count a new connection."""
        self._pool.live.add(connection)
        self._pool.watch(connection.loop)
        self.live += 1

    def free(self, connection: Connection, *, again: bool) -> None:
        """Keep a connection, and its TLS session, after an exchange that has ended well."""
        pool = self._pool
        if self.tls and not connection.remembered:
            connection.remembered = True
            pool.tls.remember(connection.transport.get_extra_info("ssl_object"))
        if not again:
            return
        if pool.closed or pool.idle >= IDLE_COUNT:
            connection.transport.abort()
            return
        connection.idle_since = pool.sweeps
        self._idle.append(connection)
        pool.idle += 1

    def gone(self, connection: Connection) -> None:
        """Forget a connection that has ended."""
        if connection not in self._pool.live:
            return
        self._pool.live.remove(connection)
        self.live -= 1
        if connection.idle_since and connection in self._idle:
            self._idle.remove(connection)
            self._pool.idle -= 1


class Origins:
    """Finds the origin and the request target of a URL; remembers both, since the same few URLs come again."""

    def __init__(self, pool: Pool, proxies: Proxies) -> None:
        self._pool = pool
        self._proxies = proxies
        self._origins: dict[tuple[Place, bool], Origin] = {}
        self._urls: dict[tuple[str, bool], tuple[Origin, str]] = {}

    def find(self, url: str, *, public_only: bool) -> tuple[Origin, str]:
        """Give the origin and the request target of a URL; raises HttpError `protocol` when it is none."""
        known = self._urls.get((url, public_only))
        if known is not None:
            return known
        place, target = split(url)
        key = (place, public_only)
        origin = self._origins.get(key)
        if origin is None:
            if len(self._origins) >= ORIGINS:
                self._origins = {key: origin for key, origin in self._origins.items() if origin.live}
                self._urls.clear()
            origin = Origin(self._pool, place, proxy=self._proxies.find(place), public_only=public_only)
            self._origins[key] = origin
        if len(self._urls) >= ORIGINS:
            self._urls.clear()
        found = self._urls[url, public_only] = (origin, target)
        return found
