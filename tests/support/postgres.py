"""A PostgreSQL server of our own, as fixtures; a conftest imports what it uses."""

import os
import pwd
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from stoppable import Stoppable, kept_port


def as_nobody() -> dict[str, Any]:
    """PostgreSQL refuses to run as root."""
    if os.getuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid}


def tool(name: str) -> str:
    found = shutil.which(name) or next(iter(sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))), None)
    assert found, f"{name} is missing: install PostgreSQL (Debian: apt-get install postgresql)"
    return str(found)


class Postgres(Stoppable):
    """A server on a free port, in a directory that goes with it; it may be stopped and started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.user = as_nobody()
        if self.user:
            os.chown(home, self.user["user"], self.user["group"])
        self.port = kept_port()
        self.url = f"postgresql://trunkline@127.0.0.1:{self.port}"
        self.run("initdb", "-D", str(home / "data"), "-U", "trunkline", "-A", "trust", "-E", "UTF8")

    def run(self, name: str, *arguments: str) -> None:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        command = [tool(name), *arguments]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=self.home, env=environment, **self.user)

    def control(self, *arguments: str) -> None:
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
        self.run("pg_ctl", "-D", str(self.home / "data"), "-w", "-l", str(self.home / "log"), "-o", options, *arguments)

    def start(self) -> None:
        self.control("start")

    def stop(self) -> None:
        """Stop at once, as a crash does: clients are cut off."""
        self.control("-m", "immediate", "stop")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Postgres]:
    server = Postgres(Path(tempfile.mkdtemp(prefix="trunkline-pg-", dir="/tmp")))
    server.start()
    yield server
    server.stop()
    shutil.rmtree(server.home)


@pytest.fixture
def postgres_url(postgres_server: Postgres) -> str:
    """A fresh database on the server."""
    name = f"t{secrets.token_hex(6)}"
    postgres_server.run("createdb", "-h", "127.0.0.1", "-p", str(postgres_server.port), "-U", "trunkline", name)
    return f"{postgres_server.url}/{name}"
