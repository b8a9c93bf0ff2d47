"""Work that is not broken off in its midst, as that of a thread cannot be."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unbroken(work: Coroutine[Any, Any, T]) -> T:
    """Do it to its end; whoever is cancelled meanwhile is so then."""
    doing, cancelled = asyncio.ensure_future(work), False
    while not doing.done():
        try:
            await asyncio.wait((doing,))
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        if not doing.cancelled():
            doing.exception()  # looked at: nobody waits for it
        raise asyncio.CancelledError
    return doing.result()
