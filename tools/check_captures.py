"""Are captures read as their canonical streams say, byte for byte? `make captures DIR=…`.

The folder's README has a table: a capture, its canonical stream, the model's name. Of a Markdown page only the answer
object in it is a capture. Each is given to `trunkline normalize`, then served by a real upstream in random pieces to a
running gateway: there the usage is the gateway's own count where the capture has none.
"""

import asyncio
import json
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

_ROW = re.compile(r"^\| `([^`]+)` .*`([^`]+\.canonical\.sse)` \(`--model ([^`]+)`", re.MULTILINE)
_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"
_USAGE = re.compile(rb'"usage":\{.*\}\}')
TRIES = 20


def answer_object(page: str) -> bytes:
    """Give the last JSON object with choices that stands in a page."""
    found = ""
    for place in re.finditer(r"^\{", page, re.MULTILINE):
        try:
            value, end = json.JSONDecoder().raw_decode(page, place.start())
        except ValueError:
            continue
        if "choices" in value:
            found = page[place.start() : end]
    return found.encode()


def normalized(data: bytes, model: str) -> bytes:
    """Let the command line read a capture."""
    command = [sys.executable, "-m", "trunkline", "normalize", "-", "--model", model, "--include-usage"]
    return subprocess.run(command, input=data, stdout=subprocess.PIPE, check=True).stdout


def configuration(folder: str, port: int) -> str:
    """Write a configuration that sends every model to one upstream; gives its path."""
    path = Path(folder, "trunkline.toml")
    path.write_text(
        f'[server]\nlisten = "127.0.0.1:0"\ndata_dir = "{folder}"\n[providers.local]\nenabled = false\n'
        f'[providers.up]\nbase_url = "http://127.0.0.1:{port}"\nchat = {{ dialect = "openai_chat" }}\n'
        '[models."*"]\ntargets = ["up:*"]\n'
    )
    return str(path)


async def streamed(captures: Mapping[str, bytes]) -> dict[str, set[bytes]]:
    """Give the streams that the gateway makes of captures, each asked for under its model's name."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        data = captures[json.loads(await reader.readexactly(int(length[1]) if length else 0))["model"]]
        writer.write(_HEAD)
        places = sorted({0, len(data), *(random.randrange(len(data)) for _ in range(random.choice((3, 40, 400))))})
        for start, end in pairwise(places):
            writer.write(data[start:end])
            await writer.drain()
            await asyncio.sleep(0)
        writer.close()

    upstream = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = upstream.sockets[0].getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        command = (sys.executable, "-m", "trunkline", "serve", "--config", configuration(folder, port))
        gateway = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.PIPE)
        try:
            assert gateway.stderr
            while not (place := re.search(rb"serving on http://([^:]+):(\d+)", await gateway.stderr.readline())):
                pass
            return {
                model: {await asked(place[1].decode(), int(place[2]), model) for _ in range(TRIES)}
                for model in captures
            }
        finally:
            gateway.terminate()
            await gateway.wait()
            upstream.close()


async def asked(host: str, port: int, model: str) -> bytes:
    """Ask the gateway for one stream."""
    reader, writer = await asyncio.open_connection(host, port)
    body = json.dumps(
        {
            "model": model,
            "stream": True,
            "stream_options": {"include_usage": True},
            "messages": [{"role": "user", "content": "hi"}],
        }
    ).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-length: {len(body)}"
    writer.write(head.encode() + b"\r\n\r\n" + body)
    await reader.readuntil(b"\r\n\r\n")
    told = b""
    while size := int(await reader.readuntil(b"\r\n"), 16):
        told += await reader.readexactly(size)
        await reader.readexactly(2)
    writer.close()
    return told


def main() -> int:
    """Compare all; the exit status says whether all are equal."""
    folder = Path(sys.argv[1])
    rows = _ROW.findall((folder / "README.md").read_text())
    captures = {model: (folder / name).read_bytes() for name, _, model in rows}
    captures |= {model: answer_object(captures[model].decode()) for name, _, model in rows if name.endswith(".md")}
    through = asyncio.run(streamed(captures)) if rows else {}
    different = 0
    for name, canonical, model in rows:
        wanted = (folder / canonical).read_bytes()
        counted = b'"usage":{"prompt_tokens":0,"completion_tokens":0,' in wanted
        told = {_USAGE.sub(b"", one) for one in through[model]} if counted else through[model]
        same = {
            "normalize": normalized(captures[model], model) == wanted,
            "gateway": told == {_USAGE.sub(b"", wanted) if counted else wanted},
        }
        different += not all(same.values())
        print(f"{name:22} " + "  ".join(f"{way}: {'equal' if equal else 'DIFFERENT'}" for way, equal in same.items()))
    if not rows:
        print("no captures found")
    return 1 if different or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
