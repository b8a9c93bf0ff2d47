"""`trunkline providers`: who is behind, who is not, and why."""

import typer

from trunkline.cli.loading import AsJson, ConfigFile, load_or_exit


def providers(*, config: ConfigFile = None, as_json: AsJson = False) -> None:
    """List the providers, whether each is on, and why."""
    import msgspec

    loaded = load_or_exit(config)
    if as_json:
        on = loaded.config.providers
        listing = [
            {**msgspec.structs.asdict(state), "base_url": on[state.name].base_url if state.on else None}
            for state in loaded.states.values()
        ]
        typer.echo(msgspec.json.encode(listing))
        return
    width = max(map(len, loaded.states))
    for state in loaded.states.values():
        typer.echo(f"{state.name:<{width}}  {'on ' if state.on else 'off'}  {state.why}")
