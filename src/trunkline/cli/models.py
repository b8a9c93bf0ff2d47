"""`trunkline models`: the model names that clients can ask for."""

import click

from trunkline.cli.loading import as_json, config_file, load_or_exit


@click.command()
@config_file
@as_json
def models(*, config: str | None, as_json: bool) -> None:
    """List the models that clients can ask for, and where each goes."""
    from trunkline.routing.table import RoutingTable

    loaded = load_or_exit(config)
    table = RoutingTable.build(loaded.config.providers, loaded.config.models)
    rows = [(listed, table.route(listed.id).targets) for listed in table.models()]
    if as_json:
        import msgspec

        listing = [
            {
                "id": listed.id,
                "kind": listed.kind,
                "targets": [f"{item.target.provider}:{item.target.model}" for item in targets],
            }
            for listed, targets in rows
        ]
        click.echo(msgspec.json.encode(listing))
        return
    width = max((len(listed.id) for listed, _ in rows), default=0)
    for listed, targets in rows:
        first = targets[0].target
        more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
        click.echo(f"{listed.id:<{width}}  {listed.kind:<5}  {first.provider}:{first.model}{more}")
