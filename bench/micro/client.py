"""What the upstream client costs, next to aiohttp in the same run: `uv run --group bench bench/micro/client.py`.

A raw server in a process of its own answers with constant bytes; rates are per second of wall time, costs are CPU
microseconds of this process. Every figure is the median of ROUNDS rounds in which the clients take turns.
"""

import asyncio
import multiprocessing
import time
from collections.abc import Awaitable, Callable
from statistics import median
from typing import cast

import aiohttp
import uvloop

from trunkline.core.ports import HttpRequest
from trunkline.upstream.client import Client

ROUNDS = 5
CONNECTIONS = 64
CHUNKS = 200
CHUNK = b'data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n'
FRAMED = b"%x\r\n%b\r\n" % (len(CHUNK), CHUNK)
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nserver: raw\r\ntransfer-encoding: chunked\r\n\r\n"
WHOLE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nserver: raw\r\ncontent-length: 1000\r\n\r\n" + b"x" * 1000
)
BODY = b'{"model":"m","messages":[{"role":"user","content":"hello"}]}'


class Server(asyncio.Protocol):
    """Answers by path: /whole a body of 1,000 bytes, /burst 200 chunks in one write, /paced a chunk every 5 ms."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the transport."""
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Take what comes for one whole request."""
        if b"/whole" in data:
            self.transport.write(WHOLE)
        elif b"/burst" in data:
            self.transport.write(HEAD + FRAMED * CHUNKS + b"0\r\n\r\n")
        elif b"/paced" in data:
            self.transport.write(HEAD)
            self.tick(CHUNKS)

    def tick(self, left: int) -> None:
        """Send a chunk, and in a while the next."""
        self.transport.write(FRAMED if left else b"0\r\n\r\n")
        if left:
            asyncio.get_running_loop().call_later(0.005, self.tick, left - 1)


def serve(port: "multiprocessing.Queue[int]") -> None:
    """Run the server and tell its port."""

    async def run() -> None:
        server = await asyncio.get_running_loop().create_server(Server, "127.0.0.1", 0, backlog=1024)
        port.put(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    uvloop.run(run())


async def ours(url: str, times: int) -> None:
    """Let every connection make its exchanges through our client."""
    client = Client()
    request = HttpRequest("POST", url, (("content-type", "application/json"),), BODY)

    async def worker() -> None:
        for _ in range(times):
            response = await client.open(request)
            while await response.read():
                pass
            await response.aclose()

    await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))
    await client.aclose()


async def theirs(url: str, times: int) -> None:
    """Do the same through aiohttp."""
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def worker() -> None:
            for _ in range(times):
                async with session.post(url, data=BODY, headers={"content-type": "application/json"}) as response:
                    async for _piece in response.content.iter_any():
                        pass

        await asyncio.gather(*(worker() for _ in range(CONNECTIONS)))


async def measure(client: Callable[[str, int], Awaitable[None]], url: str, times: int) -> tuple[float, float]:
    """Give exchanges per second and CPU microseconds an exchange."""
    started, cpu = time.perf_counter(), time.process_time()
    await client(url, times)
    exchanges = CONNECTIONS * times
    return exchanges / (time.perf_counter() - started), (time.process_time() - cpu) / exchanges * 1e6


async def main(port: int) -> None:
    """Print the table."""
    print(f"{'':28}{'ours':>12}{'aiohttp':>12}{'ratio':>8}{'ours, µs CPU':>15}{'aiohttp':>10}{'ratio':>8}")
    for path, unit, times, per in (
        ("whole", "requests of 1 kB", 100, 1),
        ("burst", "chunks, 200 in a write", 20, CHUNKS),
        ("paced", "chunks, one each 5 ms", 1, CHUNKS),
    ):
        url = f"http://127.0.0.1:{port}/{path}"
        rounds = [(await measure(ours, url, times), await measure(theirs, url, times)) for _ in range(ROUNDS)]
        rate, cost = (median(one[0][which] for one in rounds) for which in (0, 1))
        rate2, cost2 = (median(one[1][which] for one in rounds) for which in (0, 1))
        ratios = f"{rate / rate2:>8.2f}{cost / per:>15.2f}{cost2 / per:>10.2f}{cost2 / cost:>8.2f}"
        print(f"{unit + ', /s':28}{rate * per:>12,.0f}{rate2 * per:>12,.0f}{ratios}")


if __name__ == "__main__":
    port: "multiprocessing.Queue[int]" = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(port,), daemon=True)
    server.start()
    uvloop.run(main(port.get()))
    server.terminate()
