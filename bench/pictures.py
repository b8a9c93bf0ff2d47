"""Inline pictures of 20 MB at once: `uv run python bench/pictures.py [PICTURES]` prints memory and the loop's lag.

A provider in a process of its own answers with base64 on one line; the lag is what a text stream beside would feel.
"""

import asyncio
import base64
import io
import json
import multiprocessing
import random
import resource
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from msgspec.structs import replace

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "support"))

from film_dialect import FILMS
from film_provider import send
from job_tools import Rig, a_job, opened
from PIL import Image

from trunkline.core.dialect import Ready, Submitted
from trunkline.core.dialect import Refused as No
from trunkline.core.media import Media

SIDE = 2640
"""Noise of this size is a PNG of 20.9 MB."""


class Answered(msgspec.Struct):
    """What the provider says."""

    data: list[bytes]


def submitted(_status: int, body: bytes) -> Submitted | Ready | No:
    """Read the answer as a real dialect does: base64 straight into bytes."""
    return Ready(tuple(Media("image", data=data) for data in msgspec.json.decode(body, type=Answered).data))


def provide(told: Connection) -> None:
    """Serve one picture, the same for all, to whoever asks."""
    noise = random.Random(1).randbytes(SIDE * SIDE * 3)
    out = io.BytesIO()
    Image.frombytes("RGB", (SIDE, SIDE), noise).save(out, "PNG", compress_level=1)
    answer = json.dumps({"data": [base64.b64encode(out.getvalue()).decode()]}).encode()

    async def one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(1)
        await send(writer, answer, headers={"content-type": "application/json", "connection": "close"})
        writer.close()

    async def serve() -> None:
        server = await asyncio.start_server(one, "127.0.0.1", 0)
        told.send((f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", len(out.getvalue())))
        await server.serve_forever()

    asyncio.run(serve())


def rss_mib() -> float:
    """Memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / (1 << 20)


async def watch(lags: list[float], peaks: list[float]) -> None:
    """Note how late the loop wakes, and how much memory there is."""
    while True:
        due = time.perf_counter() + 0.005
        await asyncio.sleep(0.005)
        lags.append(time.perf_counter() - due)
        peaks.append(rss_mib())


async def main(count: int, url: str, size: int) -> None:
    """Take in one picture to warm up, then all at once."""
    with tempfile.TemporaryDirectory() as directory:
        async with opened(Path(directory) / "t.db") as database:
            rig = Rig(database, Path(directory))
            rig.tools = replace(rig.tools, dialects={"films": FILMS._replace(submitted=submitted, stream=None)})
            async with rig.serving(rig.engine()) as engine, asyncio.TaskGroup() as group:
                await engine.start(a_job("warm", url, {"inline": True}))
                await engine.finish("warm")
                before, began = rss_mib(), time.perf_counter()
                lags: list[float] = []
                peaks: list[float] = []
                watching = group.create_task(watch(lags, peaks))
                for n in range(count):
                    await engine.start(a_job(f"job_{n}", url, {"inline": True}))
                ends = [await engine.finish(f"job_{n}") for n in range(count)]
                watching.cancel()
            states = {end.job.state for end in ends}
            lags.sort()
            times = (max(peaks) - before) * 1.048576 / (count * size / 1e6)
            print(f"{count} pictures of {size / 1e6:.1f} MB, {states}, in {time.perf_counter() - began:.1f} s")
            print(f"memory: {before:.0f} MiB before, {max(peaks):.0f} at most: {times:.1f} times their size")
            print(f"loop lag: p99 {1000 * lags[int(len(lags) * 0.99)]:.0f} ms, worst {1000 * lags[-1]:.0f} ms")
            await rig.client.aclose()


if __name__ == "__main__":
    hears, tells = multiprocessing.get_context("spawn").Pipe()
    provider = multiprocessing.get_context("spawn").Process(target=provide, args=(tells,), daemon=True)
    provider.start()
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10, *hears.recv()))
    provider.kill()
