"""Virtual keys and groups on SQL: the port `core.state.KeyStore`."""

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType
from sqlalchemy import and_, bindparam, delete, exc, func, not_, select, update
from sqlalchemy.engine import Row

from trunkline.core.keys import GroupChanges, Key, KeyChanges, KeyGroup, Rates
from trunkline.core.money import Budget
from trunkline.core.state import NameTakenError
from trunkline.storage.sql.database import Database, now_ms, upsert
from trunkline.storage.sql.engine import AsyncConnection
from trunkline.storage.sql.records import paged
from trunkline.storage.sql.tables import key_groups, keys
from trunkline.storage.sql.tables import settings as settings_table

VERSION = "keys"
VERSION_NOW = select(settings_table.c.version).where(settings_table.c.name == VERSION)
RATES = {
    "requests": "requests_per_min",
    "tokens": "tokens_per_min",
    "images": "images_per_min",
    "streams": "concurrent_streams",
}
PLAIN = ("name", "state", "group_id", "media_style", "record", "cache", "expires_ms")
QUERY = select(keys, *(column.label(f"group_{column.name}_") for column in key_groups.c)).select_from(
    keys.outerjoin(key_groups)
)
BY_ID = QUERY.where(keys.c.id == bindparam("which"))
BY_DIGEST = QUERY.where(keys.c.digest == bindparam("digest"))
GROUP_BY_ID = select(key_groups).where(key_groups.c.id == bindparam("which"))


class SqlKeys:
    """See `core.state.KeyStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def add_key(self, key_id: str, digest: bytes, prefix: str, settings: KeyChanges) -> Key:
        values = _columns(settings) | {"id": key_id, "digest": digest, "prefix": prefix}
        async with self._database.write() as connection:
            await _check_group(connection, settings.group_id)
            await connection.execute(keys.insert().values(values | {"created_ms": now_ms(), "updated_ms": now_ms()}))
            await _changed(connection)
            return _key((await connection.execute(BY_ID, {"which": key_id})).one())

    async def find_key(self, digest: bytes) -> Key | None:
        row = await self._database.first(BY_DIGEST, {"digest": digest})
        return None if row is None else _key(row)

    async def get_key(self, key_id: str) -> Key | None:
        row = await self._database.first(BY_ID, {"which": key_id})
        return None if row is None else _key(row)

    async def list_keys(
        self, *, group_id: str | None = None, state: str | None = None, after: str = "", limit: int = 50
    ) -> list[Key]:
        query = QUERY.limit(limit)
        if group_id is not None:
            query = query.where(keys.c.group_id == group_id)
        if state is not None:
            over = and_(keys.c.state == "active", keys.c.expires_ms.is_not(None), keys.c.expires_ms <= now_ms())
            query = query.where(over if state == "expired" else and_(keys.c.state == state, not_(over)))
        return [_key(row) for row in await self._database.rows(paged(query, keys, after))]

    async def change_key(self, key_id: str, changes: KeyChanges) -> Key | None:
        values = _columns(changes)
        async with self._database.write() as connection:
            await _check_group(connection, changes.group_id)
            allowed = keys.c.id == key_id
            if changes.state is not UNSET and changes.state != "revoked":
                allowed &= keys.c.state != "revoked"
            if not (
                await connection.execute(update(keys).where(allowed).values(values | {"updated_ms": now_ms()}))
            ).rowcount:
                if await _get(connection, key_id):
                    raise ValueError("a revoked key stays revoked: make a new one")
                return None
            await _changed(connection)
            return await _get(connection, key_id)

    async def rotate_key(self, key_id: str, digest: bytes, prefix: str) -> Key | None:
        statement = (
            update(keys)
            .where(keys.c.id == key_id, keys.c.state != "revoked")
            .values(digest=digest, prefix=prefix, updated_ms=now_ms())
        )
        async with self._database.write() as connection:
            rotated = (await connection.execute(statement)).rowcount
            await _changed(connection)
            key = await _get(connection, key_id)
        if key is not None and not rotated:
            raise ValueError("a revoked key stays revoked: make a new one")
        return key

    async def add_group(self, group_id: str, settings: GroupChanges) -> KeyGroup:
        values = _columns(settings) | {"id": group_id, "created_ms": now_ms(), "updated_ms": now_ms()}
        try:
            async with self._database.write() as connection:
                await connection.execute(key_groups.insert().values(values))
                await _changed(connection)
                return _group((await connection.execute(GROUP_BY_ID, {"which": group_id})).one())
        except exc.IntegrityError as error:
            raise NameTakenError(f"there is a group named {settings.name!r} already") from error

    async def get_group(self, group_id: str) -> KeyGroup | None:
        row = await self._database.first(GROUP_BY_ID, {"which": group_id})
        return None if row is None else _group(row)

    async def list_groups(self) -> list[tuple[KeyGroup, int]]:
        members = select(func.count()).where(keys.c.group_id == key_groups.c.id).scalar_subquery()
        query = select(key_groups, members.label("members"))
        return [(_group(row), row.members) for row in await self._database.rows(paged(query, key_groups, ""))]

    async def change_group(self, group_id: str, changes: GroupChanges) -> KeyGroup | None:
        statement = update(key_groups).where(key_groups.c.id == group_id).values(_columns(changes))
        try:
            async with self._database.write() as connection:
                await connection.execute(statement.values(updated_ms=now_ms()))
                await _changed(connection)
                row = (await connection.execute(GROUP_BY_ID, {"which": group_id})).one_or_none()
                return None if row is None else _group(row)
        except exc.IntegrityError as error:
            raise NameTakenError(f"there is a group named {changes.name!r} already") from error

    async def delete_group(self, group_id: str) -> bool:
        async with self._database.write() as connection:
            await connection.execute(
                update(keys).where(keys.c.group_id == group_id).values(group_id=None, updated_ms=now_ms())
            )
            await _changed(connection)
            return (await connection.execute(delete(key_groups).where(key_groups.c.id == group_id))).rowcount > 0

    async def keys_version(self) -> int:
        return next((row.version for row in await self._database.rows(VERSION_NOW)), 0)


async def _changed(connection: AsyncConnection) -> None:
    """Tell every process to forget what it knows of keys."""
    raised = {"version": settings_table.c.version + 1, "updated_ms": now_ms()}
    await connection.execute(
        upsert(connection, settings_table)
        .values(name=VERSION, version=1, updated_ms=now_ms())
        .on_conflict_do_update(index_elements=[settings_table.c.name], set_=raised)
    )


async def _check_group(connection: AsyncConnection, group_id: str | UnsetType | None) -> None:
    if group_id is None or group_id is UNSET:
        return
    if (await connection.execute(GROUP_BY_ID, {"which": group_id})).one_or_none() is None:
        raise LookupError(f"there is no group {group_id!r}")


async def _get(connection: AsyncConnection, key_id: str) -> Key | None:
    row = (await connection.execute(BY_ID, {"which": key_id})).one_or_none()
    return None if row is None else _key(row)


def _columns(record: KeyChanges | GroupChanges) -> dict[str, Any]:
    """Give the columns of what is set."""
    values = {name: value for name in PLAIN if (value := getattr(record, name, UNSET)) is not UNSET}
    if record.budget is not UNSET:
        values |= {
            f"budget_{period}_microusd": limit for period, limit in msgspec.structs.asdict(record.budget).items()
        }
    if record.metadata is not UNSET:
        values["metadata"] = msgspec.json.encode(record.metadata).decode()
    if isinstance(record, KeyChanges):
        if record.models is not UNSET:
            values["models"] = msgspec.json.encode(record.models).decode()
        if record.rates is not UNSET:
            values |= {RATES[name]: limit for name, limit in msgspec.structs.asdict(record.rates).items()}
    return values


def _key(row: Row[Any]) -> Key:
    value = row._mapping  # noqa: SLF001 - SQLAlchemy's public name
    return Key(
        id=value["id"],
        name=value["name"],
        prefix=value["prefix"],
        state=value["state"],
        group=None if row.group_id_ is None else _group(row, "group_{}_"),
        models=msgspec.json.decode(value["models"], type=tuple[str, ...]),
        budget=_budget(value),
        rates=Rates(**{name: value[column] for name, column in RATES.items()}),
        media_style=value["media_style"],
        record=value["record"],
        cache=value["cache"],
        metadata=msgspec.json.decode(value["metadata"], type=dict[str, str]),
        created_ms=value["created_ms"],
        updated_ms=value["updated_ms"],
        expires_ms=value["expires_ms"],
    )


def _group(row: Row[Any], label: str = "{}") -> KeyGroup:
    value = {column.name: getattr(row, label.format(column.name)) for column in key_groups.c}
    return KeyGroup(
        id=value["id"],
        name=value["name"],
        state=value["state"],
        budget=_budget(value),
        metadata=msgspec.json.decode(value["metadata"], type=dict[str, str]),
        created_ms=value["created_ms"],
        updated_ms=value["updated_ms"],
    )


def _budget(value: Any) -> Budget:
    return Budget(value["budget_total_microusd"], value["budget_day_microusd"], value["budget_month_microusd"])
