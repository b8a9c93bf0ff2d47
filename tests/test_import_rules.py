"""Each contract of import-linter can fail: a module that breaks it is put in, in a copy of the package."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
BREAKS = {
    "The stations import downwards only": ("core/broken.py", "import trunkline.wire.frame"),
    "The pure part knows no I/O, clock or randomness": ("wire/broken.py", "import socket"),
    "Dialects and quirks do not know each other": ("dialects/broken.py", "import trunkline.dialects.openai_chat"),
    "Only upstream speaks HTTP to the outside": ("http/broken.py", "import httpx"),
}


def test_every_contract_has_its_break() -> None:
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())
    names = {contract["name"] for contract in config["tool"]["importlinter"]["contracts"]}
    assert names == set(BREAKS)


@pytest.mark.parametrize("name", BREAKS)
def test_a_contract_fails_when_it_is_broken(name: str, tmp_path: Path) -> None:
    place, line = BREAKS[name]
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "dist"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "src" / "trunkline" / place).write_text(f'"""Breaks a rule."""\n\n{line}\n')
    linter = Path(sys.executable).parent / "lint-imports"
    command = [str(linter), "--no-cache"]
    path = str(tmp_path / "src")
    run = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    broken = [text for text in run.stdout.splitlines() if text.endswith("BROKEN")]
    assert run.returncode != 0
    assert [text.removesuffix("BROKEN").strip() for text in broken] == [name]
