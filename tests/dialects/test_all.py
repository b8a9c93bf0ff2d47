"""What holds for every dialect: its file is listed, under its own name."""

from pathlib import Path

import pytest

from trunkline import dialects
from trunkline.core.dialect import ChatDialect, MediaDialect
from trunkline.dialects import CHAT_DIALECTS, MEDIA_DIALECTS

FILES = {path.stem for path in Path(str(dialects.__file__)).parent.glob("[!_]*.py")}


def test_every_file_is_listed_once() -> None:
    assert sorted([*CHAT_DIALECTS, *MEDIA_DIALECTS]) == sorted(FILES)


@pytest.mark.parametrize("name", CHAT_DIALECTS)
def test_a_chat_dialect_has_its_name(name: str) -> None:
    assert isinstance(CHAT_DIALECTS[name], ChatDialect)
    assert CHAT_DIALECTS[name].name == name


@pytest.mark.parametrize("name", MEDIA_DIALECTS)
def test_a_media_dialect_has_its_name(name: str) -> None:
    assert isinstance(MEDIA_DIALECTS[name], MediaDialect)
    assert MEDIA_DIALECTS[name].name == name


def test_an_unknown_name_is_none() -> None:
    assert "esperanto" not in CHAT_DIALECTS
    with pytest.raises(KeyError):
        CHAT_DIALECTS["esperanto"]
