"""`trunkline serve` in processes of its own, that can be killed, and what is left behind by them."""

import asyncio
import json
import os
import re
import secrets
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from gateway import Answer, Client
from job_tools import opened

from trunkline.core.jobs import Job, JobState
from trunkline.core.money import LedgerRow
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.jobs import SqlJobs
from trunkline.storage.sql.money import SqlMoney

SECRET = "a secret of all replicas"
UP_S = 120


class Process(Client):
    """One gateway."""

    def __init__(self, home: "Home", name: str, *options: str) -> None:
        super().__init__(0)
        self.log = home.folder / f"{name}-{secrets.token_hex(2)}.log"
        command = [sys.executable, "-m", "trunkline", "serve", "--config", str(home.config(name)), *options]
        with self.log.open("wb") as file:
            self.process = subprocess.Popen(command, cwd=home.folder, env=home.environ, stdout=file, stderr=file)

    def is_up(self) -> bool:
        """Look whether it says where it listens."""
        told = self.log.read_text()
        if found := re.search(r"serving on http://\S+:(\d+)", told):
            self.port = int(found[1])
        assert self.process.poll() is None, told
        return bool(self.port)

    def kill(self, how: signal.Signals = signal.SIGKILL) -> None:
        os.kill(self.process.pid, how)

    def used(self) -> str:
        """Say how much of the processor and of memory it has taken."""
        proc = Path(f"/proc/{self.process.pid}")
        times = (proc / "stat").read_text().rpartition(")")[2].split()
        cpu_s = (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")
        peak = re.search(r"VmHWM:\s+(\d+)", (proc / "status").read_text())
        return f"{cpu_s:.1f} s of CPU, {int(peak[1]) // 1024 if peak else 0} MiB at most"

    def kill_if_alive(self) -> None:
        self.process.kill()

    async def end(self) -> int:
        """Wait until the process is no more; gives its exit status."""
        return await asyncio.to_thread(self.process.wait)


class Home:
    """A place where gateways run: one configuration, a directory of data for each name."""

    def __init__(self, folder: Path, tables: Mapping[str, Any], environ: Mapping[str, str] | None = None) -> None:
        self.folder = folder
        self.tables = tables
        self.environ = {**os.environ, "TRUNKLINE_CONFIG": "", **(environ or {})}

    def config(self, name: str) -> Path:
        """Write the configuration of the gateway of this name."""
        server = {"data_dir": str(self.folder / name), "listen": "127.0.0.1:0", "secret": SECRET}
        providers = {"local": {"enabled": False}, **self.tables.get("providers", {})}
        tables = {**self.tables, "server": {**server, **self.tables.get("server", {})}, "providers": providers}
        path = self.folder / f"{name}.toml"
        path.write_text("".join(f"{key} = {toml(value)}\n" for key, value in tables.items()))
        return path

    @asynccontextmanager
    async def gateway(self, name: str = "a", *options: str) -> AsyncIterator[Process]:
        """Run a gateway, with these options of `serve`; it is killed at the end, unless it is dead by then."""
        running = Process(self, name, *options)
        try:
            async with asyncio.timeout(UP_S):
                while not running.is_up():  # noqa: ASYNC110 - seen from outside
                    await asyncio.sleep(0.02)
            yield running
        finally:
            for answer in running.answers:
                answer.leave()
            running.kill_if_alive()
            await running.end()

    async def cli(self, *arguments: str, name: str = "a") -> Any:
        """Run a command with a gateway's configuration; gives the JSON that it prints."""
        command = [sys.executable, "-m", "trunkline", *arguments, "--config", str(self.config(name))]
        running = await asyncio.create_subprocess_exec(
            *command, env=self.environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        said, complaint = await running.communicate()
        assert running.returncode == 0, complaint.decode()
        return json.loads(said) if "--json" in arguments else said.decode()

    @asynccontextmanager
    async def books(self, name: str = "a") -> AsyncIterator["Books"]:
        """Look at the database from outside."""
        url = self.tables.get("storage", {}).get("database") or self.folder / name / "trunkline.db"
        async with opened(url) as database:
            yield Books(database)


class Books:
    """What the database says of jobs and money."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.jobs = SqlJobs(database)
        self.money = SqlMoney(database)

    async def reached(self, job_id: str, *states: JobState) -> Job:
        """Wait until the job is in one of these states."""
        async with asyncio.timeout(180):
            while (job := await self.jobs.get(job_id)) is None or job.state not in states:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.02)
            return job

    async def claimed(self, job_id: str) -> None:
        """Wait until another process than the first has the job."""
        async with asyncio.timeout(180):
            while (job := await self.jobs.get(job_id)) is None or job.generation == 1:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.02)

    async def rows(self, number: int = 0, **where: Any) -> list[LedgerRow]:
        """Give the ledger, once it has so many rows."""
        async with asyncio.timeout(120):
            while len(rows := await self.money.rows(limit=10_000, **where)) < number:  # noqa: ASYNC110 - from outside
                await asyncio.sleep(0.05)
            return rows


async def stopped_in(state: JobState, gate: Process, books: Books, script: Mapping[str, Any]) -> Answer:
    """Ask for films until the process stands still while one is in this state; give its answer. Then kill it."""
    states: tuple[JobState, ...] = ("queued", "submitting", "running", "storing", "completed")
    while True:  # it may pass through a state faster than it is seen
        answer = await gate.ask(film(script))
        job_id = answer.headers["x-trunkline-job-id"]
        await books.reached(job_id, *states[states.index(state) :])
        gate.kill(signal.SIGSTOP)
        await asyncio.sleep(0.2)  # what the database had been asked for is done
        if (await books.reached(job_id, *states)).state == state:
            return answer
        gate.kill(signal.SIGCONT)
        await answer.body()


def toml(value: Any) -> str:
    """Write a value as TOML does, in one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(key)} = {toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


def to_films(url: str, **more: Any) -> dict[str, Any]:
    """A configuration of the provider of `film_provider`, as it speaks OpenAI's wire."""
    reel = {"kind": "video", "price": {"per_second": 0.1}}
    films = {
        "base_url": f"{url}/v1",
        "api_key": "sk-films",
        "video": {"dialect": "openai_videos"},
        "models": {"reel": reel},
    }
    return {"providers": {"films": films}, "media": {"allow_private": True}, **more}


def film(script: Mapping[str, Any], **members: Any) -> dict[str, Any]:
    """Ask for a film in a chat; the script is for the provider."""
    messages = [{"role": "user", "content": json.dumps(script)}]
    return {"model": "films/reel", "messages": messages, "stream": True, **members}
