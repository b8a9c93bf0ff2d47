"""A provider of films and pictures with a wire of its own, on a real socket; a prompt is a script of what goes wrong.

Films are also to be had as OpenAI sells them, below `/v1/videos`.
`python film_provider.py` serves on a free port and prints it; `GET /_seen` tells what it was asked.
"""

import asyncio
import base64
import contextlib
import json
import struct
import sys
from collections import Counter
from typing import Any, Self

from media_samples import film, picture


class FilmProvider:
    def __init__(self) -> None:
        self.submits: list[str] = []
        """The idempotency key of every submit that was taken on."""
        self.tasks: dict[str, dict[str, Any]] = {}
        self.keyed: dict[str, str] = {}
        self.seen: Counter[str] = Counter()
        self.go = asyncio.Event()
        """Ends what a script holds up: `held` is its `submit`, its `polls` (it is not done before) or its `file`."""
        self.url = ""
        self.writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=4096)
        self.url = f"http://127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self.server.close()
        self.go.set()
        for writer in self.writers:
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head[1:])}
                body = await reader.readexactly(int(headers.get("content-length", "0")))
                method, path, _ = head[0].split(" ")
                if not await self._answer(method, path, headers, body, writer):
                    break
        writer.close()

    async def _answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes, writer: asyncio.StreamWriter
    ) -> bool:
        self.seen[f"{method} {path}"] += 1
        if path == "/_seen":
            state = {"submits": self.submits, "seen": self.seen}
            return await send(writer, json.dumps(state).encode())
        if method == "POST":
            return await self._submit(headers, json.loads(body), writer)
        kind, task = place(path)
        if task not in self.tasks:
            return await send(writer, b"{}", 404)
        script = self.tasks[task]
        if method == "DELETE":
            script["cancelled"] = True
            return await send(writer, b"{}")
        if kind == "files":
            return await self._file(script, writer)
        return await self._poll(task, script, writer)

    async def _submit(self, headers: dict[str, str], asked: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        script = json.loads(asked["prompt"]) | {"n": asked.get("n", 1), "inputs": asked.get("inputs", [])}
        if status := script.get("submit_status"):
            return await send(writer, b'{"error":"no"}', status)
        key = headers.get("idempotency-key", "")
        if script.get("keyed") and key in self.keyed:
            task = self.keyed[key]
        else:
            self.submits.append(key)
            task = f"t{len(self.submits)}"
            self.tasks[task] = script
            self.keyed[key] = task
            if script.get("refuse_submit") == len(self.submits):
                return await send(writer, b'{"state":"failed","code":"content_filter","message":"not this one"}')
        if script.pop("reset", False):
            reset(writer)
            return False
        await asyncio.sleep(script.get("submit_s", 0))
        await self._held(script, "submit")
        if script.get("stream"):
            return await self._stream(script, writer)
        if script.get("inline"):
            data = [base64.b64encode(picture("PNG", (80, 60 + n))).decode() for n in range(script["n"])]
            return await send(writer, json.dumps({"state": "done", "data": data}).encode())
        return await send(writer, json.dumps({"task": task, "id": task, "status": "queued"}).encode())

    async def _stream(self, script: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        """Unfinished pictures, then the finished one; `stream` may be `cut` instead."""
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n")
        for n in range(script.get("partials", 2)):
            data = base64.b64encode(picture("PNG", (80, 50 + n))).decode()
            writer.write(f"data: {json.dumps({'state': 'working', 'percent': None, 'partial': data})}\n\n".encode())
            await writer.drain()
        if script["stream"] != "cut":
            data = base64.b64encode(picture("PNG", (80, 60))).decode()
            writer.write(f"data: {json.dumps({'state': 'done', 'data': [data]})}\n\n".encode())
        await writer.drain()
        return False

    async def _held(self, script: dict[str, Any], what: str) -> None:
        if script.get("held") == what:
            await self.go.wait()

    async def _poll(self, task: str, script: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        await asyncio.sleep(script.get("poll_s", 0))
        polls = script["polled"] = script.get("polled", 0) + 1
        faults = script.get("faults", [])
        if polls <= len(faults):
            fault = faults[polls - 1]
            if fault == "garbage":
                return await send(writer, b"<html>oops")
            if fault == "reset":
                reset(writer)
                return False
            return await send(writer, b'{"error":"busy"}', fault, script.get("headers", {}))
        polls -= len(faults)
        held = script.get("held") == "polls" and not self.go.is_set()
        if polls <= script.get("polls", 0) or script.get("never") or held:
            percent = None if script.get("silent") else 100 * polls / (script.get("polls", 0) + 1)
            working = {"state": "working", "percent": percent, "status": "in_progress", "progress": percent}
            answer = json.dumps(working).encode()
            return await send(writer, answer, headers=script.get("headers", {}))
        if outcome := script.get("fail"):
            error = {"code": outcome, "message": "the model refused"}
            answer = json.dumps({"state": "failed", **error, "status": "failed", "error": error}).encode()
            return await send(writer, answer)
        url = f"/files/{task}" if script.get("relative") else f"{self.url}/files/{task}"
        return await send(writer, json.dumps({"state": "done", "url": url, "status": "completed"}).encode())

    async def _file(self, script: dict[str, Any], writer: asyncio.StreamWriter) -> bool:
        got = script["got"] = script.get("got", 0) + 1
        data = film(noisy=True, frames=48) + padding(script.get("padded", 0))
        await asyncio.sleep(script.get("file_s", 0))
        await self._held(script, "file")
        match script.get("file", "good"):
            case "dead":
                return await send(writer, b"gone", 404)
            case "flaky" if got < 3:
                return await send(writer, b"not yet", 404)
            case "html":
                return await send(writer, b"<!doctype html><p>log in</p>" * 20)
            case "cut" if got < 2:
                return await cut(writer, data, len(data) // 2)
            case "torn":
                return await cut(writer, data, 3_000_000)
        return await send(writer, data)


def padding(size: int) -> bytes:
    """Give a box of MP4 that players skip, of so many bytes."""
    return size.to_bytes(4, "big") + b"free" + bytes(size - 8) if size else b""


def place(path: str) -> tuple[str, str]:
    """Say what is asked for: a film or its file, and whose."""
    parts = path.removeprefix("/v1").split("/")
    if parts[1] == "videos":
        return ("files" if parts[3:] == ["content"] else "films"), parts[2]
    return parts[1], parts[2]


async def cut(writer: asyncio.StreamWriter, body: bytes, after: int) -> bool:
    writer.write(f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body[:after])
    await writer.drain()
    return False


async def send(
    writer: asyncio.StreamWriter, body: bytes, status: int = 200, headers: dict[str, str] | None = None
) -> bool:
    lines = [f"HTTP/1.1 {status} X", f"content-length: {len(body)}", *(f"{k}: {v}" for k, v in (headers or {}).items())]
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
    await writer.drain()
    return True


def reset(writer: asyncio.StreamWriter) -> None:
    raw = writer.get_extra_info("socket")
    raw.setsockopt(1, 13, struct.pack("ii", 1, 0))  # SO_LINGER 0: a TCP reset
    writer.transport.abort()


async def main() -> None:
    async with FilmProvider() as provider:
        sys.stdout.write(provider.url + "\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
