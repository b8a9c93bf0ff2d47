"""`trunkline config`, `models` and `providers`."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from trunkline.cli.main import trunkline
from trunkline.providers import ORDER


@pytest.fixture(autouse=True)
def empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("TRUNKLINE_") or name.endswith(("_KEY", "_TOKEN", "_HOST", "_BASE_URL", "_BEDROCK")):
            monkeypatch.delenv(name)


def run(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(trunkline, arguments, env=environ)


def test_check_says_what_is_on_and_why() -> None:
    result = run("config", "check", OPENAI_API_KEY="sk-secret")
    assert result.exit_code == 0
    assert "no file, defaults: good" in result.stdout
    assert "OPENAI_API_KEY is set" in result.stdout
    assert "neither GEMINI_API_KEY nor GOOGLE_API_KEY is set" in result.stdout
    assert "sk-secret" not in result.output


def test_check_shows_aliases_and_warnings() -> None:
    Path("trunkline.toml").write_text('[providers.groq]\n[models.a]\ntargets = ["local:text", "local:image"]')
    result = run("config", "check", GROQ_API_KEY="")
    assert "trunkline.toml: good" in result.stdout
    assert "a → local:text, local:image  (in_order)" in result.stdout
    assert result.stderr == "warning: `providers.groq` is off: GROQ_API_KEY is not set\n"


def test_check_names_every_fault_on_a_line_of_its_own_and_leaves_with_1() -> None:
    Path("bad.toml").write_text('[server]\nlisen = "x"\ngrace_s = "x"')
    result = run("config", "check", "--config", "bad.toml")
    assert result.exit_code == 1
    assert result.stdout == ""
    first, second = result.stderr.splitlines()
    assert first.startswith(
        "trunkline: bad.toml: unknown key `server.lisen`: did you mean `listen`? allowed: admin_key, "
    )
    assert second == "trunkline: bad.toml: `server.grace_s` must be a number above 0; it is text"


def test_check_asks_for_the_admin_key_that_serve_needs_where_others_can_reach_it() -> None:
    Path("open.toml").write_text('[server]\nlisten = "0.0.0.0:4000"')
    result = run("config", "check", "--config", "open.toml")
    assert result.exit_code == 1
    assert result.stderr.startswith(
        "trunkline: open.toml: `server.listen` 0.0.0.0:4000 is open to other machines, so an admin key is needed: set "
    )
    assert run("config", "check", "--config", "open.toml", TRUNKLINE_ADMIN_KEY="long").exit_code == 0
    assert run("models", "--config", "open.toml").exit_code == 0


def test_check_of_a_file_that_is_not_there() -> None:
    result = run("config", "check", TRUNKLINE_CONFIG="none.toml")
    assert (result.exit_code, result.stderr) == (1, "trunkline: none.toml: cannot be read: No such file or directory\n")


def test_schema_is_the_full_list() -> None:
    assert "models.NAME.timeouts.idle_s: a number above 0 (default 60)" in run("config", "schema").stdout
    assert json.loads(run("config", "schema", "--json").stdout)["title"] == "trunkline.toml"


def test_models() -> None:
    Path("trunkline.toml").write_text('[models.small]\ntargets = ["local:text", "local:image"]')
    lines = [line.split(maxsplit=2) for line in run("models").stdout.splitlines()]
    assert ["small", "text", "local:text and 1 more"] in lines
    assert ["local/text", "text", "local:text"] in lines
    assert {"id": "local/text", "kind": "text", "targets": ["local:text"]} in json.loads(run("models", "--json").stdout)


def test_providers() -> None:
    lines = run("providers", OPENAI_API_KEY="x").stdout.splitlines()
    assert lines[0].split()[:2] == ["openai", "on"]
    listing = json.loads(run("providers", "--json", OPENAI_API_KEY="x").stdout)
    assert [row["name"] for row in listing] == list(ORDER)
    assert listing[0]["base_url"] == "https://api.openai.com/v1"
