"""The gateway itself as a process, with its embedded models and one provider of ours; nginx before it."""

import asyncio
import json
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from corpus import CORPUS
from fake_gateway import HOSTILE
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

ADMIN_KEY = "admin-key-of-the-tests"
HOSTILE_NAME = '<img src=x onerror="window.hacked=1">'
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
FLOOD = [f"word{number}\n\n" if number % 30 == 29 else f"word{number} " for number in range(9000)]
CONFIG = """
[server]
listen = "127.0.0.1:0"
data_dir = "data"
admin_key = "{admin_key}"
trusted_proxies = ["127.0.0.1"]

[keys]
required = false

[providers.up]
base_url = "{upstream}v1"
api_key = "sk-upstream-secret"
chat = {{ dialect = "openai_chat" }}

[models.'{hostile}']
targets = ["up:hostile"]

[models.priced]
targets = ["up:words"]
price = {{ input_per_mtok = 0, output_per_mtok = 1000 }}
"""
NGINX = """
daemon off; pid {folder}/pid; error_log stderr; worker_processes 1;
events {{ worker_connections 64; }}
http {{
  access_log off; client_max_body_size 64m;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
  server {{
    listen 127.0.0.1:{port};
    location /ai/gateway/ {{
      proxy_pass {url};
      proxy_http_version 1.1; proxy_set_header Host $http_host; proxy_buffering off; proxy_read_timeout 3600s;
      proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Host $http_host;
      proxy_set_header X-Forwarded-Proto $scheme; proxy_set_header X-Forwarded-Prefix /ai/gateway;
    }}
  }}
}}
"""


def chunk(delta: dict[str, Any], finish: str | None = None, **members: Any) -> str:
    told = {"id": "up-1", "object": "chat.completion.chunk", "created": 1700000000, "model": "real"}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return "data: " + json.dumps(told | {"choices": [choice]} | members) + "\n\n"


def answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class Provider:
    """A provider whose models' names say what they do, in a thread."""

    def __init__(self) -> None:
        self.left = threading.Event()
        """Somebody has left the endless answer."""
        app = Starlette(routes=[Route("/v1/chat/completions", self.answer, methods=["POST"])])
        config = uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=1)
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)
        self.url = f"http://127.0.0.1:{self.server.servers[0].sockets[0].getsockname()[1]}/"

    def stop(self) -> None:
        self.server.should_exit = True
        self.thread.join()

    async def answer(self, request: Request) -> Response:
        model = json.loads(await request.body())["model"]
        if model in LOOK_ALIKES:
            return Response(LOOK_ALIKES[model].read_bytes(), media_type="text/event-stream")
        return StreamingResponse(getattr(self, model)(), media_type="text/event-stream")

    async def words(self) -> AsyncIterator[str]:
        yield chunk({"role": "assistant", "content": "Twenty tokens, as told."})
        usage = {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30}
        yield chunk({}, "stop", usage=usage) + "data: [DONE]\n\n"

    async def hostile(self) -> AsyncIterator[str]:
        for start in range(0, len(HOSTILE), 7):
            yield chunk({"content": HOSTILE[start : start + 7]})
        yield chunk({}, "stop") + "data: [DONE]\n\n"

    async def flood(self) -> AsyncIterator[str]:
        for start in range(0, len(FLOOD), 30):
            await asyncio.sleep(0.01)
            yield "".join(chunk({"content": word}) for word in FLOOD[start : start + 30])
        yield chunk({}, "stop") + "data: [DONE]\n\n"

    async def endless(self) -> AsyncIterator[str]:
        try:
            for number in range(10_000):
                yield chunk({"content": f"line {number}\n\n"})
                await asyncio.sleep(0.05)
        finally:
            self.left.set()


@contextmanager
def running_gateway(folder: Path, upstream: str) -> Iterator[str]:
    """Run `trunkline serve`; gives where it says that it serves."""
    config = folder / "trunkline.toml"
    names = ("words", "hostile", "flood", "endless", *LOOK_ALIKES)
    models = "".join(f'[models."up/{name}"]\ntargets = ["up:{name}"]\n' for name in names)
    config.write_text(CONFIG.format(admin_key=ADMIN_KEY, upstream=upstream, hostile=HOSTILE_NAME) + models)
    command = [sys.executable, "-m", "trunkline", "serve", "--config", str(config)]
    log = (folder / "log").open("w")
    with log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT) as process:
        while not (told := re.search(r"serving on (http://\S+)", (folder / "log").read_text())):
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield told[1] + "/"
        process.terminate()


@contextmanager
def nginx_before(url: str, folder: Path) -> Iterator[str]:
    """Put nginx before a gateway, under the prefix `/ai/gateway/`."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, url=url))
    binary = shutil.which("nginx") or "/usr/sbin/nginx"
    process = subprocess.Popen([binary, "-p", str(folder), "-c", str(folder / "nginx.conf")])
    while not answers(port):
        assert process.poll() is None
        time.sleep(0.01)
    yield f"http://127.0.0.1:{port}/ai/gateway/"
    process.terminate()
    process.wait()
