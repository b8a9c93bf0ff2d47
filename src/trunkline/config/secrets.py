"""References to secrets, `env:NAME` and `file:PATH`, and what they stand for."""

import re
from collections.abc import Mapping
from pathlib import Path

from trunkline.core.secret import Secret

MAX_FILE_BYTES = 65536
VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}")


class SecretError(ValueError):
    """A reference that leads nowhere; the text says why and holds no secret."""


def resolve(text: str, environ: Mapping[str, str]) -> Secret:
    """Give the secret that `env:NAME`, `file:PATH` or a literal stands for. Raises SecretError."""
    if text.startswith("env:"):
        name = text.removeprefix("env:")
        if not environ.get(name):
            raise SecretError(f"the environment variable {name or '(no name)'} is not set")
        return Secret(_line(environ[name].strip(), f"the environment variable {name}"), text)
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        return Secret(_line(_read(Path(path).expanduser()), f"the file {path}"), text)
    if not text:
        raise SecretError("it is empty; write env:NAME, file:PATH or the secret itself")
    return Secret(_line(text, "it"))


def expand(text: str, environ: Mapping[str, str]) -> tuple[str, list[str]]:
    """Put environment variables in place of `${NAME}` and `${NAME:-otherwise}`; also give the names not set."""
    missing: list[str] = []

    def put(match: re.Match[str]) -> str:
        name, otherwise = match.group(1), match.group(2)
        value = environ.get(name) or otherwise
        if value is None:
            missing.append(name)
        return value or ""

    return VARIABLE.sub(put, text), missing


def _line(value: str, where: str) -> str:
    """Refuse what could end a header early."""
    if not value.isprintable():
        raise SecretError(f"{where} holds a line break or another control character")
    return value


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise SecretError(f"the file {path} cannot be read: {getattr(error, 'strerror', error)}") from None
    if len(data) > MAX_FILE_BYTES:
        raise SecretError(f"the file {path} is larger than {MAX_FILE_BYTES} bytes")
    try:
        value = data.decode().strip()
    except UnicodeDecodeError:
        raise SecretError(f"the file {path} is not UTF-8 text") from None
    if not value:
        raise SecretError(f"the file {path} is empty")
    return value
