"""A stream whose events have numbers: written to a client as they come, with keep-alives that are no comments."""

import asyncio
from collections.abc import AsyncIterator

from trunkline.core.errors import GatewayError
from trunkline.core.events import Failed
from trunkline.core.money import EndReason
from trunkline.core.state import StorageError
from trunkline.http.event_stream import SHUTDOWN, STREAM_HEADERS
from trunkline.http.exchange import Exchange, Headers
from trunkline.http.pieces import STALL_S, write_piece
from trunkline.ingress.openai_chat import error_object

AWAY = Failed("storage_unavailable", "The database is away; take the stream up again in a moment.", "server_error")


class FollowedStream:
    """Writes numbered events to one client; `keepalive` is an event without a number of its own, or empty."""

    def __init__(
        self, exchange: Exchange, keepalive: bytes, keepalive_s: float, client_stall_s: float = STALL_S
    ) -> None:
        self._exchange = exchange
        self._keepalive = keepalive
        self._keepalive_s = keepalive_s
        self._client_stall_s = client_stall_s
        self._loop = asyncio.get_running_loop()
        self._last_write = self._loop.time()
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, headers: Headers, events: AsyncIterator[tuple[int, bytes]]) -> EndReason:
        """Stream to the end. Gives how it ended for this client; `cancelled`: it left."""
        self._exchange.start((*STREAM_HEADERS, *headers))
        self._tick()
        try:
            async for number, data in events:
                self._last_write = self._loop.time()
                if not await write_piece(self._exchange, b"id: %d\n%b" % (number, data), self._client_stall_s):
                    return "cancelled"
        except GatewayError as error:
            return self._fail(Failed(error.code, error.message, error.type), "failed")
        except StorageError:
            return self._fail(AWAY, "failed")
        except asyncio.CancelledError:
            if not self._exchange.interrupted:
                return "cancelled"
            return self._fail(SHUTDOWN, "shutdown")
        finally:
            if self._timer is not None:
                self._timer.cancel()
        self._exchange.finish()
        return "completed"

    def _tick(self) -> None:
        """Keep a silent stream alive."""
        now = self._loop.time()
        if now - self._last_write >= self._keepalive_s:
            if self._exchange.writable() is None:
                self._exchange.write(self._keepalive)
            self._last_write = now
        self._timer = self._loop.call_at(self._last_write + self._keepalive_s, self._tick)

    def _fail(self, failed: Failed, end: EndReason) -> EndReason:
        """End with an error that is not the stream's own, and so has no number: the stream can be taken up again."""
        if not self._exchange.gone:
            self._exchange.write(b"data: " + error_object(failed) + b"\n\n")
            self._exchange.finish()
        return end
