"""A PostgreSQL server of our own, as fixtures; a conftest imports what it uses."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest


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


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[str]:
    """A server of our own on a free port; gives its URL without a database name."""
    home = Path(tempfile.mkdtemp(prefix="trunkline-pg-", dir="/tmp"))
    user = as_nobody()
    if user:
        os.chown(home, user["user"], user["group"])
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    data = str(home / "data")

    def run(*command: str) -> None:
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, cwd=home, env=environment, **user)

    run(tool("initdb"), "-D", data, "-U", "trunkline", "-A", "trust", "-E", "UTF8")
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' -c fsync=off"
    control = [tool("pg_ctl"), "-D", data, "-w", "-l", str(home / "log"), "-o", options]
    run(*control, "start")
    try:
        yield f"postgresql://trunkline@127.0.0.1:{port}"
    finally:
        run(*control, "-m", "immediate", "stop")
        shutil.rmtree(home)


@pytest.fixture
def postgres_url(postgres_server: str) -> str:
    """A fresh database on the server."""
    name = f"t{secrets.token_hex(6)}"
    port = postgres_server.rpartition(":")[2]
    subprocess.run(
        [tool("createdb"), "-h", "127.0.0.1", "-p", port, "-U", "trunkline", name],
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    return f"{postgres_server}/{name}"
