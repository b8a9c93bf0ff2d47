"""Which addresses a host name stands for, whether they are public, and a socket to one of them."""

import asyncio
import ipaddress
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from trunkline.core.ports import HttpError

Address = tuple[socket.AddressFamily, tuple[Any, ...]]
"""A family and what `connect` takes for it; the host is always a number."""

STAGGER_S = 0.25
"""How long one address is tried alone before the next joins in (RFC 8305, section 8)."""

# The special-purpose registries of IANA (RFC 6890 and later), as of 2026.
_REFUSED_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",
        "169.254.0.0/16",  # link-local, where clouds keep their metadata
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",
    )
)
_GLOBAL_V6 = ipaddress.IPv6Network("2000::/3")
_REFUSED_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, Teredo among them
        "2001:db8::/32",
        "2002::/16",  # 6to4: an IPv4 address in disguise
        "3fff::/20",
    )
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


def names_private(url: str) -> bool:
    """Say whether a URL names, without any look-up, an address that is not public."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        return not is_public(host)
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_public(host: str) -> bool:
    """Say whether a numeric address belongs to the public internet, looking through IPv4 in IPv6."""
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        elif address in _NAT64:
            address = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        else:
            return address in _GLOBAL_V6 and not any(address in network for network in _REFUSED_V6)
    return not any(address in network for network in _REFUSED_V4)


async def resolve(host: str, port: int, *, public_only: bool) -> Sequence[Address]:
    """Give the addresses of a host, in the order to try them.

    Raises HttpError: `connect` when there are none, `address_refused` when `public_only` and any of them is not public.
    """
    try:
        # Numbers in every spelling that connect() understands (127.1, 0x7f000001) need no name server and no thread.
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
    except (OSError, UnicodeError):
        try:
            loop = asyncio.get_running_loop()
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise HttpError("connect", f"the host {host} is not known: {error}") from error
    if public_only:
        vet(host, [str(address[0]) for *_, address in found])
    return _interleaved([(family, address) for family, *_, address in found])


def vet(host: str, addresses: Sequence[str]) -> None:
    """Raise HttpError `address_refused` unless all addresses of a host are public: any could be the one dialled."""
    if not all(is_public(address) for address in addresses):
        raise HttpError("address_refused", f"{host} leads to an address that is not public")


def _interleaved(addresses: list[Address]) -> list[Address]:
    """Let the families take turns, the resolver's first choice first (RFC 8305, section 4)."""
    first = [address for address in addresses if address[0] == addresses[0][0]]
    other = [address for address in addresses if address[0] != addresses[0][0]]
    mixed: list[Address] = []
    while first or other:
        mixed += first[:1] + other[:1]
        del first[:1], other[:1]
    return mixed


async def dial(addresses: Sequence[Address]) -> socket.socket:
    """Connect to whichever of the addresses answers first, giving the earlier ones a head start; raises OSError."""
    if len(addresses) == 1:
        return await _connect(addresses[0])
    won: list[socket.socket] = []
    errors: list[OSError] = []

    async def attempt(address: Address) -> None:
        try:
            connection = await _connect(address)
        except OSError as error:
            errors.append(error)
            return
        if won:
            connection.close()
        else:
            won.append(connection)

    try:
        async with asyncio.TaskGroup() as group:
            racing: set[asyncio.Task[None]] = set()
            for address in addresses:
                racing.add(group.create_task(attempt(address)))
                _, racing = await asyncio.wait(racing, timeout=STAGGER_S, return_when=asyncio.FIRST_COMPLETED)
                if won:
                    break
            while racing and not won:
                _, racing = await asyncio.wait(racing, return_when=asyncio.FIRST_COMPLETED)
            for late in racing:
                late.cancel()
    except BaseException:
        for connection in won:
            connection.close()
        raise
    if not won:
        raise errors[0]
    return won[0]


async def _connect(address: Address) -> socket.socket:
    family, where = address
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(connection, where)
    except BaseException:
        connection.close()
        raise
    return connection
