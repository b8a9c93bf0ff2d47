"""`trunkline config`: check what a configuration says, list what it may say."""

from typing import TYPE_CHECKING

import click

from trunkline.cli.loading import as_json, config_file, load_or_exit

if TYPE_CHECKING:
    from trunkline.config.load import Loaded


@click.group()
def config() -> None:
    """Check the configuration, or list what it may hold."""


@config.command()
@config_file
def check(config: str | None) -> None:
    """Say what is on and why. Exit 1 when the configuration cannot be used."""
    loaded = load_or_exit(config, to_serve=True)
    click.echo("\n".join(report(loaded)))
    for warning in loaded.warnings:
        click.echo(f"warning: {warning}", err=True)


@config.command()
@as_json
def schema(*, as_json: bool) -> None:
    """List every field.

    With --json, give the JSON schema that editors read.
    """
    from trunkline.config.describe import fields, json_schema

    if as_json:
        import msgspec

        click.echo(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2))
        return
    for field in fields():
        default = f" (default {field.default})" if field.default not in {"", "required"} else ""
        click.echo(f"{field.path}: {field.type}{' (required)' if field.default == 'required' else default}")
        click.echo(f"    {field.description}")


def report(loaded: "Loaded") -> list[str]:
    """Tell a configuration in lines for people."""
    from trunkline.core.route import AliasTarget

    config = loaded.config
    lines = [
        f"{loaded.path}: good" if loaded.path else "no file, defaults: good",
        f"listen     {config.server.listen}",
        f"data_dir   {config.server.data_dir}",
        *(
            f"{name:<10} {getattr(config.storage, name).name}"
            for name in ("database", "shared", "media")
            if getattr(config.storage, name)
        ),
        "providers that are on",
    ]
    for state in (state for state in loaded.states.values() if state.on):
        count = len(config.providers[state.name].models)
        lines.append(f"  {state.name:<12} {count:>3} model{'s' if count != 1 else ' '}  {state.why}")
    off = [state for state in loaded.states.values() if not state.on]
    lines += ["providers that are off", *(f"  {state.name:<12} {state.why}" for state in off)] if off else []
    if config.models:
        lines.append("models")
    for name, alias in config.models.items():
        targets = [item.target if isinstance(item, AliasTarget) else item for item in alias.targets]
        order = f"  ({alias.strategy})" if len(targets) > 1 else ""
        lines.append(f"  {name} → {', '.join(targets) or 'as without this table'}{order}")
    return lines
