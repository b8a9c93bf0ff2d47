"""An operator's day with `trunkline serve` as a process: keys, a changed configuration, a backup that is used."""

import asyncio
import json
import shutil
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from gateway import chat, chunk
from gateway_process import Home, Process
from raw_upstream import Peer, raw_upstream

pytestmark = pytest.mark.faults
HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n"
USAGE = {"prompt_tokens": 1000, "completion_tokens": 500, "total_tokens": 1500}


class Upstream:
    """Ends its streams when told; notes the keys that it is sent."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.keys: list[str] = []

    async def __call__(self, peer: Peer) -> None:
        head, _ = await peer.request()
        self.keys.append(head.lower().partition("authorization: bearer ")[2].partition("\r\n")[0])
        await peer.send(HEAD + chunk({"content": "one "}))
        await self.go.wait()
        await peer.send(chunk({"content": "two"}) + chunk({}, "stop", usage=USAGE) + b"data: [DONE]\n\n")


def tables(url: str, key: Path, name: str) -> dict[str, Any]:
    provider = {"base_url": url, "api_key": f"file:{key}", "chat": {"dialect": "openai_chat"}}
    price = {"input_per_mtok": 2.0, "output_per_mtok": 8.0}
    return {"providers": {"up": provider}, "models": {name: {"targets": ["up:x"], "price": price}}}


async def status(gateway: Process, wanted: int, model: str, **headers: str) -> int:
    """Ask for a model until it is answered with this status, for as long as changes may take."""
    got = 0
    for _ in range(1200):
        answer = await gateway.ask(chat(model, stream=True), **headers)
        got = answer.status
        answer.leave()
        if got == wanted:
            break
        await asyncio.sleep(0.05)
    return got


def lines(gateway: Process) -> list[dict[str, Any]]:
    """What it has logged of its calls, line by line."""
    whole = gateway.log.read_text().rpartition("\n")[0]
    return [json.loads(line) for line in whole.splitlines() if line.startswith("{")]


async def test_a_configuration_that_changes_under_a_running_process(tmp_path: Path) -> None:
    upstream, key = Upstream(), tmp_path / "key"
    key.write_text("sk-first")
    async with raw_upstream(upstream) as served:
        home = Home(tmp_path, tables(served.url, key, "old"))
        async with home.gateway() as gateway:
            stream = await gateway.ask(chat("old", stream=True))
            assert b"one" in await stream.chunk()
            home.tables = tables(served.url, key, "new")
            home.config("a")
            assert await status(gateway, 200, "new") == 200
            assert await status(gateway, 404, "old") == 404
            key.write_text("sk-second")
            gateway.kill(signal.SIGHUP)
            async with asyncio.timeout(60):
                while upstream.keys[-1] != "sk-second":
                    assert await status(gateway, 200, "new") == 200
            (tmp_path / "a.toml").write_text("[server\n")
            gateway.kill(signal.SIGHUP)
            async with asyncio.timeout(60):
                while "the changed configuration is not used" not in gateway.log.read_text():
                    assert await status(gateway, 200, "new") == 200
            upstream.go.set()
            assert (await stream.body()).endswith(b"data: [DONE]\n\n")
    said = gateway.log.read_text()
    assert "the former one stays: is not valid TOML" in said
    assert "sk-first" not in said
    assert "sk-second" not in said


async def test_keys_and_a_backup(tmp_path: Path) -> None:
    upstream, key = Upstream(), tmp_path / "key"
    key.write_text("sk-upstream")
    upstream.go.set()
    async with raw_upstream(upstream) as served:
        home = Home(tmp_path, tables(served.url, key, "m"))
        async with home.gateway() as gateway:
            await home.cli("groups", "create", "--name", "team", "--budget-usd", "1", "--per", "month", "--json")
            made = await home.cli("keys", "create", "--name", "anna", "--group", "team", "--json")
            auth = {"authorization": f"Bearer {made['key']}"}
            assert await status(gateway, 200, "m", **auth) == 200
            assert await status(gateway, 401, "m") == 401
            await home.cli("keys", "block", made["id"])
            assert await status(gateway, 401, "m", **auth) == 401
            await home.cli("keys", "unblock", made["id"])
            assert await status(gateway, 200, "m", **auth) == 200
            body = await (await gateway.ask(chat("m", stream=True), x_request_id="last", **auth)).body()
            assert body.endswith(b"data: [DONE]\n\n")
            async with home.books() as books:
                async with asyncio.timeout(60):
                    rows = await books.rows(3)
                    while all(row.request_id != "last" for row in rows):
                        rows = await books.rows(len(rows) + 1)
            told = await home.cli("db", "backup", str(tmp_path / "copy"))
            assert told.startswith("trunkline.db")
            async with asyncio.timeout(60):
                while not (said := [one for one in lines(gateway) if one["call"] == "last"]):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
            (last,) = said
            assert (last["end"], last["cost_usd"], last["key"]) == ("completed", 0.006, made["id"])
        shutil.copytree(tmp_path / "copy", tmp_path / "b")
        async with home.gateway("b") as gateway:
            assert await status(gateway, 200, "m", **auth) == 200
            shown = await home.cli("keys", "show", made["id"], "--json", name="b")
            assert shown["spend"][0]["spent"] >= 6000
            assert shown["group"]["budget"]["month"] == 1_000_000


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize(
    ("database", "told"),
    [
        ("postgresql://u:pass-word@127.0.0.1:1/x?sslmode=require", "the database cannot be used: "),
        ("", "the database's schema is of another version of Trunkline: "),
    ],
)
async def test_a_database_that_cannot_be_used_is_told_in_one_line(
    tmp_path: Path, database: str, told: str, workers: str
) -> None:
    home = Home(tmp_path, {"storage": {"database": database}} if database else {})
    if not database:
        await home.cli("db", "upgrade")
        with sqlite3.connect(tmp_path / "a" / "trunkline.db") as file:
            file.execute("UPDATE alembic_version SET version_num = 'v9999'")
        file.close()
    running = Process(home, "a", "--workers", workers)
    assert await running.end() == 1
    _no_provider, line = running.log.read_text().splitlines()
    assert line.startswith(f"trunkline: {told}")
    assert "pass-word" not in line


@pytest.mark.parametrize("workers", ["1", "2"])
async def test_a_directory_that_cannot_be_written_is_told_in_one_line(tmp_path: Path, workers: str) -> None:
    home = Home(tmp_path, {})
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "journal").touch()
    running = Process(home, "a", "--workers", workers)
    assert await running.end() == 1
    _no_provider, line = running.log.read_text().splitlines()
    assert line.startswith("trunkline: ")
    assert line.endswith(f"File exists: '{tmp_path / 'a' / 'journal'}'")
