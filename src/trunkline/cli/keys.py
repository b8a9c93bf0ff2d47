"""`trunkline keys`: virtual keys, made and managed on the database of this configuration."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from trunkline.cli import key_options as options
from trunkline.cli.database import data_dir, with_database
from trunkline.cli.loading import as_json, config_file

if TYPE_CHECKING:
    from trunkline.calls.keys import Keys, NewKey
    from trunkline.config.schema import Config
    from trunkline.core.keys import Key, KeyChanges
    from trunkline.core.money import Budget, Spend
    from trunkline.storage.sql.database import Database

T = TypeVar("T")
key = click.argument("key_id", metavar="ID", help="The key's id, as `keys list` shows it.")


@click.group()
def keys() -> None:
    """Make and manage the keys that clients call with."""


@keys.command()
@click.option("--name", required=True, help="For whom or what the key is.")
@options.takes_settings
@config_file
@data_dir
@as_json
def create(*, name: str, asked: options.Asked, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """Make a key, and show it: this once."""
    from trunkline.core.keys import Key

    settings = _settings(Key(id="", name=""), name, asked)

    async def work(loaded: "Config", database: "Database") -> "tuple[NewKey, bool]":
        keys = _keys(loaded, database)
        _warn_unmatched(loaded, asked.models)
        new = await keys.create(await _in_group(keys, settings, asked.group))
        return new, _open_until_a_key(loaded) and len(await keys.page(limit=2)) == 1

    new, closes = with_database(config, data_dir, work)
    _tell_new(new.key, new.token, as_json=as_json)
    if closes and not as_json:
        click.echo(
            "It is the first: from now on every call needs a key, unless `keys.required` is set to false.", err=True
        )


@keys.command()
@key
@click.option("--name", help="For whom or what the key is.")
@options.takes_settings
@config_file
@data_dir
@as_json
def change(  # noqa: PLR0913 - the command's options
    key_id: str, *, name: str | None, asked: options.Asked, config: str | None, data_dir: str | None, as_json: bool
) -> None:
    """Change what is named; everything else stays."""

    async def work(loaded: "Config", database: "Database") -> "tuple[Key, list[Spend]]":
        keys = _keys(loaded, database)
        _warn_unmatched(loaded, asked.models)
        settings = _settings(await keys.get(key_id), name, asked)
        changed = await keys.change(key_id, await _in_group(keys, settings, asked.group))
        return changed, await spending(database, key_id)

    _tell(*with_database(config, data_dir, work), as_json=as_json)


@keys.command(name="list")
@config_file
@data_dir
@as_json
def list_keys(*, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """List all keys, newest first."""
    found = with_keys(config, data_dir, _all)
    if as_json:
        write([members(key) for key in found])
        return
    for key in found:
        click.echo(f"{key.id}  {key.prefix}…  {_state(key):8} {', '.join(key.models) or 'all models'}  {key.name}")
    if not found:
        click.echo("There is no key yet: `trunkline keys create --name NAME` makes one.", err=True)


@keys.command()
@key
@config_file
@data_dir
@as_json
def show(key_id: str, *, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """Show one key, and what it has spent today, this month and in all."""

    async def work(loaded: "Config", database: "Database") -> "tuple[Key, list[Spend]]":
        return await _keys(loaded, database).get(key_id), await spending(database, key_id)

    _tell(*with_database(config, data_dir, work), as_json=as_json)


@keys.command()
@key
@config_file
@data_dir
@as_json
def rotate(key_id: str, *, config: str | None, data_dir: str | None, as_json: bool) -> None:
    """Give a key another secret; the former one stops at once."""
    new = with_keys(config, data_dir, lambda keys: keys.rotate(key_id))
    _tell_new(new.key, new.token, as_json=as_json)


@keys.command()
@key
@config_file
@data_dir
def block(key_id: str, *, config: str | None, data_dir: str | None) -> None:
    """Stop a key until it is unblocked."""
    _set_state(key_id, "blocked", config, data_dir)


@keys.command()
@key
@config_file
@data_dir
def unblock(key_id: str, *, config: str | None, data_dir: str | None) -> None:
    """Let a blocked key in again."""
    _set_state(key_id, "active", config, data_dir)


@keys.command()
@key
@config_file
@data_dir
def revoke(key_id: str, *, config: str | None, data_dir: str | None) -> None:
    """Stop a key for good."""
    _set_state(key_id, "revoked", config, data_dir)


def with_keys(config: str | None, data_dir: str | None, work: "Callable[[Keys], Awaitable[T]]") -> T:
    """Open the database, do the work, close it; what goes wrong is one line and exit status 1."""

    async def run(loaded: "Config", database: "Database") -> T:
        return await work(_keys(loaded, database))

    return with_database(config, data_dir, run)


async def group_id(keys: "Keys", named: str) -> str:
    """Give the id of a group that is named by its id or its name."""
    from trunkline.core.errors import GatewayError

    for group, _ in await keys.groups():
        if named in (group.id, group.name):
            return group.id
    raise GatewayError("not_found", f"there is no group {named!r}: `trunkline groups list` shows all")


async def spending(database: "Database", owner_id: str) -> "list[Spend]":
    """Give what a key or a group has spent: in all, today, this month."""
    import time

    from trunkline.core.money import day_of, periods_of
    from trunkline.storage.sql.money import SqlMoney

    periods = periods_of(day_of(time.time_ns() // 1_000_000))
    return await SqlMoney(database).spend(owner_id, periods)


def budget_lines(budget: "Budget", spends: "list[Spend]") -> list[str]:
    """Say what was spent of each budget."""
    from trunkline.core.money import dollars

    lines = []
    for name, limit, spend in zip(("total", "day", "month"), (budget.total, budget.day, budget.month), spends,
                                  strict=False):  # fmt: skip
        held = f", {dollars(spend.reserved)} reserved" if spend.reserved else ""
        of = f" of {dollars(limit)}" if limit is not None else ""
        lines.append(
            f"spent ({name}): {dollars(spend.spent)}{of}{held}, {spend.calls} call{'' if spend.calls == 1 else 's'}"
        )
    return lines


def members(thing: object) -> dict[str, Any]:
    """Give what is shown to tools."""
    import msgspec

    shown: dict[str, Any] = msgspec.to_builtins(thing)
    return shown


def write(value: object) -> None:
    """Write JSON."""
    import msgspec

    click.echo(msgspec.json.encode(value).decode())


def _settings(former: "Key", name: str | None, asked: options.Asked) -> "KeyChanges":
    """Read the command's options; what is not named stays unset."""
    import time

    from msgspec import UNSET

    from trunkline.core.keys import KeyChanges

    rates = {
        "requests": ("--rpm", asked.rpm),
        "tokens": ("--tpm", asked.tpm),
        "images": ("--ipm", asked.ipm),
        "streams": ("--streams", asked.streams),
    }
    return KeyChanges(
        name=UNSET if name is None else name,
        models=options.models(asked.models),
        budget=options.budget(former.budget, asked.budget_usd, asked.per),
        rates=options.rates(former.rates, rates),
        expires_ms=options.expires_ms(asked.expires, time.time_ns() // 1_000_000),
        metadata=options.metadata(asked.metadata),
        media_style=options.media_style(asked.media_style),
        cache=UNSET if asked.cache is None else asked.cache,
        record=UNSET if asked.record is None else asked.record,
    )


def _warn_unmatched(loaded: "Config", models: str | None) -> None:
    """Say which of the patterns that are named match no model."""
    from msgspec import UNSET

    from trunkline.policy.key_rules import unmatched_words
    from trunkline.routing.table import RoutingTable

    patterns = options.models(models)
    if patterns is not UNSET and patterns:
        table = RoutingTable.build(loaded.providers, loaded.models)
        for pattern, near in table.unmatched(patterns).items():
            click.echo(f"warning: {unmatched_words(pattern, near)}", err=True)


async def _in_group(keys: "Keys", settings: "KeyChanges", group: str | None) -> "KeyChanges":
    from msgspec.structs import replace

    if group is None:
        return settings
    return replace(settings, group_id=None if group == options.NONE else await group_id(keys, group))


def _keys(loaded: "Config", database: "Database") -> "Keys":
    from pathlib import Path

    from trunkline.calls.keys import Keys
    from trunkline.config.secret_file import server_secret
    from trunkline.storage.sql.keys import SqlKeys

    secret = loaded.server.secret
    pepper = secret.reveal().encode() if secret else server_secret(Path(loaded.server.data_dir))
    return Keys(SqlKeys(database), pepper)


def _open_until_a_key(loaded: "Config") -> bool:
    """Say whether calls need a key only once there is one, as the gateway decides it."""
    from trunkline.config.check import split_listen
    from trunkline.core.loopback import is_loopback

    return loaded.keys.required is None and is_loopback((split_listen(loaded.server.listen) or ("", 0))[0])


def _set_state(
    key_id: str, state: Literal["active", "blocked", "revoked"], config: str | None, data_dir: str | None
) -> None:
    key = with_keys(config, data_dir, lambda keys: keys.set_state(key_id, state))
    click.echo(f"{key.id} ({key.name}) is {key.state}")


async def _all(keys: "Keys") -> "list[Key]":
    found: list[Key] = []
    while page := await keys.page(after=found[-1].id if found else "", limit=200):
        found += page
    return found


def _tell(key: "Key", spends: "list[Spend]", *, as_json: bool) -> None:
    if as_json:
        write({**members(key), **({"spend": [members(spend) for spend in spends]} if spends else {})})
        return
    from datetime import UTC, datetime

    click.echo(f"{key.id}  {key.prefix}…  {_state(key)}  {key.name}")
    click.echo(f"models: {', '.join(key.models) or 'all'}")
    if key.group is not None:
        click.echo(f"group: {key.group.name} ({key.group.id})")
    limits = {name: value for name, value in members(key.rates).items() if value is not None}
    if limits:
        click.echo(f"rates: {', '.join(f'{name} {value}' for name, value in limits.items())}")
    if key.expires_ms is not None:
        click.echo(f"expires: {datetime.fromtimestamp(key.expires_ms / 1000, UTC):%Y-%m-%d %H:%M} UTC")
    if key.media_style:
        click.echo(f"media style: {key.media_style}")
    for name, is_so in (("cache", key.cache), ("record", key.record)):
        if is_so:
            click.echo(f"{name}: yes")
    for name, value in key.metadata.items():
        click.echo(f"{name}: {value}")
    for line in budget_lines(key.budget, spends):
        click.echo(line)


def _state(key: "Key") -> str:
    """Say whether a key opens anything, and else why not."""
    import time

    from trunkline.calls.keys import unusable

    return "expired" if unusable(key, time.time_ns() // 1_000_000) == "expired" else key.state


def _tell_new(key: "Key", token: str, *, as_json: bool) -> None:
    if as_json:
        write({**members(key), "key": token})
        return
    click.echo(token)
    click.echo(f"This is the only time that the key of {key.name!r} ({key.id}) is shown.", err=True)
