"""The shape of the code base, as ARCHITECTURE.md describes it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "trunkline"
MODULES = sorted(SRC.rglob("*.py"))
OWN_PLACES = {"providers", "dialects", "quirks", "local"}
PROVIDER_NAMES = {path.stem for path in (SRC / "providers").glob("*.toml")} - {"openai", "local"}


def place(path: Path) -> str:
    return path.relative_to(SRC).parts[0]


def test_files_are_at_most_400_lines() -> None:
    assert [str(path) for path in MODULES if path.read_text().count("\n") > 400] == []


def test_functions_are_at_most_60_lines() -> None:
    long = [
        f"{path.relative_to(SRC)}:{node.name}"
        for path in MODULES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and (node.end_lineno or 0) - node.lineno + 1 > 60
    ]
    assert long == []


def test_every_module_says_what_it_is() -> None:
    assert [str(path) for path in MODULES if not ast.get_docstring(ast.parse(path.read_text()))] == []


def test_no_provider_is_named_outside_its_place() -> None:
    named = [
        f"{path.relative_to(SRC)}: {word}"
        for path in MODULES
        if place(path) not in OWN_PLACES
        for word in words(path)
        if word.lower() in PROVIDER_NAMES
    ]
    assert named == []


def words(path: Path) -> set[str]:
    """Identifiers and whole string literals of a module."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Constant(value=str() as text) if re.fullmatch(r"[\w.-]+", text):
                found.add(text)
    return found
