"""What is measured: Trunkline, nginx, LiteLLM, others; how each is configured and started."""

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from processes import BenchError, Program

HERE = Path(__file__).parent
BUILD = HERE / "build"
STREAMLOAD = BUILD / "streamload"
MOCK_PORT = 9100


@dataclass(frozen=True)
class Server:
    """One gateway; without `argv` it is somebody else's: it runs already and cannot be weighed."""

    name: str
    port: int
    argv: Sequence[str] = ()
    health: str = "/health"
    path: str = "/v1/chat/completions"
    headers: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    start_timeout_s: float = 20
    slowness: float = 1
    """Measured so many times longer than the others, to have any figures."""
    streams_max: int = 1_000_000
    """More open streams than this take it too long."""
    version: str = ""

    @contextmanager
    def running(self, cores: str) -> Iterator[Program | None]:
        """Start it on these cores and wait until it is healthy; stop it at the end."""
        if not self.argv:
            yield None
            return
        with Program(self.name, self.argv, cores=cores, folder=BUILD / "run", env=self.env) as program:
            program.wait_healthy(self.port, self.health, self.start_timeout_s)
            yield program


@contextmanager
def mock(cores: str) -> Iterator[Program]:
    """Run the upstream."""
    if not STREAMLOAD.exists():
        raise BenchError("bench/build/streamload is missing: run `make bench-build` (needs a C compiler)")
    argv = [str(STREAMLOAD), "mock", "--port", str(MOCK_PORT)]
    with Program("mock", argv, cores=cores, folder=BUILD / "run", env={}) as program:
        program.wait_healthy(MOCK_PORT, "/health", 5)
        yield program


def direct() -> Server:
    """Give the upstream itself: the most that the harness can do."""
    return Server("direct", MOCK_PORT)


def nginx(port: int = 9201) -> Server:
    """Give nginx as a bare proxy."""
    program = shutil.which("nginx", path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if program is None:
        raise BenchError("nginx is missing: `apt-get install nginx`, or leave it out with --servers trunkline")
    folder = fresh_folder("nginx")
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    config = folder / "nginx.conf"
    config.write_text(
        Template((HERE / "nginx.conf.in").read_text()).substitute(
            descriptors=descriptors,
            connections=min(descriptors, 65536),
            user="user root;" if os.geteuid() == 0 else "",  # else its worker may not read the folder
            folder=folder,
            mock_port=MOCK_PORT,
            port=port,
        )
    )
    return Server("nginx", port, [program, "-c", str(config)], version=first_line(program, "-v"))


def bare(port: int = 9204) -> Server:
    """Give a forwarder in Python that does nothing else: the least that one can take."""
    return Server("bare", port, [sys.executable, str(HERE / "bare.py"), str(port), str(MOCK_PORT)])


TRUNKLINE_TOML = """\
[server]
listen = "127.0.0.1:{port}"
data_dir = "{folder}/data"

[providers.mock]
base_url = "http://127.0.0.1:{mock_port}/v1"
api_key = "literal-key-of-the-mock"
chat = {{ dialect = "openai_chat" }}

[providers.local]
enabled = false

[models."*"]
targets = ["mock:*"]
price = {{ input_per_mtok = 0.15, output_per_mtok = 0.60 }}

[keys]
required = true
"""


def trunkline(port: int = 9202, *, workers: int = 1) -> Server:
    """Give Trunkline with its whole line: a key that has a budget, prices, metrics."""
    program = str(Path(sys.executable).with_name("trunkline"))
    name = "trunkline" if workers == 1 else f"trunkline-{workers}"
    folder = fresh_folder(name)
    config = folder / "trunkline.toml"
    config.write_text(TRUNKLINE_TOML.format(port=port, folder=folder, mock_port=MOCK_PORT))
    made = subprocess.run(
        [program, "keys", "create", "--config", str(config), "--name", "bench", "--budget-usd", "1000000", "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": ""},
    )
    if made.returncode:
        raise BenchError(f"trunkline keys create: {(made.stderr or made.stdout).strip()}")
    headers = (f"Authorization: Bearer {json.loads(made.stdout)['key']}",)
    argv = [program, "serve", "--config", str(config), *(["--workers", str(workers)] if workers > 1 else [])]
    return Server(name, port, argv, headers=headers, version=first_line(program, "--version"))


LITELLM_YAML = """\
model_list:
  - model_name: "*"
    litellm_params:
      model: "openai/*"
      api_base: "http://127.0.0.1:{mock_port}/v1"
      api_key: "key-of-the-mock"
litellm_settings:
  num_retries: 0
  telemetry: false
general_settings:
  master_key: "sk-bench"
"""


def litellm(program: str, port: int = 9203) -> Server:
    """Give LiteLLM's proxy with one worker."""
    if not Path(program).exists():
        raise BenchError(f"--litellm {program}: no such file; it is the `litellm` of a venv with litellm[proxy]")
    config = fresh_folder("litellm") / "litellm.yaml"
    config.write_text(LITELLM_YAML.format(mock_port=MOCK_PORT))
    argv = [program, "--config", str(config), "--host", "127.0.0.1", "--port", str(port), "--num_workers", "1"]
    return Server(
        "litellm",
        port,
        argv,
        health="/health/liveliness",
        headers=("Authorization: Bearer sk-bench",),
        env={"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_LOG": "ERROR"},
        start_timeout_s=120,
        slowness=4,
        streams_max=500,  # its pool of connections to the upstream
        version=first_line(program, "--version"),
    )


def peer(declared: str) -> Server:
    """Read NAME=URL of a gateway that runs already, pinned by whoever started it."""
    name, _, url = declared.partition("=")
    address, _, path = url.removeprefix("http://").partition("/")
    host, _, port = address.partition(":")
    if not name or host not in {"127.0.0.1", "localhost"} or not port.isdigit():
        raise BenchError(f"--peer {declared}: it is NAME=http://127.0.0.1:PORT[/path/of/chat/completions]")
    return Server(name, int(port), path=f"/{path}" if path else Server.path)


def fresh_folder(name: str) -> Path:
    """Empty a server's folder, so that no run finds what another left."""
    folder = BUILD / "run" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def first_line(*argv: str) -> str:
    """Ask a program for its version."""
    said = subprocess.run(argv, capture_output=True, text=True, check=False)
    return (said.stdout or said.stderr).strip().partition("\n")[0]
