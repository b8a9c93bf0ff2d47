"""Secrets are usable and comparable, and never shown or written down."""

import copy
import pickle
from pathlib import Path

import msgspec
import pytest

from trunkline.config.secrets import SecretError, expand, resolve
from trunkline.core.secret import Secret


def test_no_way_of_printing_shows_it() -> None:
    secret = Secret("sesame", "env:DOOR")
    assert f"{secret} {secret!r} {secret!s} {[secret]} { ({'a': secret}) }".count("Secret(env:DOOR)") == 5
    assert "sesame" not in f"{Secret('sesame')}"
    assert Secret("sesame").name == Secret("sesame").name != Secret("other").name


def test_it_is_not_written_down() -> None:
    for write in (pickle.dumps, copy.deepcopy, msgspec.json.encode):
        with pytest.raises(TypeError):
            write(Secret("sesame"))


def test_equal_by_value_alone() -> None:
    assert Secret("a", "one") == Secret("a", "two")
    assert len({Secret("a", "one"), Secret("a", "two"), Secret("b")}) == 2
    assert Secret("a") != "a"
    assert not Secret("")


def test_where_it_came_from_is_its_name(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(" sesame\n")
    assert (resolve("env:DOOR", {"DOOR": "sesame\n"}).reveal(), resolve("env:DOOR", {"DOOR": "x"}).name) == (
        "sesame",
        "env:DOOR",
    )
    assert resolve(f"file:{tmp_path}/key", {}).reveal() == "sesame"
    assert resolve("sesame", {}).reveal() == "sesame"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"\xff", "is not UTF-8 text"),
        (b"a\nb", "a line break"),
        (b"x" * 70_000, "is larger than 65536"),
    ],
)
def test_a_file_that_holds_no_secret(tmp_path: Path, content: bytes, words: str) -> None:
    (tmp_path / "key").write_bytes(content)
    with pytest.raises(SecretError, match=words):
        resolve(f"file:{tmp_path}/key", {})


def test_variables_in_addresses() -> None:
    assert expand("https://${A}.example/${B:-b}", {"A": "a"}) == ("https://a.example/b", [])
    assert expand("${A}/${B}", {}) == ("/", ["A", "B"])
    assert expand("${A:-x}", {"A": ""}) == ("x", [])
    assert expand("{model} $A ${", {"A": "a"}) == ("{model} $A ${", [])
