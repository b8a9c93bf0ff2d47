"""What holds for every quirk: it is named in a provider's file, and it changes something."""

from importlib import resources

import pytest
from corpus import as_lines, cases, run
from msgspec.structs import replace

from trunkline import providers
from trunkline.quirks import QUIRKS

SHIPPED = "".join(path.read_text() for path in resources.files(providers).iterdir() if path.name.endswith(".toml"))


@pytest.mark.parametrize("name", QUIRKS)
def test_a_provider_names_it(name: str) -> None:
    assert f'"{name}"' in SHIPPED
    assert QUIRKS[name].name == name


@pytest.mark.parametrize("name", [name for name, quirk in QUIRKS.items() if quirk.events])
def test_a_case_changes_without_it(name: str) -> None:
    shown = [case for case in cases() if name in case.quirks]
    assert any(
        as_lines(run(case, [case.upstream])[0]) != as_lines(run(replace(case, quirks=[]), [case.upstream])[0])
        for case in shown
    )
