"""The server's own secret: it signs links and peppers keys; made on the first start, kept in `data_dir`."""

import os
import secrets
from pathlib import Path

from trunkline.config.read import ConfigError

NAME = "secret"
BYTES = 32


def server_secret(data_dir: Path) -> bytes:
    """Give the secret in `data_dir`, made (mode 0600) if there is none. Raises ConfigError when that cannot be."""
    path = data_dir / NAME
    try:
        data_dir.mkdir(parents=True, exist_ok=True)
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
        raise ConfigError([f"`server.data_dir` {data_dir} cannot be used: {error.strerror}"], "") from None
    if len(secret) < BYTES:
        raise ConfigError([f"{path} is too short to be a secret; delete it, or set `server.secret`"], "")
    return secret
