"""The one TLS context of all connections to upstreams."""

import ssl
from collections.abc import Iterable

SESSIONS = 256
"""Hosts whose last TLS session is remembered."""


class TlsContext(ssl.SSLContext):
    """Verifies against the system's authorities, speaks HTTP/1.1 only, and takes up earlier sessions."""

    sessions: dict[str, ssl.SSLSession]

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,  # noqa: FBT001, FBT002
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """Offer the session that the host gave last; asyncio has no other place for it."""
        if session is None and isinstance(server_hostname, str):
            session = self.sessions.get(server_hostname)
        return super().wrap_bio(incoming, outgoing, server_side, server_hostname, session)

    def remember(self, connection: ssl.SSLObject) -> None:
        """Keep a connection's session for the next one to the same host."""
        session, host = connection.session, connection.server_hostname
        if session is not None and host:
            if len(self.sessions) >= SESSIONS:
                self.sessions.clear()
            self.sessions[host] = session


def make_context(authorities: Iterable[str] = ()) -> TlsContext:
    """Make a context that trusts the system's authorities, and those given as PEM text."""
    context = TlsContext(ssl.PROTOCOL_TLS_CLIENT)
    context.sessions = {}
    context.load_default_certs()
    for pem in authorities:
        context.load_verify_locations(cadata=pem)
    context.set_alpn_protocols(["http/1.1"])
    return context
