"""What one call costs in this process, from the client's bytes to the answer's: `uv run bench/micro/call.py`.

The whole application runs, with a key that has a budget, prices, ledger, log and metrics; only the sockets are not
there: the two protocols are handed bytes, and what they write is thrown away. Costs are CPU microseconds of a call,
the ledger's thread included; the median of ROUNDS rounds.
"""

import argparse
import asyncio
import os
import tempfile
import time
from collections.abc import Awaitable, Callable
from functools import partial
from statistics import median
from typing import Any, TypeVar, cast

import msgspec
import uvloop

from trunkline.app import Application
from trunkline.cli.server import bind, make_server
from trunkline.config.load import build
from trunkline.config.spoken import this_build
from trunkline.core.keys import KeyChanges
from trunkline.core.money import Budget
from trunkline.http.front_door import FrontDoor
from trunkline.upstream.client import Client
from trunkline.upstream.connection import Connection
from trunkline.upstream.pool import Origin

T = TypeVar("T")
ROUNDS = 5
CONNECTIONS = 64
CHUNKS = 200


def answer_whole() -> bytes:
    """Write an answer of about 1 KB."""
    body = msgspec.json.encode(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1790000000,
            "model": "real",
            "choices": [
                {"index": 0, "message": {"role": "assistant", "content": "w" * 700}, "finish_reason": "stop"},
            ],
            "usage": {"prompt_tokens": 9, "completion_tokens": 200, "total_tokens": 209},
        }
    )
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


def answer_stream() -> list[bytes]:
    """Write a stream of CHUNKS chunks, cut as they are sent."""
    same = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "real"}
    pieces: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {"content": "hello "}}]}] * CHUNKS
    pieces += [
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 200, "total_tokens": 209}},
    ]
    lines = [b"data: %b\n\n" % msgspec.json.encode(same | piece) for piece in pieces] + [b"data: [DONE]\n\n"]
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    return [head, *(b"%x\r\n%b\r\n" % (len(line), line) for line in lines[:-1]), b"e\r\n%b\r\n0\r\n\r\n" % lines[-1]]


class Nowhere(asyncio.Transport):
    """A transport whose writes go to a function."""

    def __init__(self, take: Any) -> None:
        super().__init__({"peername": ("127.0.0.1", 1), "sockname": ("127.0.0.1", 2)})
        self.take = take
        self.closed = False

    def write(self, data: Any) -> None:
        """Hand the bytes to whoever takes them."""
        self.take(data)

    def is_closing(self) -> bool:
        """Tell whether it was closed."""
        return self.closed

    def get_write_buffer_size(self) -> int:
        """Nothing waits."""
        return 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing waits."""

    def pause_reading(self) -> None:
        """Nothing to pause."""

    def resume_reading(self) -> None:
        """Nothing was paused."""

    def close(self) -> None:
        """Close."""
        self.closed = True

    def abort(self) -> None:
        """Close."""
        self.closed = True


class Lab:
    """The application without sockets, and the clients that call it."""

    def __init__(self, server: Any, key: str, *, stream: bool, slow: bool = False) -> None:
        self.loop = asyncio.get_running_loop()
        self.left = 0
        self.open = 0
        self.done = asyncio.Event()
        body = msgspec.json.encode({"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hi"}]})
        self.request = (
            b"POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1:4000\r\ncontent-type: application/json\r\n"
            b"authorization: Bearer %b\r\ncontent-length: %d\r\n\r\n%b" % (key.encode(), len(body), body)
        )
        reads = answer_stream() if stream else [answer_whole()]
        self.reads = reads if slow else [b"".join(reads)]
        """What the upstream sends; each is read by itself."""
        self.last = b"0\r\n\r\n" if stream else b""
        self.doors = [self.door(server) for _ in range(CONNECTIONS)]

    def door(self, server: Any) -> FrontDoor:
        """Open a client's connection."""
        door = cast(
            "FrontDoor",
            server.config.http_protocol_class(
                config=server.config, server_state=server.server_state, app_state=server.lifespan.state
            ),
        )
        door.connection_made(Nowhere(partial(self.told, door)))
        return door

    async def dial(self, origin: Origin, _where: str) -> Connection:
        """Open a connection to the upstream."""
        connection = Connection(origin)

        def answer(_request: bytes) -> None:
            for data in self.reads:
                self.loop.call_soon(connection.data_received, data)

        connection.connection_made(Nowhere(answer))
        return connection

    def told(self, door: FrontDoor, data: bytes) -> None:
        """Take what a client is told: after the end of its answer it asks again."""
        if data.endswith(self.last):
            assert b"200 OK" in data or self.last, data
            self.open -= 1
            if self.left:
                self.left -= 1
                self.open += 1
                self.loop.call_soon(door.data_received, self.request)
            elif not self.open:
                self.done.set()

    async def run(self, calls: int) -> float:
        """Make so many calls; give the CPU microseconds of one."""
        self.left = calls - len(self.doors)
        self.open = len(self.doors)
        self.done.clear()
        begun = time.process_time()
        for door in self.doors:
            self.loop.call_soon(door.data_received, self.request)
        await self.done.wait()
        return (time.process_time() - begun) / calls * 1e6


async def measure(run: Callable[[Lab], Awaitable[T]], *, stream: bool, slow: bool = False) -> T:
    """Start the application, warm it up, and measure."""
    with tempfile.TemporaryDirectory() as folder:
        tables = {
            "server": {"listen": "127.0.0.1:0", "data_dir": folder},
            "providers": {
                "local": {"enabled": False},
                "up": {"base_url": "http://127.0.0.1:9/v1", "api_key": "k", "chat": {"dialect": "openai_chat"}},
            },
            "models": {"*": {"targets": ["up:*"], "price": {"input_per_mtok": 0.15, "output_per_mtok": 0.6}}},
            "keys": {"required": True},
        }
        application = Application(build(tables, {}, {}, this_build()), {})
        opened = bind("127.0.0.1:0")
        server = make_server(application, opened)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(server.serve(sockets=[opened]))
            while not server.started and not task.done():  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)
            made = await application.keys.create(KeyChanges(name="bench", budget=Budget(total=10**12)))
            lab = Lab(server, made.token, stream=stream, slow=slow)
            Client._dial = lab.dial  # type: ignore[assignment,method-assign]  # noqa: SLF001 - no sockets
            await lab.run(CONNECTIONS * 4)
            measured = await run(lab)
            server.should_exit = True
    return measured


async def cost_of(calls: int, lab: Lab) -> float:
    """Give the CPU microseconds of a call: the median of ROUNDS rounds."""
    return median([await lab.run(calls) for _ in range(ROUNDS)])


def main() -> None:
    """Measure both kinds of calls and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--calls", type=int, default=6000, help="calls in a round")
    parser.add_argument("--stream", action="store_true", help=f"streams of {CHUNKS} chunks in place of whole answers")
    asked = parser.parse_args()
    os.environ.setdefault("TRUNKLINE_ADMIN_KEY", "bench")
    cost = uvloop.run(measure(partial(cost_of, asked.calls), stream=asked.stream))
    print(f"{cost:.1f} us of CPU for a call{f', {cost / CHUNKS:.2f} for a chunk' if asked.stream else ''}")


if __name__ == "__main__":
    main()
