"""What `deploy/` holds, judged by the tools that read it in earnest."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from trunkline.config.load import build
from trunkline.config.spoken import this_build

pytestmark = pytest.mark.scale
DEPLOY = Path(__file__).parent.parent.parent / "deploy"
CHART = DEPLOY / "helm" / "trunkline"
KUBERNETES = ("1.28", "1.34", "1.37")
NEEDED = {"TRUNKLINE_ADMIN_KEY": "a", "TRUNKLINE_SECRET": "s"}
SEVERAL = {
    "replicaCount": 3,
    "workers": 2,
    "config": '[server]\npublic_url = "https://ai.example.com"\n[storage]\ndatabase = "env:DATABASE"\n',
    "persistence": {"enabled": False},
    "ingress": {"enabled": True, "tlsSecret": "ai-tls"},
    "secret": {"existing": "mine"},
}


def tool(name: str, how: str) -> str:
    found = shutil.which(name, path=f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin:/root/go/bin")
    assert found, f"{name} is missing: {how}"
    return found


def run(*command: str | Path, status: int = 0, **more: Any) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False, **more)
    said: str = done.stdout + done.stderr
    assert done.returncode == status, said
    return said


def test_the_dockerfile_passes_hadolint() -> None:
    hadolint = tool("hadolint", "uv run --group services")
    assert run(hadolint, "--failure-threshold", "style", DEPLOY / "Dockerfile") == ""


def test_the_dockerfiles_context_has_what_its_build_reads() -> None:
    kept = {line[1:] for line in (DEPLOY / "Dockerfile.dockerignore").read_text().split() if line.startswith("!")}
    assert all((DEPLOY.parent / name).exists() for name in kept)
    assert {"pyproject.toml", "uv.lock", "hatch_build.py", "README.md", "LICENSE", "src", "web"} <= kept


def test_the_compose_file_is_read_by_composes_own_loader(tmp_path: Path) -> None:
    loader = tool("compose-spec", "go build github.com/compose-spec/compose-go/v2/cmd, as .ci/run does")
    folder = shutil.copytree(DEPLOY, tmp_path / "deploy") / "compose"
    (folder / ".env").write_text("OPENAI_API_KEY=x\n")
    text = (folder / "compose.yaml").read_text()
    needed = set(re.findall(r"\$\{(\w+):\?[^}]*\}", text))
    assert needed == {"TRUNKLINE_SECRET", "TRUNKLINE_ADMIN_KEY", "POSTGRES_PASSWORD"}
    (folder / "compose.yaml").write_text(re.sub(r"\$\{(\w+):\?[^}]*\}", r"\1", text))
    services = json.loads(run(loader, "-format", "json", "compose.yaml", cwd=folder))["services"]
    assert set(services) == {"trunkline-1", "trunkline-2", "nginx", "postgres", "valkey", "s3"}
    for service in services.values():
        for volume in service.get("volumes", ()):
            assert volume["type"] == "volume" or Path(volume["source"]).exists()
    replica = services["trunkline-1"]
    assert (folder.parent.parent / replica["build"]["dockerfile"]).is_file()
    # A directory: editors that write a file anew are noticed, and the change is taken over.
    [config] = [volume for volume in replica["volumes"] if volume["target"] == "/etc/trunkline"]
    tables = tomllib.loads((Path(config["source"]) / "trunkline.toml").read_text())
    loaded = build(tables, {**replica["environment"], "TRUNKLINE_LISTEN": "0.0.0.0:4000"}, {}, this_build())
    assert loaded.warnings == []
    assert loaded.config.storage.database is not None
    assert loaded.config.storage.shared is not None


@pytest.mark.parametrize("values", [{"secret": {"values": NEEDED}}, SEVERAL], ids=["one", "several"])
def test_the_chart_makes_what_kubernetes_takes(tmp_path: Path, values: dict[str, Any]) -> None:
    helm = tool("helm", "go install helm.sh/helm/v3/cmd/helm, as .ci/run does")
    validate = tool("kubernetes-validate", "uv run --group services")
    (tmp_path / "values.json").write_text(json.dumps(values))
    options = ("--values", tmp_path / "values.json")
    run(helm, "lint", "--strict", CHART, *options)
    for version in KUBERNETES:
        made = run(helm, "template", "t", CHART, "--kube-version", f"{version}.0", *options)
        (tmp_path / "made.yaml").write_text(made)
        run(validate, "--strict", "-k", version, tmp_path / "made.yaml")
    objects = {item["kind"]: item for item in yaml.safe_load_all(made)}
    [container] = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert container["args"][-1] == str(values.get("workers", 1))
    tables = tomllib.loads(objects["ConfigMap"]["data"]["trunkline.toml"])
    assert build(tables, {"DATABASE": "postgresql://x/y", **NEEDED}, {}, this_build()).warnings == []
    assert ("Secret" in objects) == ("PersistentVolumeClaim" in objects) == (values is not SEVERAL)
    assert ("Ingress" in objects) == ("PodDisruptionBudget" in objects) == (values is SEVERAL)


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ("secret.existing=", "TRUNKLINE_ADMIN_KEY"),
        ("replicaCount=2,secret.existing=x,persistence.enabled=false", "more than one replica needs PostgreSQL"),
    ],
)
def test_the_chart_says_what_is_missing(setting: str, told: str) -> None:
    helm = tool("helm", "go install helm.sh/helm/v3/cmd/helm, as .ci/run does")
    assert told in run(helm, "template", "t", CHART, "--kube-version", "1.34.0", "--set", setting, status=1)


def test_the_systemd_unit_is_right_and_closed(tmp_path: Path) -> None:
    analyze = tool("systemd-analyze", "apt-get install systemd")
    unit = (DEPLOY / "systemd" / "trunkline.service").read_text()
    ours = str(Path(sys.executable).parent / "trunkline")
    here = tmp_path / "trunkline.service"
    here.write_text(unit.replace("/opt/trunkline/bin/trunkline", ours))
    assert run(analyze, "verify", "--man=no", here) == ""
    exposure = re.search(r"exposure level for \S+ ([\d.]+)", run(analyze, "security", "--offline=true", here))
    assert exposure is not None
    assert float(exposure[1]) <= 1.5
    [command] = re.findall(r"^ExecStart=\S+ (.*)$", unit, re.MULTILINE)
    said = run(ours, *command.split(), status=1)
    assert said == "trunkline: /etc/trunkline/trunkline.toml: cannot be read: No such file or directory\n"


def test_nginx_takes_the_snippet(tmp_path: Path) -> None:
    nginx = tool("nginx", "apt-get install nginx")
    snippet = (DEPLOY / "nginx" / "trunkline.conf").read_text()
    here = re.sub(r"trunkline-\d:4000", "127.0.0.1:4000", snippet).replace("listen 80;", "listen 127.0.0.1:8080;")
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid;\nevents {{}}\nhttp {{\n{here}}}\n")
    said = run(nginx, "-t", "-e", "stderr", "-c", tmp_path / "nginx.conf", "-p", tmp_path)
    assert "test is successful" in said
    assert "[warn]" not in said


def test_caddy_takes_its_file() -> None:
    caddy = tool("caddy", "uv run --group services")
    said = run(caddy, "validate", "--adapter", "caddyfile", "--config", DEPLOY / "caddy" / "Caddyfile")
    assert "Valid configuration" in said
    run(caddy, "fmt", "--diff", DEPLOY / "caddy" / "Caddyfile")
