"""A small gateway for the pages' tests: speaks the contract's `/v1`, media and resume, over a real socket."""

import asyncio
import base64
import json
import secrets
import struct
import threading
import time
import zlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from fake_admin import FakeAdmin
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from trunkline.http import pages
from trunkline.web import built, why_not

FILM = (Path(__file__).parent / "film.mp4").read_bytes()
RATIOS = ["1:1", "3:2", "2:3", "4:3", "3:4", "16:9", "9:16", "21:9"]


def facts(kind: str, **known: Any) -> dict[str, Any]:
    blank: dict[str, Any] = {"kind": kind, "provider": "local", "name": None, "price": {}, "max_n": 1, "max_inputs": 0}
    for table in ("ratios", "tiers", "sizes", "formats", "qualities", "seconds", "fps"):
        blank[table] = []
    return blank | known


MODELS: dict[str, dict[str, Any]] = {
    "local/text": facts("text", name="SmolLM2-135M-Instruct"),
    "local/image": facts(
        "image",
        name="trunkline-scene",
        ratios=RATIOS,
        tiers=["1K", "2K"],
        sizes=["*x*"],
        formats=["png", "jpeg", "webp"],
        max_n=4,
    ),
    "local/video": facts(
        "video", name="trunkline-scene", ratios=RATIOS[-3:], tiers=["480p", "720p"], seconds=[2, 4, 8]
    ),
    "test/markdown": facts("text"),
    "test/think": facts("text"),
    "test/tools": facts("text"),
    "test/flood": facts("text"),
    "test/endless": facts("text"),
    "test/cut": facts("text"),
    "test/breaks": facts("text"),
    "test/refused": facts("text"),
    "test/hostile": facts("text"),
    "test/hostile-image": facts("image"),
    'test/<img src=x onerror="window.hacked=1">': facts("text", name="<script>window.hacked=1</script>"),
}

WORDS = (
    "A trunk line is the main route between two exchanges: many local lines run into it, and one strong line carries "
    "all of them on. Railways had the word first, from the trunk of a tree and its branches. When telephone networks "
    "grew in the 1880s, engineers borrowed it."
)
MARKDOWN = """## Lines and trunks

A **trunk line** carries what many branches bring. See [the contract](https://example.com), and *note*:

1. it is shared,
2. it does not `care` who calls.

| kind | colour | arrives as |
|---|---|---:|
| text | blue | chunks |
| image | vermilion | a link |

```python
def trunk(branches):
    for branch in branches:
        yield from branch
```

> One line, many stations.

![elsewhere](https://tracker.example/pixel.png)
"""
HOSTILE = """<img src=x onerror="window.hacked=1"><script>window.hacked=1</script>
<svg onload="window.hacked=1"></svg> <iframe srcdoc="<script>parent.hacked=1</script>"></iframe>

[click](javascript:window.hacked=1) [data](data:text/html,<script>window.hacked=1</script>)
![x](javascript:window.hacked=1)
<a href="java&#115;cript:window.hacked=1">entity</a> [ref][r] <form action="https://evil.example"><input name=q></form>

```html"><img src=x onerror=window.hacked=1>
<script>window.hacked=1</script>
```

![x" onerror="window.hacked=1](https://evil.example/x.png "t\\" onload=\\"window.hacked=1")

[r]: javascript:window.hacked=1
"""


def png(width: int, height: int, hue: int = 0) -> bytes:
    """A painted sky over a sea, without a library."""
    rows = bytearray()
    for y in range(height):
        share = y / height
        sea = share > 0.62
        rows.append(0)
        for x in range(width):
            sun = (x - width * 0.68) ** 2 + (y - height * 0.42) ** 2 < (min(width, height) * 0.13) ** 2
            red, green, blue = (
                (255, 214, 120)
                if sun
                else (40, 92, 128)
                if sea
                else (248 - int(90 * share), 150 + int(50 * share), 110 + hue)
            )
            ripple = 14 if sea and (x // 9 + y // 4) % 5 == 0 else 0
            rows += bytes((min(255, red + ripple), min(255, green + ripple), min(255, blue + ripple)))

    def part(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(bytes(rows))) + part(b"IEND", b"")


@dataclass
class Stream:
    """One answer, laid out in time: so any reader can join at any event."""

    id: str
    model: str
    begun: float
    events: list[tuple[float, str]]
    stopped: bool = False
    cut: bool = False


@dataclass
class FakeGateway:
    """What the tests may set, and what they may look at afterwards."""

    video_s: float = 2.5
    image_s: float = 1.0
    key: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    streams: dict[str, Stream] = field(default_factory=dict)
    by_idempotency_key: dict[str, Stream] = field(default_factory=dict)
    media: dict[str, tuple[str, bytes]] = field(default_factory=dict)
    drop_connections: int = 0
    admin: FakeAdmin = field(default_factory=FakeAdmin)

    def app(self) -> Starlette:
        v1 = [
            Route("/models", self.models),
            Route("/chat/completions", self.chat, methods=["POST"]),
            Route("/streams/{id}", self.stream, methods=["GET", "DELETE"]),
            Route("/media/{id}", self.medium),
        ]
        root = [
            Mount("/v1", routes=v1),
            Mount("/admin/api", routes=self.admin.routes()),
            *pages.routes(built(), why_not()),
        ]
        return Starlette(routes=[Mount("/prefix", routes=root), *root])

    def refuse(self, request: Request) -> Response | None:
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return fault(401, "invalid_api_key", "The API key is missing or wrong.")
        return None

    async def models(self, request: Request) -> Response:
        items = [
            {"id": name, "object": "model", "created": 1, "owned_by": "local", "trunkline": known}
            for name, known in MODELS.items()
        ]
        return self.refuse(request) or JSONResponse({"object": "list", "data": items})

    async def chat(self, request: Request) -> Response:
        if refused := self.refuse(request):
            return refused
        body = json.loads(await request.body())
        self.requests.append(body)
        self.headers.append(dict(request.headers))
        if body["model"] == "test/refused":
            return fault(402, "budget_exceeded", "The budget of key anna is spent.")
        base = f"{request.url.scheme}://{request.url.netloc}{request.scope.get('root_path', '').removesuffix('/v1')}"
        name = request.headers.get("idempotency-key", "")
        stream = self.by_idempotency_key.get(name) or self.begin(body, base)
        if name:
            self.by_idempotency_key[name] = stream
        request_id = f"req_{secrets.token_hex(6)}"
        self.admin.remember(request_id, stream.model, [text for _, text in stream.events])
        return self.answer(stream, 0, request_id)

    def begin(self, body: dict[str, Any], base: str) -> Stream:
        stream = Stream(f"strm_{secrets.token_hex(6)}", body["model"], time.monotonic(), [])
        stream.events = list(Script(self, stream, body, base).events())
        self.streams[stream.id] = stream
        return stream

    def answer(self, stream: Stream, after: int, request_id: str) -> Response:
        headers = {
            "x-request-id": request_id,
            "x-trunkline-provider": "local",
            "x-trunkline-model": stream.model.partition("/")[2],
        }
        headers |= {"cache-control": "no-cache", "x-accel-buffering": "no", "x-trunkline-attempts": "1"}
        lasting = MODELS[stream.model]["kind"] != "text"
        if lasting:
            headers |= {"x-trunkline-stream-id": stream.id, "x-trunkline-job-id": stream.id}
        return StreamingResponse(
            self.write(stream, after, ids=lasting), media_type="text/event-stream", headers=headers
        )

    async def write(self, stream: Stream, after: int, *, ids: bool) -> AsyncIterator[bytes]:
        for number, (at, text) in enumerate(stream.events[after:], after + 1):
            while (wait := stream.begun + at - time.monotonic()) > 0:
                await asyncio.sleep(min(wait, 0.05))
                if stream.stopped:
                    return
            yield (f"id: {number}\n" if ids else "").encode() + f"data: {text}\n\n".encode()
            if self.drop_connections and number == after + 3:
                self.drop_connections -= 1
                raise ConnectionResetError
        if stream.cut:
            raise ConnectionResetError

    async def stream(self, request: Request) -> Response:
        stream = self.streams.get(request.path_params["id"])
        if stream is None:
            return fault(404, "stream_not_found", "There is no such stream.")
        if request.method == "DELETE":
            stream.stopped = True
            return Response(status_code=204)
        return self.answer(stream, int(request.headers.get("last-event-id", "0")), "req_again")

    async def medium(self, request: Request) -> Response:
        kind, data = self.media[request.path_params["id"]]
        if ranged := request.headers.get("range"):
            first, _, last = ranged.removeprefix("bytes=").partition("-")
            start, end = int(first), int(last or len(data) - 1)
            headers = {"content-range": f"bytes {start}-{end}/{len(data)}", "accept-ranges": "bytes"}
            return Response(data[start : end + 1], 206, headers=headers, media_type=kind)
        return Response(data, media_type=kind, headers={"accept-ranges": "bytes"})

    def keep(self, kind: str, mime_type: str, data: bytes) -> str:
        name = f"{kind[:3]}_{secrets.token_hex(8)}"
        self.media[name] = (mime_type, data)
        return f"/v1/media/{name}?exp=0&sig=test"


@dataclass
class Script:
    """What a model of the fake says, and when (seconds from the request)."""

    gateway: FakeGateway
    stream: Stream
    body: dict[str, Any]
    base: str

    def events(self) -> Iterator[tuple[float, str]]:
        model = self.body["model"]
        yield 0.0, self.chunk({"role": "assistant", "content": "", "refusal": None})
        act = getattr(self, "act_" + model.partition("/")[2].replace("-", "_"), self.act_text)
        yield from act()

    def chunk(self, delta: dict[str, Any], finish: str | None = None, **more: Any) -> str:
        head = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1790000000,
            "model": self.body["model"],
        }
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return json.dumps(head | {"choices": [choice], "usage": None} | more, ensure_ascii=False)

    def end(self, at: float, finish: str = "stop", tokens: int = 60, **more: Any) -> Iterator[tuple[float, str]]:
        yield at, self.chunk({}, finish, **more)
        usage = {"prompt_tokens": 31, "completion_tokens": tokens, "total_tokens": 31 + tokens, "cost": 0.000213}
        yield at, json.dumps(json.loads(self.chunk({})) | {"choices": [], "usage": usage})
        yield at, "[DONE]"

    def words(self, text: str, gap: float, start: float = 0.15) -> Iterator[tuple[float, str]]:
        for index in range(0, len(text), 5):
            yield start + index / 5 * gap, self.chunk({"content": text[index : index + 5]})

    def said(self, text: str, gap: float = 0.012, **more: Any) -> Iterator[tuple[float, str]]:
        yield from self.words(text, gap)
        yield from self.end(0.15 + len(text) / 5 * gap, **more)

    def act_text(self) -> Iterator[tuple[float, str]]:
        yield from self.said(WORDS)

    def act_markdown(self) -> Iterator[tuple[float, str]]:
        yield from self.said(MARKDOWN)

    def act_hostile(self) -> Iterator[tuple[float, str]]:
        yield from self.said(HOSTILE)

    def act_think(self) -> Iterator[tuple[float, str]]:
        for index in range(20):
            yield index * 0.02, self.chunk({"reasoning_content": f"Step {index}: consider the branches. "})
        yield from ((at + 0.4, text) for at, text in self.said("Thought **through**."))

    def act_tools(self) -> Iterator[tuple[float, str]]:
        if self.body["messages"][-1]["role"] == "tool":
            yield from self.said(f"The tool says: {self.body['messages'][-1]['content']}")
            return
        function = {"name": "get_weather", "arguments": ""}
        yield 0.1, self.chunk({"tool_calls": [{"index": 0, "id": "call_1", "type": "function", "function": function}]})
        for part in ('{"ci', 'ty": "Lis', 'bon"}'):
            yield 0.2, self.chunk({"tool_calls": [{"index": 0, "function": {"arguments": part}}]})
        yield from self.end(0.3, "tool_calls")

    def act_flood(self) -> Iterator[tuple[float, str]]:
        for index in range(9000):
            text = "\n\n" if index % 60 == 59 else "- item\n" if index % 60 == 30 else f"word{index} "
            yield index / 3000, self.chunk({"content": text})
        yield from self.end(3.0, tokens=9000)

    def act_endless(self) -> Iterator[tuple[float, str]]:
        for index in range(3000):
            yield 0.1 + index * 0.05, self.chunk({"content": f"line {index}\n"})

    def act_cut(self) -> Iterator[tuple[float, str]]:
        yield from self.words(WORDS[:60], 0.01)

    def act_breaks(self) -> Iterator[tuple[float, str]]:
        yield from self.words(WORDS[:60], 0.01)
        error = {"message": "The upstream ended in the middle of its answer.", "type": "upstream_error", "param": None}
        yield 0.4, json.dumps({"error": error | {"code": "upstream_incomplete"}})

    def act_image(self) -> Iterator[tuple[float, str]]:
        over = self.gateway.image_s
        yield over / 2, self.chunk({"reasoning_content": "Drawing · 2 s\n"})
        width, height = size_of(self.body.get("aspect_ratio", "1:1"), 480)
        items = [
            self.item("image", "image/png", png(width, height, hue), width, height)
            for hue in range(int(self.body.get("n", 1)))
        ]
        text = "Here is the picture.\n\n" + "\n\n".join(f"![image]({item['url']})" for item in items)
        yield over, self.chunk({"content": text})
        yield from self.end(over, media=self.media(items))

    act_hostile_image = act_image

    def act_video(self) -> Iterator[tuple[float, str]]:
        over = self.gateway.video_s
        for percent in range(5, 100, 5):
            yield over * percent / 100, self.chunk({"reasoning_content": f"Filming {percent} %\n"})
        cover = self.item("cover", "image/png", png(320, 180), 320, 180)
        film = self.item("video", "video/mp4", FILM, 320, 180)
        text = f"[![cover]({cover['url']})]({film['url']})\n\n[video]({film['url']})"
        yield over, self.chunk({"content": text})
        yield from self.end(over, media=self.media([film, cover]))

    def item(self, kind: str, mime_type: str, data: bytes, width: int, height: int) -> dict[str, Any]:
        url = self.base + self.gateway.keep(kind, mime_type, data)
        sizes = {"width": width, "height": height, "bytes": len(data), "sha256": secrets.token_hex(32)}
        return {"type": kind, "url": url, "mime_type": mime_type, "expires_at": 1790000000} | sizes

    def media(self, items: list[dict[str, Any]]) -> dict[str, Any]:
        return {"outputs": [item["url"] for item in items if item["type"] != "cover"], "items": items}


def size_of(ratio: str, long: int) -> tuple[int, int]:
    width, height = (int(part) for part in ratio.split(":"))
    return (long, long * height // width) if width >= height else (long * width // height, long)


def fault(status: int, code: str, message: str) -> Response:
    return JSONResponse(
        {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}, status
    )


class Running:
    """The fake on a port of its own, in a thread."""

    def __init__(self) -> None:
        self.gateway = FakeGateway()
        self.gateway.admin.fill(self.gateway.keep, png(240, 180), FILM)
        config = uvicorn.Config(self.gateway.app(), port=0, log_level="critical", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()


def data_url(data: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(data).decode()


if __name__ == "__main__":
    running = Running()
    print(running.url)
    running.thread.join()
