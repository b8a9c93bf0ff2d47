"""`trunkline keys`: virtual keys, made and managed on the database of this configuration."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from trunkline.cli.database import DataDir, with_database
from trunkline.cli.loading import AsJson, ConfigFile

if TYPE_CHECKING:
    from trunkline.calls.keys import Keys
    from trunkline.config.schema import Config
    from trunkline.core.keys import Key
    from trunkline.storage.sql.database import Database

T = TypeVar("T")
app = typer.Typer(help="Make and manage the keys that clients call with.", no_args_is_help=True)
KeyId = Annotated[str, typer.Argument(metavar="ID", help="The key's id, as `keys list` shows it.")]


@app.command()
def create(  # noqa: PLR0913 - the command's options
    *,
    name: Annotated[str, typer.Option(help="For whom or what the key is.")],
    models: Annotated[str, typer.Option(metavar="GLOB,…", help="Models it may ask for [all].")] = "",
    budget_usd: Annotated[float | None, typer.Option(min=0, help="The most that it may spend, in dollars.")] = None,
    per: Annotated[Literal["total", "day", "month"], typer.Option(help="The budget's period.")] = "total",
    rpm: Annotated[int | None, typer.Option(min=0, help="Requests a minute.")] = None,
    tpm: Annotated[int | None, typer.Option(min=0, help="Tokens a minute.")] = None,
    config: ConfigFile = None,
    data_dir: DataDir = None,
    as_json: AsJson = False,
) -> None:
    """Make a key, and show it: this once."""
    from trunkline.core.keys import KeyChanges, Rates
    from trunkline.core.money import Budget, microusd

    amount = microusd(budget_usd) if budget_usd is not None else None
    settings = KeyChanges(
        name=name,
        models=tuple(glob.strip() for glob in models.split(",") if glob.strip()),
        budget=Budget(**{per: amount}),
        rates=Rates(requests=rpm, tokens=tpm),
    )
    new = _with_keys(config, data_dir, lambda keys: keys.create(settings))
    _tell_new(new.key, new.token, as_json=as_json)


@app.command(name="list")
def list_keys(*, config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """List all keys, newest first."""
    found = _with_keys(config, data_dir, _all)
    if as_json:
        _write([_members(key) for key in found])
        return
    for key in found:
        typer.echo(f"{key.id}  {key.prefix}…  {key.state:8} {', '.join(key.models) or 'all models'}  {key.name}")
    if not found:
        typer.echo("There is no key yet: `trunkline keys create --name NAME` makes one.", err=True)


@app.command()
def rotate(key_id: KeyId, *, config: ConfigFile = None, data_dir: DataDir = None, as_json: AsJson = False) -> None:
    """Give a key another secret; the former one stops at once."""
    new = _with_keys(config, data_dir, lambda keys: keys.rotate(key_id))
    _tell_new(new.key, new.token, as_json=as_json)


@app.command()
def block(key_id: KeyId, *, config: ConfigFile = None, data_dir: DataDir = None) -> None:
    """Stop a key until it is unblocked."""
    _set_state(key_id, "blocked", config, data_dir)


@app.command()
def unblock(key_id: KeyId, *, config: ConfigFile = None, data_dir: DataDir = None) -> None:
    """Let a blocked key in again."""
    _set_state(key_id, "active", config, data_dir)


@app.command()
def revoke(key_id: KeyId, *, config: ConfigFile = None, data_dir: DataDir = None) -> None:
    """Stop a key for good."""
    _set_state(key_id, "revoked", config, data_dir)


def _set_state(
    key_id: str, state: Literal["active", "blocked", "revoked"], config: str | None, data_dir: str | None
) -> None:
    key = _with_keys(config, data_dir, lambda keys: keys.set_state(key_id, state))
    typer.echo(f"{key.id} ({key.name}) is {key.state}")


async def _all(keys: "Keys") -> "list[Key]":
    found: list[Key] = []
    while page := await keys.page(after=found[-1].id if found else "", limit=200):
        found += page
    return found


def _with_keys(config: str | None, data_dir: str | None, work: "Callable[[Keys], Awaitable[T]]") -> T:
    """Open the database, do the work, close it; what goes wrong is one line and exit status 1."""
    from pathlib import Path

    from trunkline.calls.keys import Keys
    from trunkline.config.secret_file import server_secret
    from trunkline.storage.sql.keys import SqlKeys

    async def run(loaded: "Config", database: "Database") -> T:
        secret = loaded.server.secret
        folder = Path(loaded.server.data_dir)
        pepper = secret.reveal().encode() if secret else server_secret(folder)
        return await work(Keys(SqlKeys(database), pepper))

    return with_database(config, data_dir, run)


def _members(key: "Key") -> dict[str, object]:
    import msgspec

    members: dict[str, object] = msgspec.to_builtins(key)
    return members


def _tell_new(key: "Key", token: str, *, as_json: bool) -> None:
    if as_json:
        _write({**_members(key), "key": token})
        return
    typer.echo(token)
    typer.echo(f"This is the only time that the key of {key.name!r} ({key.id}) is shown.", err=True)


def _write(value: object) -> None:
    import msgspec

    typer.echo(msgspec.json.encode(value).decode())
