"""`trunkline serve`: the gateway."""

import gc
import os
import sys

import click


@click.command()
@click.option("--config", metavar="FILE", help="The configuration; also TRUNKLINE_CONFIG, else ./trunkline.toml.")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen [127.0.0.1:4000].")
@click.option("--data-dir", metavar="DIR", help="Where state is kept [./data].")
@click.option("--workers", metavar="N", type=click.IntRange(1, 256), default=1, help="Processes on this address.")
def serve(*, config: str | None, listen: str | None, data_dir: str | None, workers: int) -> None:
    """Serve the OpenAI API and the pages.

    Providers are on whose keys are in the environment or the configuration.
    """
    from trunkline.cli.loading import load_or_exit

    overrides = {"server.listen": listen, "server.data_dir": data_dir}
    flags = {name: value for name, value in overrides.items() if value}
    loaded = load_or_exit(config, flags)
    for warning in loaded.warnings:
        sys.stderr.write(f"warning: {warning}\n")
    if workers > 1:
        from trunkline.cli.workers import run_workers

        raise SystemExit(run_workers(config, flags, loaded, workers))
    gc.disable()  # until it serves: what is made now stays, and a tenth of the start would be spent looking at it
    from trunkline.app import Application  # not in a parent of workers, which stays small
    from trunkline.cli.server import run
    from trunkline.config.load import load
    from trunkline.config.read import ConfigError
    from trunkline.config.spoken import this_build
    from trunkline.core.errors import GatewayError
    from trunkline.local.text.weights import WeightsError

    try:
        application = Application(loaded, os.environ, lambda: load(config, os.environ, flags, this_build()))
    except (ConfigError, GatewayError, WeightsError, OSError) as error:
        sys.stderr.write(f"trunkline: {error}\n")
        raise SystemExit(1) from None
    raise SystemExit(run(application))
