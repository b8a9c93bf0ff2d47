"""What the code has by name, the documentation explains. (The configuration's own pages: tests/config.)"""

import re
from pathlib import Path

from trunkline.core.errors import KINDS
from trunkline.quirks import QUIRKS
from trunkline.telemetry.metrics import NAMES

DOCS = Path(__file__).parent.parent / "docs"


def rows(page: str) -> dict[str, str]:
    """First column → the rest, of a page's table."""
    found = re.findall(r"^\| `([^`]+)` \|(.*)\|$", (DOCS / page).read_text(), re.MULTILINE)
    return dict(found)


def test_every_error_is_documented_as_it_is() -> None:
    table = rows("errors.md")
    assert set(table) == set(KINDS)
    for code, kind in KINDS.items():
        status, kind_name, when = (cell.strip() for cell in table[code].split("|"))
        assert (status, kind_name) == (str(kind.status), f"`{kind.type}`")
        assert when


def test_every_metric_is_documented() -> None:
    table = rows("metrics.md")
    assert set(table) == set(NAMES)
    assert all(text in table[name] for name, text in NAMES.items())


def test_expressions_name_metrics_that_there_are() -> None:
    used = re.findall(r"trunkline_\w+", (DOCS / "metrics.md").read_text())
    kinds = re.compile(r"_(total|bucket|sum|count)$")
    assert {kinds.sub("", name) for name in used} <= set(NAMES)


def test_every_quirk_is_documented() -> None:
    table = rows("quirks.md")
    assert set(table) == set(QUIRKS)


def test_the_readmes_links_lead_somewhere() -> None:
    root = DOCS.parent
    for page in (root / "README.md", root / "CONTRIBUTING.md", root / "ARCHITECTURE.md"):
        for target in re.findall(r"\]\((?!http)([^)#]+)\)", page.read_text()):
            assert (root / target).exists(), f"{page.name}: {target}"
