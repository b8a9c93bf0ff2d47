"""The Dockerfile without Docker: its commands, on the files that it copies, give a gateway that is healthy."""

import asyncio
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from gateway_process import Home

pytestmark = [pytest.mark.scale, pytest.mark.timeout(900)]  # it installs everything anew
ROOT = Path(__file__).parent.parent.parent
DOCKERFILE = (ROOT / "deploy" / "Dockerfile").read_text()
MOST_MIB = 330


def copy_context(folder: Path) -> None:
    """Copy what `COPY . .` does: what the ignore file lets in, less what it keeps out."""
    lines = (ROOT / "deploy" / "Dockerfile.dockerignore").read_text().split()
    for name in [line[1:] for line in lines if line.startswith("!")]:
        if (ROOT / name).is_dir():
            out = shutil.ignore_patterns("node_modules", "__pycache__", "dist")
            shutil.copytree(ROOT / name, folder / name, ignore=out)
        else:
            shutil.copy(ROOT / name, folder / name)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """The directory that the image is there for, as its build stage makes it."""
    source, made = tmp_path / "src", tmp_path / "made"
    source.mkdir()
    copy_context(source)
    commands = re.findall(r"^RUN (uv sync .*)$", DOCKERFILE.partition("FROM build AS")[0], re.MULTILINE)
    assert len(commands) == 2
    environ = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(made), "UV_PYTHON": sys.executable, "UV_LINK_MODE": "copy"}
    environ.pop("VIRTUAL_ENV", None)
    for command in commands:
        subprocess.run(shlex.split(command), cwd=source, env=environ, check=True)
    shutil.rmtree(source)  # the last stage has the environment alone
    size = sum(path.lstat().st_size for path in made.rglob("*")) >> 20
    print(f"{size} MiB beside Python")
    assert size < MOST_MIB
    return made


async def health(made: Path, port: int) -> int:
    """Run the image's health check; gives its exit status."""
    [check] = re.findall(r"^    CMD (\[.*\])$", DOCKERFILE, re.MULTILINE)
    _, *options = json.loads(check.replace("127.0.0.1:4000", f"127.0.0.1:{port}"))
    process = await asyncio.create_subprocess_exec(made / "bin" / "python", *options, stderr=subprocess.DEVNULL)
    return await process.wait()


async def test_its_build_gives_a_small_healthy_gateway(
    tmp_path: Path, made: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gateway_process.sys.executable", str(made / "bin" / "python"))
    home = Home(tmp_path, {"server": {"listen": "0.0.0.0:0"}}, {"TRUNKLINE_ADMIN_KEY": "k" * 32})
    async with home.gateway("a", "--workers", "2") as gate:
        async with asyncio.timeout(120):
            while await health(made, gate.port):  # it waits two seconds, and the image asks again
                pass
        assert (await gate.get("/")).status == 200  # the pages were built, too
        key = await home.cli("keys", "create", "--name", "k", "--json")
        assert (await gate.get("/v1/models", authorization=f"Bearer {key['key']}")).status == 200
        gate.kill(signal.SIGTERM)
        assert await gate.end() == 0
        assert await health(made, gate.port) != 0
