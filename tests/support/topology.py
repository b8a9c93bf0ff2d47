"""The Compose file's topology as plain processes: its environment and configuration, nginx with its snippet."""

import asyncio
import re
import shutil
import subprocess
import tomllib
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import yaml
from gateway import Client
from gateway_process import SECRET, Home, Process
from s3_server import ports
from stoppable import answers

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
REPLICAS = ("trunkline-1", "trunkline-2")
ADMIN_KEY = "the operators' key"


class Topology(Client):
    """Two replicas behind nginx; a client of the latter."""

    def __init__(self, home: Home, replicas: Mapping[str, Process], port: int) -> None:
        super().__init__(port)
        self.home = home
        self.replicas = replicas

    async def key(self, *settings: str) -> dict[str, str]:
        """Make a key; gives the header that carries it."""
        made = await self.home.cli("keys", "create", "--name", "k", *settings, "--json", name=REPLICAS[0])
        return {"authorization": f"Bearer {made['key']}"}


@asynccontextmanager
async def topology(
    folder: Path, tables: Mapping[str, Any], *, postgres: str, valkey: str, s3: str
) -> AsyncIterator[Topology]:
    """Run it, with these providers and models, on these services."""
    environ = {**environment(), "TRUNKLINE_DATABASE": postgres, "TRUNKLINE_SHARED": valkey, "AWS_ENDPOINT_URL_S3": s3}
    environ |= {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    shared = tomllib.loads((DEPLOY / "compose" / "config" / "trunkline.toml").read_text())
    shared["server"]["trusted_proxies"].append("127.0.0.0/8")
    home = Home(folder, {**shared, **tables, "server": {**shared["server"], **tables.get("server", {})}}, environ)
    async with AsyncExitStack() as stack:
        replicas = {name: await stack.enter_async_context(home.gateway(name)) for name in REPLICAS}
        port = stack.enter_context(nginx(folder, {name: replica.port for name, replica in replicas.items()}))
        await asyncio.to_thread(answers, "127.0.0.1", port)
        running = Topology(home, replicas, port)
        yield running
        for answer in running.answers:
            answer.leave()


def environment() -> dict[str, str]:
    """What the Compose file tells a replica, the secrets filled in; the addresses are Compose's own."""
    services = yaml.safe_load((DEPLOY / "compose" / "compose.yaml").read_text())["services"]
    told: dict[str, str] = services[REPLICAS[0]]["environment"]
    secrets = {"TRUNKLINE_SECRET": SECRET, "TRUNKLINE_ADMIN_KEY": ADMIN_KEY, "POSTGRES_PASSWORD": "p"}
    return {name: re.sub(r"\$\{(\w+):\?[^}]*\}", lambda match: secrets[match[1]], text) for name, text in told.items()}


@contextmanager
def nginx(folder: Path, servers: Mapping[str, int]) -> Iterator[int]:
    """Run nginx with the snippet of `deploy/`, the names and the port replaced; gives the port."""
    program = shutil.which("nginx", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    assert program, "nginx is missing: apt-get install nginx"
    [port, *_] = ports()
    text = (DEPLOY / "nginx" / "trunkline.conf").read_text().replace("listen 80;", f"listen 127.0.0.1:{port};")
    for name, number in servers.items():
        text = text.replace(f"{name}:4000", f"127.0.0.1:{number}")
    temporary = "".join(
        f"{kind}_temp_path {folder}/nginx-{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    config = folder / "nginx.conf"
    head = f"daemon off;\nuser {owner()};\npid {folder}/nginx.pid;\nevents {{ worker_connections 4096; }}\n"
    config.write_text(f"{head}http {{\naccess_log off;\n{temporary}{text}}}\n")
    log = (folder / "nginx.log").open("wb")
    with log, subprocess.Popen([program, "-e", "stderr", "-c", str(config)], stdout=log, stderr=log) as process:
        try:
            yield port
        finally:
            process.terminate()
            process.wait()


def owner() -> str:
    """As whom nginx's worker may read the test's folder."""
    return Path("/proc/self").owner()
