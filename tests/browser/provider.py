"""A provider whose models' names say what they do: OpenAI's wire on a real socket, in a thread."""

import asyncio
import base64
import itertools
import json
import struct
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from corpus import CORPUS
from said import EVIL, FLOODS, HOSTILE, MARKDOWN, pieces
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

FILM = (Path(__file__).parent / "film.mp4").read_bytes()
LOOK_ALIKES = {
    name: next((CORPUS / "openai_chat" / name).glob("upstream.*"))
    for name in (
        "capture_image_relay",
        "capture_one_object",
        "capture_openai_stripped",
        "capture_relay_zero_usage",
        "capture_video_wrapper",
    )
}
"""Our own look-alikes of five captures of real providers."""
FILMS_S = {"film": 3.0, "epic": 600.0, "evil": 0.0}
"""The models of films, and how long they take."""
TEXTS = ("words", "markdown", "think", "tools", "hostile", "evil_tools", "endless", "breaks", "wrong")
ONCE_MORE_S = 0.01
A_SECOND = 3000
"""Chunks that a flood has."""


class Provider:
    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.left = threading.Event()
        """Somebody has left the endless answer."""
        self._may_finish = threading.Event()
        self._may_finish.set()
        self.films: dict[str, tuple[float, float]] = {}
        self._numbers = itertools.count()
        routes = [
            Route("/v1/chat/completions", self.answer, methods=["POST"]),
            Route("/v1/videos", self.submit, methods=["POST"]),
            Route("/v1/videos/{id}", self.poll, methods=["GET", "DELETE"]),
            Route("/v1/videos/{id}/content", self.content),
            Route("/v1/images/{how}", self.picture, methods=["POST"]),
        ]
        config = uvicorn.Config(
            Starlette(routes=routes),
            port=0,
            log_level="critical",
            timeout_keep_alive=3600,  # it closes no connection while the next question is on its way
            timeout_graceful_shutdown=1,
        )
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Finish no thought, no flood and no film in this block, however slow the machine is that looks on."""
        self._may_finish.clear()
        try:
            yield
        finally:
            self._may_finish.set()

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()

    async def answer(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.asked.append(body)
        model = body["model"]
        if model in LOOK_ALIKES:
            return Response(LOOK_ALIKES[model].read_bytes(), media_type="text/event-stream")
        if model == "wrong":
            return JSONResponse({"error": {"message": f"No: {HOSTILE}", "type": "x", "code": "<b>no</b>"}}, 400)
        says = self.flood(FLOODS[model]) if model in FLOODS else getattr(self, model)(body)
        return StreamingResponse(says, media_type="text/event-stream")

    async def words(self, _body: Any) -> AsyncIterator[str]:
        for word in pieces("A trunk line carries what many branches bring, as told."):
            yield chunk({"content": word})
            await asyncio.sleep(ONCE_MORE_S)
        usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
        yield chunk({}, "stop", usage=usage) + "data: [DONE]\n\n"

    async def markdown(self, _body: Any) -> AsyncIterator[str]:
        for start in range(0, len(MARKDOWN), 5):
            yield chunk({"content": MARKDOWN[start : start + 5]})
            await asyncio.sleep(ONCE_MORE_S)
        yield chunk({}, "stop") + "data: [DONE]\n\n"

    async def think(self, _body: Any) -> AsyncIterator[str]:
        step = 0
        while step < 20 or not self._may_finish.is_set():
            yield chunk({"reasoning_content": f"Step {step}: consider `<b>` the **branches**.\n\n"})
            await asyncio.sleep(0.05)
            step += 1
        yield chunk({"content": "Thought **through**."}) + chunk({}, "stop") + "data: [DONE]\n\n"

    async def tools(self, body: Any) -> AsyncIterator[str]:
        if body["messages"][-1]["role"] == "tool":
            yield chunk({"content": f"The tool says: {body['messages'][-1]['content']}"})
            yield chunk({}, "stop") + "data: [DONE]\n\n"
            return
        for part in called("get_weather", '{"city": "Lisbon"}'):
            yield chunk({"tool_calls": [part]})
        yield chunk({}, "tool_calls") + "data: [DONE]\n\n"

    async def hostile(self, _body: Any) -> AsyncIterator[str]:
        for name in ("reasoning_content", "content"):
            for start in range(0, len(HOSTILE), 7):
                yield chunk({name: HOSTILE[start : start + 7]})
        yield chunk({}, "stop") + "data: [DONE]\n\n"

    async def evil_tools(self, _body: Any) -> AsyncIterator[str]:
        for part in called(HOSTILE.splitlines()[0], json.dumps({HOSTILE: HOSTILE})):
            yield chunk({"tool_calls": [part]})
        yield chunk({}, "tool_calls") + "data: [DONE]\n\n"

    async def endless(self, _body: Any) -> AsyncIterator[str]:
        try:
            for number in range(10_000):
                yield chunk({"content": f"line {number}\n\n"})
                await asyncio.sleep(0.05)
        finally:
            self.left.set()

    async def breaks(self, _body: Any) -> AsyncIterator[str]:
        yield chunk({"content": "A trunk line "})
        await asyncio.sleep(0.1)
        yield chunk({"content": "is"})

    async def flood(self, text: str) -> AsyncIterator[str]:
        """Say a text as fast as no model does."""
        words, begun, sent = pieces(text), time.monotonic(), 0
        half = len(words) // 2
        while sent < len(words):
            await asyncio.sleep(ONCE_MORE_S)
            now = time.monotonic()
            due = int((now - begun) * A_SECOND)
            if due > half and not self._may_finish.is_set():
                due, begun = half, now - half / A_SECOND
            yield "".join(chunk({"content": word}) for word in words[sent:due])
            sent = due
        yield chunk({}, "stop") + "data: [DONE]\n\n"

    async def submit(self, request: Request) -> Response:
        body = json.loads(await request.body())
        self.asked.append(body)
        name = f"{EVIL if body['model'] == 'evil' else 'film'}-{next(self._numbers)}"
        self.films[name] = (time.monotonic(), FILMS_S[body["model"]])
        return JSONResponse({"id": name, "object": "video", "status": "queued", "progress": 0})

    async def poll(self, request: Request) -> Response:
        name = request.path_params["id"]
        if request.method == "DELETE":
            del self.films[name]
            return JSONResponse({"id": name, "deleted": True})
        begun, lasts_s = self.films[name]
        if not lasts_s:
            failed = {"id": name, "object": "video", "status": "failed", "error": {"code": EVIL, "message": HOSTILE}}
            return JSONResponse(failed, headers={"x-said": EVIL})
        most = 100 if self._may_finish.is_set() else 60
        progress = min(most, 1 + int(100 * (time.monotonic() - begun) / lasts_s))
        status = "completed" if progress == 100 else "in_progress"
        return JSONResponse({"id": name, "object": "video", "status": status, "progress": progress})

    async def content(self, _request: Request) -> Response:
        return Response(FILM, media_type="video/mp4")

    async def picture(self, _request: Request) -> Response:
        return JSONResponse({"data": [{"b64_json": base64.b64encode(png(320, 240)).decode()}]})


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> str:
    told = {"id": "up-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "real"}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "data: " + json.dumps(told | {"choices": [choice]} | members) + "\n\n"


def called(name: str, arguments: str) -> Iterator[dict[str, Any]]:
    """Give a tool call in pieces, as it is streamed."""
    yield {"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": ""}}
    for start in range(0, len(arguments), 6):
        yield {"index": 0, "function": {"arguments": arguments[start : start + 6]}}


def png(width: int, height: int) -> bytes:
    """A painted sky, without a library."""
    row = b"\0" + b"".join(bytes((200 - x * 90 // width, 120, 90 + x * 120 // width)) for x in range(width))

    def part(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(row * height)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", body) + part(b"IEND", b"")
