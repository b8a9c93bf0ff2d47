"""Pictures of 20 MB at once through a running gateway, with a text stream beside them.

`uv run python bench/pictures.py [PICTURES] [DIALECT …]` prints, for each dialect, the gateway's memory and the largest
gap between two chunks of a text stream that its upstream writes every 10 ms, with the pictures and alone. Dialects:
`openai_images`, `gemini_images` (both inline, as base64 on one line), `xai_images` (by link) and `openai_chat` (a data
URL in the text of a chat). Provider and gateway are processes of their own.
"""

import asyncio
import base64
import contextlib
import io
import json
import multiprocessing
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path

from PIL import Image

SIDE = 2640
"""Noise of this size is a PNG of 20.9 MB."""
PLACES = {"openai_images": "/openai", "gemini_images": "/gemini", "xai_images": "/xai", "openai_chat": "/chat"}
PACE_S = 0.01
ALONE_S = 5.0
CHUNK = b'data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"word "}}]}\n\n'


def provide(told: Connection) -> None:
    """Be the provider: one picture, the same for all, in each dialect's answer; and text without end."""
    out = io.BytesIO()
    noise = random.Random(1).randbytes(SIDE * SIDE * 3)
    Image.frombytes("RGB", (SIDE, SIDE), noise).save(out, "PNG", compress_level=1)
    png, data = out.getvalue(), base64.b64encode(out.getvalue()).decode()
    part = {"inlineData": {"mimeType": "image/png", "data": data}}
    message = {"role": "assistant", "content": f"![image](data:image/png;base64,{data})"}
    answers = {
        "/openai": json.dumps({"created": 1, "data": [{"b64_json": data}]}).encode(),
        "/gemini": json.dumps({"candidates": [{"content": {"parts": [part]}, "finishReason": "STOP"}]}).encode(),
        "/chat": json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}).encode(),
    }

    port = 0

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                await reader.readexactly(int(head.lower().partition("content-length:")[2].split("\r")[0] or 0))
                path = head.split(" ")[1]
                if path.startswith("/text"):
                    await talk(writer)
                await asyncio.sleep(1)  # so that all pictures come together
                if path.startswith("/xai/images"):
                    url = f"http://127.0.0.1:{port}/xai/file.png"
                    body = json.dumps({"data": [{"url": url}]}).encode()
                else:
                    body = answers.get(f"/{path.split('/')[1]}", png)
                kind = "image/png" if body is png else "application/json"
                writer.write(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode())
                for at in range(0, len(body), 1 << 16):
                    writer.write(body[at : at + (1 << 16)])
                    await writer.drain()

    async def talk(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        due = time.perf_counter()
        while True:
            writer.write(CHUNK)
            await writer.drain()
            due += PACE_S
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

    async def serve() -> None:
        nonlocal port
        server = await asyncio.start_server(one, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        told.send((port, len(png)))
        await server.serve_forever()

    asyncio.run(serve())


def memory_mib(pid: int, name: str) -> float:
    """Memory of a process: `VmRSS` now, `VmHWM` at most."""
    lines = Path(f"/proc/{pid}/status").read_text().split("\n")
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def begin_anew(pid: int) -> None:
    """Let the high-water mark of a process's memory begin anew."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


async def ask(port: int, body: dict[str, object]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Post a chat to the gateway, and read the answer's head."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    data = json.dumps(body).encode()
    writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(data) + data)
    head = await reader.readuntil(b"\r\n\r\n")
    assert b" 200 " in head, head
    return reader, writer


async def draw(port: int, dialect: str) -> None:
    """Ask for a picture in a chat, and wait for its link."""
    reader, writer = await ask(port, {"model": f"{dialect}/m", "messages": [{"role": "user", "content": "noise"}]})
    assert b"/v1/media/img_" in await reader.readuntil(b'"object":"chat.completion"') + await reader.read(1 << 16)
    writer.close()


async def listen(port: int, gaps: list[float]) -> None:
    """Read a text stream, and note how long each chunk was waited for."""
    reader, _ = await ask(port, {"model": "talk/m", "messages": [{"role": "user", "content": "go"}], "stream": True})
    await reader.readuntil(b"word ")
    last = time.perf_counter()
    while True:
        await reader.readuntil(b"word ")
        now = time.perf_counter()
        gaps.append(now - last)
        last = now


async def measure(port: int, pid: int, dialect: str, count: int, size: int) -> None:
    """Take one picture to warm up, then all at once."""
    await draw(port, dialect)
    begin_anew(pid)
    before = memory_mib(pid, "VmRSS")
    gaps: list[float] = []
    async with asyncio.TaskGroup() as group:
        listening = group.create_task(listen(port, gaps))
        await asyncio.sleep(ALONE_S)
        alone = 1000 * max(gaps[10:])
        gaps.clear()
        began = time.perf_counter()
        await asyncio.gather(*(draw(port, dialect) for _ in range(count)))
        listening.cancel()
    peak, took = memory_mib(pid, "VmHWM"), time.perf_counter() - began
    gaps.sort()
    times = (peak - before) * 1.048576 / (count * size / 1e6)
    print(f"{dialect}: {count} pictures of {size / 1e6:.1f} MB in {took:.1f} s")
    print(f"  memory: {before:.0f} MiB before, {peak:.0f} at most: {times:.1f} times their size")
    worst, p99, median = (1000 * gap for gap in (gaps[-1], gaps[int(len(gaps) * 0.99)], statistics.median(gaps)))
    print(f"  text beside: gaps of {median:.0f} ms, p99 {p99:.0f}, worst {worst:.0f}; alone {alone:.0f}")


async def main(count: int, dialects: list[str], upstream: int, size: int) -> None:
    """Start the gateway, and measure."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    tables = [f'[server]\nlisten = "127.0.0.1:{port}"\n[providers.local]\nenabled = false\n']
    tables.append(
        f'[providers.talk]\nbase_url = "http://127.0.0.1:{upstream}/text"\nchat = {{ dialect = "openai_chat" }}\n'
    )
    for dialect, place in PLACES.items():
        side = "chat" if place == "/chat" else "image"
        tables.append(
            f'[providers.{dialect}]\nbase_url = "http://127.0.0.1:{upstream}{place}"\n'
            f'{side} = {{ dialect = "{dialect}" }}\nmodels = {{ m = {{ kind = "image" }} }}\n'
        )
    with tempfile.TemporaryDirectory() as directory, serving("".join(tables), directory) as pid:
        while not await is_open(port):  # noqa: ASYNC110 - another process's port has no event
            await asyncio.sleep(0.1)
        for dialect in dialects:
            await measure(port, pid, dialect, count, size)


async def is_open(port: int) -> bool:
    """Tell whether the gateway listens."""
    try:
        (await asyncio.open_connection("127.0.0.1", port))[1].close()
    except ConnectionError:
        return False
    return True


@contextlib.contextmanager
def serving(config: str, directory: str) -> Iterator[int]:
    """Run the gateway, and give its process id."""
    path = Path(directory) / "trunkline.toml"
    path.write_text(config)
    command = [sys.executable, "-m", "trunkline", "serve", "--config", str(path), "--data-dir", directory]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield process.pid
        finally:
            process.terminate()


if __name__ == "__main__":
    hears, tells = multiprocessing.get_context("spawn").Pipe()
    provider = multiprocessing.get_context("spawn").Process(target=provide, args=(tells,), daemon=True)
    provider.start()
    try:
        wanted = int(sys.argv[1]) if len(sys.argv) > 1 else 10
        asyncio.run(main(wanted, sys.argv[2:] or list(PLACES), *hears.recv()))
    finally:
        provider.kill()
