"""The shape of the code base, as ARCHITECTURE.md describes it."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "trunkline"
MODULES = sorted(SRC.rglob("*.py"))
OWN_PLACES = {"providers", "dialects", "quirks", "local"}
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)
PROVIDER_NAMES = {path.stem for path in (SRC / "providers").glob("*.toml")} - {"openai", "local"}


def place(path: Path) -> str:
    return path.relative_to(SRC).parts[0]


def test_files_are_at_most_400_lines() -> None:
    assert [str(path) for path in MODULES if path.read_text().count("\n") > 400] == []


def test_functions_docstrings_and_names() -> None:
    long, silent, named = [], [], []
    for path in MODULES:
        module = ast.parse(path.read_text())
        nodes = list(ast.walk(module))
        name = path.relative_to(SRC)
        long += [f"{name}: {node.name}" for node in nodes if isinstance(node, FUNCTION) and lines(node) > 60]
        silent += [str(name)] if not ast.get_docstring(module) else []
        if place(path) not in OWN_PLACES:
            named += [f"{name}: {word}" for word in words(nodes) if word.lower() in PROVIDER_NAMES]
    assert (long, silent, named) == ([], [], [])


def lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or 0) - node.lineno + 1


def words(nodes: list[ast.AST]) -> set[str]:
    """Identifiers and whole string literals of a module."""
    found: set[str] = set()
    for node in nodes:
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                found.add(name)
            case ast.Constant(value=str() as text) if re.fullmatch(r"[\w.-]+", text):
                found.add(text)
    return found
