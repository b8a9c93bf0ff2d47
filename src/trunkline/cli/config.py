"""`trunkline config`: check what a configuration says, list what it may say."""

from typing import TYPE_CHECKING

import typer

from trunkline.cli.loading import AsJson, ConfigFile, load_or_exit

if TYPE_CHECKING:
    from trunkline.config.load import Loaded

app = typer.Typer(help="Check the configuration, or list what it may hold.", no_args_is_help=True)


@app.command()
def check(config: ConfigFile = None) -> None:
    """Say what is on and why. Exit 1 when the configuration cannot be used."""
    loaded = load_or_exit(config)
    typer.echo("\n".join(report(loaded)))
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)


@app.command()
def schema(*, as_json: AsJson = False) -> None:
    """List every field; with --json, give the JSON schema that editors read."""
    from trunkline.config.describe import fields, json_schema

    if as_json:
        import msgspec

        typer.echo(msgspec.json.format(msgspec.json.encode(json_schema()), indent=2))
        return
    for field in fields():
        default = f" (default {field.default})" if field.default not in {"", "required"} else ""
        typer.echo(f"{field.path}: {field.type}{' (required)' if field.default == 'required' else default}")
        typer.echo(f"    {field.description}")


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
