"""Each contract of import-linter can fail: modules that break them are put in, in a copy of the package."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

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


def test_each_contract_fails_when_it_is_broken(tmp_path: Path) -> None:
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("__pycache__", "dist"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for place, line in BREAKS.values():
        (tmp_path / "src" / "trunkline" / place).write_text(f'"""Breaks a rule."""\n\n{line}\n')
    linter = Path(sys.executable).parent / "lint-imports"
    command = [str(linter), "--no-cache"]
    path = str(tmp_path / "src")
    run = subprocess.run(command, cwd=tmp_path, env={"PYTHONPATH": path}, capture_output=True, text=True, check=False)
    assert run.returncode != 0
    details = run.stdout.partition("Broken contracts")[2]
    for name, (place, _) in BREAKS.items():
        told = details.partition(f"\n{name}\n")[2].partition("\n\n\n")[0]
        imports = [line for line in told.splitlines() if line.startswith("- ")]
        assert len(imports) == 1, run.stdout
        assert (
            imports[0]
            .removeprefix("-")
            .strip()
            .startswith(f"trunkline.{place.removesuffix('.py').replace('/', '.')} -> ")
        )
