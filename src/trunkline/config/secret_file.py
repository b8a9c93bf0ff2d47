"""The server's own secret: it signs links and peppers keys; made on the first start, kept in `data_dir`."""

import os
import secrets
from pathlib import Path

from trunkline.config.read import ConfigError

NAME = "secret"
BYTES = 32


def private_dir(path: str) -> Path:
    """Give the directory, made for nobody else to read if there is none. Raises ConfigError when that cannot be."""
    data_dir = Path(path)
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise _unusable(data_dir, error) from None
    return data_dir


def server_secret(data_dir: Path) -> bytes:
    """Give the secret in `data_dir`, made (mode 0600) if there is none. Raises ConfigError when that cannot be."""
    path = private_dir(str(data_dir)) / NAME
    try:
        made = secrets.token_hex(BYTES).encode()
        partial = data_dir / f".{NAME}-{secrets.token_hex(4)}"
        if not path.exists():
            descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(made)
                file.flush()
                os.fsync(file.fileno())
            try:
                os.link(partial, path)  # whoever is first wins; nobody reads half a secret
            except FileExistsError:
                pass
            finally:
                partial.unlink()
        secret = path.read_bytes().strip()
    except OSError as error:
        raise _unusable(data_dir, error) from None
    if len(secret) < BYTES:
        raise ConfigError([f"{path} is too short to be a secret; delete it, or set `server.secret`"], "")
    return secret


def _unusable(data_dir: Path, error: OSError) -> ConfigError:
    return ConfigError([f"`server.data_dir` {data_dir} cannot be used: {error.strerror}"], "")
