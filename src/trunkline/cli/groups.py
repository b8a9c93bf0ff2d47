"""`trunkline groups`: groups of keys that share a budget."""

from typing import TYPE_CHECKING, Any, Literal

import click

from trunkline.cli import key_options as options
from trunkline.cli.database import data_dir, with_database
from trunkline.cli.keys import budget_lines, group_id, members, spending, with_keys, write
from trunkline.cli.loading import as_json, config_file

if TYPE_CHECKING:
    from trunkline.calls.keys import Keys
    from trunkline.config.schema import Config
    from trunkline.core.keys import KeyGroup
    from trunkline.core.money import Spend
    from trunkline.storage.sql.database import Database

named = click.argument("group", metavar="GROUP", help="The group's id or name.")


@click.group()
def groups() -> None:
    """Make and manage groups of keys that share a budget."""


@groups.command()
@click.option("--name", required=True, help="The group's name.")
@options.takes_budget_usd
@options.takes_per
@options.takes_metadata
@config_file
@data_dir
@as_json
def create(  # noqa: PLR0913 - the command's options
    *,
    name: str,
    budget_usd: str | None,
    per: options.Period | None,
    metadata: tuple[str, ...],
    config: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Make a group."""
    from trunkline.core.keys import GroupChanges
    from trunkline.core.money import Budget

    settings = GroupChanges(
        name=name, budget=options.budget(Budget(), budget_usd, per), metadata=options.metadata(metadata)
    )
    _tell(with_keys(config, data_dir, lambda keys: keys.create_group(settings)), as_json=as_json)


@groups.command(name="list")
@config_file
@data_dir
@as_json
def list_groups(*, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """List all groups with their budgets and spending, newest first."""

    async def work(loaded: "Config", database: "Database") -> "list[tuple[KeyGroup, int, list[Spend]]]":
        from trunkline.storage.sql.keys import SqlKeys

        del loaded
        found = await SqlKeys(database).list_groups()
        return [(group, number, await spending(database, group.id)) for group, number in found]

    found = with_database(config, data_dir, work)
    if as_json:
        write(
            [
                {**members(group), "keys": number, "spend": [members(spend) for spend in spends]}
                for group, number, spends in found
            ]
        )
        return
    for group, number, spends in found:
        click.echo(f"{group.id}  {group.state:8} {number} keys  {group.name}")
        for line in budget_lines(group.budget, spends):
            click.echo(f"    {line}")
    if not found:
        click.echo("There is no group yet: `trunkline groups create --name NAME` makes one.", err=True)


@groups.command()
@named
@click.option("--name", help="Another name.")
@options.takes_budget_usd
@options.takes_per
@options.takes_metadata
@config_file
@data_dir
@as_json
def change(  # noqa: PLR0913 - the command's options
    group: str,
    *,
    name: str | None,
    budget_usd: str | None,
    per: options.Period | None,
    metadata: tuple[str, ...],
    config: str | None,
    data_dir: str | None,
    as_json: bool,
) -> None:
    """Change what is named; everything else stays."""

    async def work(keys: "Keys") -> "KeyGroup":
        from msgspec import UNSET

        from trunkline.core.keys import GroupChanges

        found = await group_id(keys, group)
        former = next(one for one, _ in await keys.groups() if one.id == found)
        changes = GroupChanges(
            name=UNSET if name is None else name,
            budget=options.budget(former.budget, budget_usd, per),
            metadata=options.metadata(metadata),
        )
        return await keys.change_group(found, changes)

    _tell(with_keys(config, data_dir, work), as_json=as_json)


@groups.command()
@named
@config_file
@data_dir
def block(group: str, *, config: str | None, data_dir: str | None) -> None:
    """Stop all keys of a group until it is unblocked."""
    _set_state(group, "blocked", config, data_dir)


@groups.command()
@named
@config_file
@data_dir
def unblock(group: str, *, config: str | None, data_dir: str | None) -> None:
    """Let the keys of a blocked group in again."""
    _set_state(group, "active", config, data_dir)


@groups.command()
@named
@config_file
@data_dir
def delete(group: str, *, config: str | None, data_dir: str | None) -> None:
    """Take a group away; its keys stay, without it."""

    async def work(keys: "Keys") -> str:
        found = await group_id(keys, group)
        await keys.delete_group(found)
        return found

    click.echo(f"{with_keys(config, data_dir, work)} is gone")


def _set_state(group: str, state: Literal["active", "blocked"], config: str | None, data_dir: str | None) -> None:
    async def work(keys: "Keys") -> "KeyGroup":
        from trunkline.core.keys import GroupChanges

        return await keys.change_group(await group_id(keys, group), GroupChanges(state=state))

    changed = with_keys(config, data_dir, work)
    click.echo(f"{changed.id} ({changed.name}) is {changed.state}")


def _tell(group: "KeyGroup", *, as_json: bool) -> None:
    shown: dict[str, Any] = members(group)
    if as_json:
        write(shown)
        return
    click.echo(f"{group.id}  {group.state}  {group.name}")
