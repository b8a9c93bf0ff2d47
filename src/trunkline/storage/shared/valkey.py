"""The connection to Valkey or Redis, as everything that replicas share uses it."""

import asyncio
from typing import TYPE_CHECKING, Any

from trunkline.core.errors import GatewayError

if TYPE_CHECKING:
    from redis.asyncio import Redis

WAIT_S = 2.0
"""Until Valkey is taken for lost."""
TURN_S = 10.0
"""How long one waits for a connection that others use: a burst on a busy machine is no loss of Valkey."""
CONNECTIONS = 16


def connect(url: str, connections: int = CONNECTIONS) -> "tuple[Redis, tuple[type[Exception], ...]]":
    """Give a client of `valkey://…` or `redis://…`, and what it raises when Valkey is away; nothing is connected yet.

    More than `connections` at a time wait for each other. Raises GatewayError `storage_unavailable` without the extra.
    """
    try:
        from redis.asyncio import BlockingConnectionPool, Redis  # noqa: PLC0415 - an extra
        from redis.asyncio.retry import Retry  # noqa: PLC0415 - an extra
        from redis.backoff import NoBackoff  # noqa: PLC0415 - an extra
        from redis.exceptions import RedisError  # noqa: PLC0415 - an extra
    except ImportError:
        told = "Valkey needs the extra: pip install 'trunkline[scale]'."
        raise GatewayError("storage_unavailable", told) from None

    class Heeding(Redis):
        async def execute_command(self, *args: Any, **options: Any) -> Any:
            # It writes under `asyncio.wait_for`, which before Python 3.12 gives a result in place of a cancellation.
            task = asyncio.current_task()
            cancels = task.cancelling() if task else 0
            answer = await super().execute_command(*args, **options)  # type: ignore[no-untyped-call]
            if task and task.cancelling() > cancels:
                raise asyncio.CancelledError
            return answer

    pool = BlockingConnectionPool.from_url(
        url.replace("valkey", "redis", 1),
        max_connections=connections,
        timeout=TURN_S,
        socket_timeout=WAIT_S,
        socket_connect_timeout=WAIT_S,
        retry=Retry(NoBackoff(), 1),  # after a restart of Valkey every pooled connection is dead once
    )
    return Heeding.from_pool(pool), (RedisError, OSError)
