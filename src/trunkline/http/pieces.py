"""Writing to a client at the client's pace."""

import asyncio

from trunkline.http.exchange import Exchange

STALL_S = 120.0
"""A client that reads nothing for so long is let go."""


async def write_piece(exchange: Exchange, data: bytes, stall_s: float = STALL_S) -> bool:
    """Write, and wait until the client takes more; False: it left, or was let go because it reads nothing."""
    exchange.write(data)
    waiting = exchange.writable()
    if waiting is None:
        return not exchange.gone
    try:
        async with asyncio.timeout(stall_s):
            await waiting
    except TimeoutError:
        exchange.cut()
        return False
    return not exchange.gone
