"""The gateway itself, whole, in the test's event loop on a real socket; and a client that sees every byte."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from trunkline.app import Application
from trunkline.cli.server import bind, make_server
from trunkline.config.load import Loaded, build
from trunkline.config.spoken import this_build
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.migrate import upgrade


class Client:
    """A client of what listens on a port."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.url = f"http://127.0.0.1:{port}/v1"
        self.answers: list[Answer] = []

    async def send(self, method: str, path: str, body: bytes = b"", **headers: str) -> "Answer":
        """Send a request; its answer is not waited for."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        lines = [f"{method} {path} HTTP/1.1", f"content-length: {len(body)}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in {"host": "gateway", **headers}.items()]
        writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + body)
        self.answers.append(Answer(reader, writer))
        return self.answers[-1]

    async def ask(self, body: object, path: str = "/v1/chat/completions", **headers: str) -> "Answer":
        """Post something and wait for the answer's head."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        answer = await self.send("POST", path, data, **headers)
        await answer.read_head()
        return answer

    async def get(self, path: str, method: str = "GET", **headers: str) -> "Answer":
        """Get a page."""
        answer = await self.send(method, path, b"", **headers)
        await answer.read_head()
        return answer


class Gateway(Client):
    """A running gateway."""

    def __init__(self, application: Application, port: int) -> None:
        super().__init__(port)
        self.application = application


class Answer:
    """An answer as it comes over the socket."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.status = 0
        self.headers: dict[str, str] = {}
        self.kept = False
        """Read after the gateway was told to go down."""

    async def read_head(self) -> None:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        first, *rest = head.strip().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in rest)}

    async def chunk(self) -> bytes:
        """The next chunk of the transfer coding; empty at the end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        data = await self.reader.readexactly(size)
        await self.reader.readexactly(2)
        return data

    async def body(self) -> bytes:
        """The rest of the body, to its proper end."""
        if "content-length" in self.headers:
            return await self.reader.readexactly(int(self.headers["content-length"]))
        pieces = []
        while data := await self.chunk():
            pieces.append(data)
        return b"".join(pieces)

    async def json(self) -> Any:
        return json.loads(await self.body())

    async def events(self) -> list[Any]:
        """All events: JSON values, and `[DONE]` as a string."""
        body = (await self.body()).decode()
        data = [line.removeprefix("data: ") for line in body.split("\n") if line.startswith("data: ")]
        return [item if item == "[DONE]" else json.loads(item) for item in data]

    def leave(self) -> None:
        """Close the connection."""
        self.writer.transport.abort()


_schema: list[bytes] = []


async def _migrated() -> bytes:
    """An empty database of this version's schema, made once: the gateway itself finds nothing to upgrade."""
    if not _schema:
        with tempfile.TemporaryDirectory() as folder:
            database = Database.at(Path(folder) / "trunkline.db")
            await upgrade(database)
            await database.close()
            _schema.append((Path(folder) / "trunkline.db").read_bytes())
    return _schema[0]


def _put(data_dir: Path, empty: bytes) -> None:
    if not (data_dir / "trunkline.db").exists():
        data_dir.mkdir(parents=True, exist_ok=True)
        (data_dir / "trunkline.db").write_bytes(empty)


@asynccontextmanager
async def gateway(
    data_dir: Path, tables: Mapping[str, Any], again: Callable[[], Loaded] | None = None
) -> AsyncIterator[Gateway]:
    """Run the gateway with a configuration, given as TOML's tables; `again` reads it for a reload."""
    own = {"data_dir": str(data_dir), "listen": "127.0.0.1:0", "keepalive_s": 120}  # who stalls is not kept alive
    server = {**own, **tables.get("server", {})}
    providers = {"local": {"enabled": False}, **tables.get("providers", {})}
    loaded = build({**tables, "server": server, "providers": providers}, {}, {}, this_build())
    if not loaded.config.storage.database:
        _put(data_dir, await _migrated())
    application = Application(loaded, {}, again)
    opened = bind("127.0.0.1:0")
    running = make_server(application, opened)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(running.serve(sockets=[opened]))
        try:
            while not running.started and not task.done():  # noqa: ASYNC110 - the server has no event for it
                await asyncio.sleep(0.01)
            gate = Gateway(application, opened.getsockname()[1])
            yield gate
        finally:
            for answer in gate.answers:
                if not answer.kept:
                    answer.leave()
            running.should_exit = True


def to_upstream(url: str, **timeouts: float) -> dict[str, Any]:
    """A configuration that sends every model to one upstream; no limit is met because the machine is slow."""
    limits = {"connect_s": 60, "first_event_s": 60, "idle_s": 60, **timeouts}
    provider = {"base_url": url, "api_key": "sk-upstream", "chat": {"dialect": "openai_chat"}}
    return {
        "providers": {"up": provider},
        "models": {"*": {"targets": ["up:*"], "timeouts": limits}},
    }


def chat(model: str = "m", **members: Any) -> dict[str, Any]:
    """A chat request."""
    return {"model": model, "messages": [{"role": "user", "content": "hi"}], **members}


def chunk(delta: Mapping[str, Any] | None = None, finish: str | None = None, **members: Any) -> bytes:
    """One event of an upstream's stream."""
    choices = [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    value = {
        "id": "up-1",
        "object": "chat.completion.chunk",
        "created": 1700000000,
        "model": "real",
        "choices": choices,
    }
    return b"data: " + json.dumps(value | members).encode() + b"\n\n"
