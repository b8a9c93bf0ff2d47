"""Loading the configuration: flag over environment over file over default."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from trunkline.config import check
from trunkline.config.providers import State, choose
from trunkline.config.read import ConfigError, Reading
from trunkline.config.schema import Config
from trunkline.config.secrets import resolve
from trunkline.config.spoken import Known
from trunkline.core.near import near

DEFAULT_FILE = "trunkline.toml"
MAX_FILE_BYTES = 4 * 1024 * 1024
ENVIRONMENT = {
    "TRUNKLINE_LISTEN": ("server", "listen"),
    "TRUNKLINE_DATA_DIR": ("server", "data_dir"),
    "TRUNKLINE_PUBLIC_URL": ("server", "public_url"),
    "TRUNKLINE_SECRET": ("server", "secret"),
    "TRUNKLINE_ADMIN_KEY": ("server", "admin_key"),
    "TRUNKLINE_OTLP": ("server", "otlp"),
    "TRUNKLINE_DATABASE": ("storage", "database"),
    "TRUNKLINE_SHARED": ("storage", "shared"),
    "TRUNKLINE_MEDIA": ("storage", "media"),
}
"""Environment variables that stand in for a field of the file."""


class Loaded(Struct):
    """A configuration that can be used, and how it came about."""

    config: Config
    path: Path | None
    """The file that was read; None: there is none."""
    states: dict[str, State]
    warnings: list[str]


def find(flag: str | None, environ: Mapping[str, str]) -> Path | None:
    """Name the file: the flag, else `TRUNKLINE_CONFIG`, else `trunkline.toml` here if there is one."""
    named = flag or environ.get("TRUNKLINE_CONFIG")
    if named:
        return Path(named)
    return Path(DEFAULT_FILE) if Path(DEFAULT_FILE).is_file() else None


def load(
    flag: str | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, str] | None = None,
    known: Known | None = None,
) -> Loaded:
    """Read the file, lay environment and flags over it, resolve secrets, check everything. Raises ConfigError.

    `overrides` are flags by dotted path, as in `{"server.listen": "0.0.0.0:4000"}`; `known` names the dialects and
    quirks of this build (None: not checked).
    """
    environ = environ or {}
    path = find(flag, environ)
    tables = parse(read_file(path), str(path)) if path else {}
    return build(tables, environ, overrides or {}, known, path)


def build(
    tables: dict[str, Any],
    environ: Mapping[str, str],
    overrides: Mapping[str, str],
    known: Known | None = None,
    path: Path | None = None,
) -> Loaded:
    """As `load`, from tables already parsed."""
    tables = dict(tables)
    _lay_over(tables, {where: environ[name] for name, where in ENVIRONMENT.items() if environ.get(name)})
    _lay_over(tables, {tuple(where.split(".")): value for where, value in overrides.items()})
    reading = Reading(lambda text: resolve(text, environ))
    own = tables.get("providers", {})
    chosen = choose(own, environ, known) if isinstance(own, Mapping) else None
    rest = {key: value for key, value in tables.items() if key != "providers" or chosen is None}
    config = reading.struct(rest, Config, "")
    faults = [*(chosen.problems if chosen else []), *reading.problems]
    if config is None or chosen is None or faults:
        raise ConfigError(faults, str(path or ""))
    config = replace(config, providers=chosen.providers)
    problems, warnings = check.check(config, chosen.states)
    if problems:
        raise ConfigError(problems, str(path or ""))
    return Loaded(config, path, chosen.states, [*chosen.warnings, *warnings, *strange_variables(environ)])


def read_file(path: Path) -> bytes:
    """Read the file. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise ConfigError([f"cannot be read: {getattr(error, 'strerror', error)}"], str(path)) from None
    if len(data) > MAX_FILE_BYTES:
        raise ConfigError([f"is larger than {MAX_FILE_BYTES} bytes"], str(path))
    return data


def parse(data: bytes, source: str) -> dict[str, Any]:
    """Parse TOML. Raises ConfigError."""
    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ConfigError([f"is not UTF-8 text (byte {error.start})"], source) from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError([f"is not valid TOML: {error}"], source) from None
    except ValueError:
        raise ConfigError(["is not valid TOML: a number in it has thousands of digits"], source) from None
    except RecursionError:
        raise ConfigError(["is nested too deeply"], source) from None


def strange_variables(environ: Mapping[str, str]) -> list[str]:
    """Warn of environment variables that look like ours and are not read."""
    ours = [*ENVIRONMENT, "TRUNKLINE_CONFIG"]
    return [
        f"the environment variable {name} is not read: did you mean {close[0]}?"
        for name in sorted(environ)
        if name.startswith("TRUNKLINE_") and name not in ours and (close := near(name, ours, likeness=0.8))
    ]


def _lay_over(tables: dict[str, Any], values: Mapping[tuple[str, ...], str]) -> None:
    for (section, key), value in values.items():
        table = tables.get(section, {})
        if isinstance(table, Mapping):
            tables[section] = {**table, key: value}
