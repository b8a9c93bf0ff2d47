"""`trunkline serve`: the gateway."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer


def serve(
    config: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The configuration; also TRUNKLINE_CONFIG, else ./trunkline.toml."),
    ] = None,
    listen: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Where to listen [127.0.0.1:4000].")] = None,
    data_dir: Annotated[Path | None, typer.Option(metavar="DIR", help="Where state is kept [./data].")] = None,
    workers: Annotated[int, typer.Option(metavar="N", min=1, max=256, help="Processes on this address [1].")] = 1,
) -> None:
    """Serve the OpenAI API, with all providers whose keys are in the environment or the configuration."""
    from trunkline.cli.loading import load_or_exit

    overrides = {"server.listen": listen, "server.data_dir": str(data_dir) if data_dir else None}
    flags = {name: value for name, value in overrides.items() if value}
    loaded = load_or_exit(config, flags)
    for warning in loaded.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    if workers > 1:
        from trunkline.cli.workers import run_workers

        raise typer.Exit(run_workers(config, flags, loaded, workers))
    from trunkline.app import Application  # not in a parent of workers, which stays small
    from trunkline.cli.server import run
    from trunkline.config.load import load
    from trunkline.config.read import ConfigError
    from trunkline.config.spoken import this_build
    from trunkline.core.errors import GatewayError
    from trunkline.local.text.weights import WeightsError

    try:
        application = Application(loaded, os.environ, lambda: load(config, os.environ, flags, this_build()))
    except (ConfigError, GatewayError, WeightsError) as error:
        sys.stderr.write(f"trunkline: {error}\n")
        raise typer.Exit(1) from None
    raise typer.Exit(run(application))
