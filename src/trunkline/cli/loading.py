"""Reading the configuration for a command: what is wrong goes to stderr, one line a fault."""

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from trunkline.config.load import Loaded

config_file = click.option("--config", metavar="FILE", help="Default: TRUNKLINE_CONFIG, else ./trunkline.toml.")
as_json = click.option("--json", "as_json", is_flag=True, help="For tools.")


def load_or_exit(config: str | None, overrides: dict[str, str] | None = None, *, to_serve: bool = False) -> "Loaded":
    """Load the configuration of this process, or name its faults and leave with status 1.

    `to_serve` names also what only keeps `serve` from starting.
    """
    import os

    from trunkline.config.check import check_open
    from trunkline.config.load import load
    from trunkline.config.read import ConfigError
    from trunkline.config.spoken import this_build

    try:
        loaded = load(config, os.environ, overrides, this_build())
        if to_serve:
            check_open(loaded.config, str(loaded.path or ""))
    except ConfigError as error:
        for problem in error.problems:
            click.echo(f"trunkline: {error.source}: {problem}" if error.source else f"trunkline: {problem}", err=True)
        raise SystemExit(1) from None
    return loaded
