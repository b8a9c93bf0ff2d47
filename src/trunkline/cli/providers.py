"""`trunkline providers`: who is behind, who is not, and why."""

import click

from trunkline.cli.loading import as_json, config_file, load_or_exit


@click.command()
@config_file
@as_json
def providers(*, config: str | None, as_json: bool) -> None:
    """List the providers, whether each is on, and why."""
    import msgspec

    loaded = load_or_exit(config)
    if as_json:
        on = loaded.config.providers
        listing = [
            {**msgspec.structs.asdict(state), "base_url": on[state.name].base_url if state.on else None}
            for state in loaded.states.values()
        ]
        click.echo(msgspec.json.encode(listing))
        return
    width = max(map(len, loaded.states))
    for state in loaded.states.values():
        click.echo(f"{state.name:<{width}}  {'on ' if state.on else 'off'}  {state.why}")
