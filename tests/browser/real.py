"""The gateway itself as a process, with its embedded models and one provider of ours; nginx and a line before it."""

import asyncio
import itertools
import os
import re
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from provider import LOOK_ALIKES, TEXTS, png
from said import EVIL, FLOODS

from trunkline.core.media import MediaRecord
from trunkline.storage.media.store import media_store
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.media import MEDIA
from trunkline.storage.sql.migrate import upgrade
from trunkline.storage.sql.tables import media

ADMIN_KEY = "admin-key-of-the-tests"
HOSTILE_NAME = EVIL
CONFIG = """
[server]
listen = "127.0.0.1:0"
data_dir = "data"
admin_key = "{admin_key}"
trusted_proxies = ["127.0.0.1"]

[keys]
required = {required}

[media]
allow_private = true

[providers.up]
base_url = "{upstream}v1"
api_key = "sk-upstream-secret"
chat = {{ dialect = "openai_chat" }}
image = {{ dialect = "openai_images" }}
video = {{ dialect = "openai_videos" }}

[providers.up.models]
still = {{ kind = "image" }}
film = {{ kind = "video" }}
epic = {{ kind = "video" }}
evil = {{ kind = "video" }}

[models.'{hostile}']
targets = ["up:hostile"]

[models.'{hostile} film']
targets = ["up:film"]

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


@contextmanager
def running_gateway(folder: Path, upstream: str, *options: str, required: bool = False) -> Iterator[str]:
    """Run `trunkline serve`, without `upstream` unconfigured; gives where it is. `required`: keys are."""
    config = folder / "trunkline.toml"
    names = (*TEXTS, *FLOODS, *LOOK_ALIKES)
    models = "".join(f'[models."up/{name}"]\ntargets = ["up:{name}"]\n' for name in names)
    filled = {"admin_key": ADMIN_KEY, "upstream": upstream, "hostile": HOSTILE_NAME, "required": str(required).lower()}
    if upstream:  # a `trunkline.toml` that lies where it starts is read
        config.write_text(CONFIG.format(**filled) + models)
    how = ["--config", str(config)] if upstream else ["--listen", "127.0.0.1:0", "--data-dir", str(folder)]
    command = [sys.executable, "-m", "trunkline", "serve", *how, *options]
    log = (folder / "log").open("w")
    with log, subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT) as process:
        while not (told := re.search(r"serving on (http://\S+)", (folder / "log").read_text())):
            assert process.poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        try:
            yield told[1] + "/"
        finally:
            process.terminate()


def fill(data_dir: Path, count: int) -> None:
    """Put so many pictures into the media store of a gateway that is not running: a hundred, and again."""
    with ThreadPoolExecutor(1) as thread:  # Playwright's loop runs in this one
        thread.submit(asyncio.run, _fill(data_dir, count)).result()


async def _fill(data_dir: Path, count: int) -> None:
    database, store = Database.at(data_dir / "trunkline.db"), media_store(data_dir, "")
    await upgrade(database)
    files = []
    for number in range(100):
        async with store.receive(_once(png(160 + number, 120)), 1 << 20) as file:
            await store.keep(file)
            files.append(file)
    rows = [
        MEDIA.values(
            MediaRecord(
                id=f"img_{number:024x}",
                kind="image",
                model="up/still",
                sha256=file.sha256,
                storage_key=file.sha256,
                mime_type=file.mime_type,
                bytes=file.bytes,
                width=160 + number % 100,
                height=120,
            )
        )
        | {"created_ms": time.time_ns() // 1_000_000 - number}
        for number, file in zip(range(count), itertools.cycle(files), strict=False)
    ]
    async with database.write() as connection:
        await connection.execute(media.insert(), rows)
    await database.close()


async def _once(data: bytes) -> AsyncIterator[bytes]:
    yield data


@contextmanager
def nginx_before(url: str, folder: Path) -> Iterator[str]:
    """Put nginx before a gateway, under the prefix `/ai/gateway/`."""
    with socket.create_server(("127.0.0.1", 0)) as door:  # nginx takes it over: a free port may be another's by then
        port = door.getsockname()[1]
        (folder / "nginx.conf").write_text(NGINX.format(folder=folder, port=port, url=url))
        command = [shutil.which("nginx") or "/usr/sbin/nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")]
        process = subprocess.Popen(command, env={**os.environ, "NGINX": f"{door.fileno()};"}, pass_fds=[door.fileno()])
    try:
        yield f"http://127.0.0.1:{port}/ai/gateway/"
    finally:
        process.terminate()
        process.wait()


class Cable:
    """A line to a gateway that can be cut, and mended."""

    def __init__(self, url: str) -> None:
        self._end = ("127.0.0.1", int(url.rstrip("/").rpartition(":")[2]))
        self._door = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self._is_cut = False
        self.url = f"http://127.0.0.1:{self._door.getsockname()[1]}/"
        threading.Thread(target=self._take, daemon=True).start()

    def cut(self) -> None:
        self._is_cut = True
        self.drop()

    def mend(self) -> None:
        self._is_cut = False

    def drop(self) -> None:
        """Break the connections that there are."""
        for end in self._open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self._door.close()

    def _take(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._door.accept()
                if self._is_cut:
                    near.close()
                    continue
                threading.Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        with near, socket.create_connection(self._end) as far:
            self._open += [near, far]
            if self._is_cut:
                self.drop()
            back = threading.Thread(target=_carry, args=(far, near), daemon=True)
            back.start()
            _carry(near, far)
            back.join()


def _carry(one: socket.socket, other: socket.socket) -> None:
    with suppress(OSError):
        while data := one.recv(65536):
            other.sendall(data)
    with suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)
