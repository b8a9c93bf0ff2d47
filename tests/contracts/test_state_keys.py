"""Virtual keys: recognised by digest, changed in part, seen by other processes, never told twice."""

import asyncio
import time
from contextlib import suppress

import pytest
from sqlalchemy import text

from trunkline.calls.keys import FRESH_S, LONGEST_TOKEN, Keys
from trunkline.core.errors import GatewayError
from trunkline.core.keys import GroupChanges, Key, KeyChanges, Rates
from trunkline.core.money import Budget
from trunkline.storage.sql.database import Database
from trunkline.storage.sql.keys import SqlKeys

SECRET = b"the server's secret"


@pytest.fixture
def keys(database: Database) -> Keys:
    return Keys(SqlKeys(database), SECRET)


async def refused(keys: Keys, token: str) -> str:
    with pytest.raises(GatewayError) as error:
        await keys.authenticate(token)
    assert (error.value.status, error.value.code) == (401, "invalid_api_key")
    return error.value.message


async def test_a_key_is_told_once_and_stored_as_a_digest(keys: Keys, database: Database) -> None:
    new = await keys.create(KeyChanges(name="anna"))
    assert new.token.startswith("sk-tl-")
    assert len(new.token) == len("sk-tl-") + 43
    assert new.key.prefix == new.token[:14]
    assert new.token not in repr(new)
    async with database.read() as connection:
        rows = (await connection.execute(text("SELECT * FROM keys"))).all()
    secret = new.token[14:]
    assert len(rows) == 1
    assert not any(secret in str(value) or secret.encode() in bytes(str(value), "utf-8") for value in rows[0])
    assert await keys.authenticate(new.token) == new.key
    other = Keys(SqlKeys(database), b"another server's secret")
    await refused(other, new.token)


async def test_a_key_comes_back_as_it_was_made(keys: Keys) -> None:
    group = await keys.create_group(GroupChanges(name="design", budget=Budget(month=7), metadata={"a": "b"}))
    new = await keys.create(
        KeyChanges(
            name="anna",
            group_id=group.id,
            models=("local/*", "gpt-*"),
            budget=Budget(total=5, day=0, month=3),
            rates=Rates(requests=60, tokens=1000, images=2, streams=1),
            media_style="bare",
            record=True,
            cache=True,
            metadata={"team": "ä"},
            expires_ms=2**41,
        )
    )
    key = await keys.get(new.key.id)
    assert key == new.key
    assert (key.name, key.models, key.budget) == ("anna", ("local/*", "gpt-*"), Budget(5, 0, 3))
    assert (key.rates, key.media_style, key.record, key.cache) == (Rates(60, 1000, 2, 1), "bare", True, True)
    assert (key.metadata, key.expires_ms, key.group) == ({"team": "ä"}, 2**41, group)
    assert key.budgeted
    assert await keys.groups() == [(group, 1)]


async def test_changes_touch_what_they_name(keys: Keys) -> None:
    new = await keys.create(KeyChanges(name="anna", models=("a",), rates=Rates(requests=1)))
    key = await keys.change(new.key.id, KeyChanges(models=(), budget=Budget(day=10)))
    assert (key.name, key.models, key.budget, key.rates) == ("anna", (), Budget(day=10), Rates(requests=1))
    key = await keys.change(new.key.id, KeyChanges(budget=Budget()))
    assert not key.budgeted


@pytest.mark.parametrize("state", ["blocked", "revoked"])
async def test_a_key_that_is_not_active_opens_nothing(keys: Keys, state: str) -> None:
    new = await keys.create(KeyChanges(name="anna"))
    await keys.authenticate(new.token)
    await keys.set_state(new.key.id, state)  # type: ignore[arg-type]
    assert state in await refused(keys, new.token)
    if state == "blocked":
        await keys.set_state(new.key.id, "active")
        assert (await keys.authenticate(new.token)).id == new.key.id
        return
    for attempt in (keys.set_state(new.key.id, "active"), keys.rotate(new.key.id)):
        with pytest.raises(GatewayError, match="stays revoked"):
            await attempt


async def test_a_key_of_a_blocked_group_opens_nothing(keys: Keys) -> None:
    group = await keys.create_group(GroupChanges(name="design"))
    new = await keys.create(KeyChanges(name="anna", group_id=group.id))
    await keys.change_group(group.id, GroupChanges(state="blocked"))
    assert "blocked" in await refused(keys, new.token)
    await keys.delete_group(group.id)
    assert (await keys.authenticate(new.token)).group is None


async def test_a_key_expires(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    later = time.time_ns() + 3600 * 10**9
    new = await keys.create(KeyChanges(name="anna", expires_ms=later // 1_000_000))
    await keys.look()
    await keys.authenticate(new.token)
    assert keys.known(new.token) is not None
    monkeypatch.setattr(time, "time_ns", lambda: later)
    assert keys.known(new.token) is None
    assert "expired" in await refused(keys, new.token)


async def test_a_rotated_keys_former_secret_stops_at_once(keys: Keys) -> None:
    new = await keys.create(KeyChanges(name="anna"))
    await keys.authenticate(new.token)
    rotated = await keys.rotate(new.key.id)
    assert rotated.token != new.token
    assert rotated.key.id == new.key.id
    await refused(keys, new.token)
    assert await keys.authenticate(rotated.token) == rotated.key


@pytest.mark.parametrize("token", ["", "sk-tl-", "sk-tl-" + "A" * 43, "x" * 100_000, "sk-tl-é\udc80"])
async def test_what_is_no_key_is_refused(keys: Keys, token: str) -> None:
    await keys.look()
    assert "incorrect API key" in await refused(keys, token)
    assert all(len(kept) <= LONGEST_TOKEN for kept in keys._found)  # nobody fills the memory with them


async def test_a_known_key_needs_no_database(keys: Keys, database: Database) -> None:
    new = await keys.create(KeyChanges(name="anna"))
    await keys.authenticate(new.token)
    assert keys.known(new.token) is None  # nobody watches: what is known may be old
    await keys.look()
    await keys.authenticate(new.token)
    await database.close()
    assert keys.known(new.token) == new.key
    assert keys.made


async def test_another_process_sees_changes_when_it_looks(keys: Keys, database: Database) -> None:
    other = Keys(SqlKeys(database), SECRET)
    await other.look()
    new = await keys.create(KeyChanges(name="anna"))
    await other.look()
    assert other.made
    assert await other.authenticate(new.token) == new.key
    await other.look()
    assert other.known(new.token) == new.key
    await keys.set_state(new.key.id, "blocked")
    await other.look()
    assert other.known(new.token) is None
    await refused(other, new.token)
    assert other.known(new.token) is None  # nor when what it is now is in memory
    await refused(other, new.token)


async def test_a_lookup_that_overlaps_a_change_is_not_kept(database: Database) -> None:
    class SlowStore(SqlKeys):
        """Answers a lookup only after the change has been seen."""

        async def find_key(self, digest: bytes) -> Key | None:
            key = await super().find_key(digest)
            found.set()
            await changed.wait()
            return key

    found, changed = asyncio.Event(), asyncio.Event()
    keys, other = Keys(SqlKeys(database), SECRET), Keys(SlowStore(database), SECRET)
    new = await keys.create(KeyChanges(name="anna"))
    await other.look()
    lookup = asyncio.ensure_future(other.authenticate(new.token))
    await found.wait()
    await keys.set_state(new.key.id, "blocked")
    await other.look()
    changed.set()
    with suppress(GatewayError):
        await lookup
    assert other.known(new.token) is None
    await refused(other, new.token)


async def test_a_database_that_is_away_makes_known_keys_grow_old(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    new = await keys.create(KeyChanges(name="anna"))
    await keys.look()
    await keys.authenticate(new.token)
    keys._store = SqlKeys(Database.at("postgresql://nobody@127.0.0.1:1/nothing"))
    await keys.look()
    assert await keys.authenticate(new.token) == new.key
    later = time.monotonic() + FRESH_S
    monkeypatch.setattr(time, "monotonic", lambda: later)
    with pytest.raises(GatewayError) as error:
        await keys.authenticate(new.token)
    assert (error.value.status, error.value.code) == (503, "storage_unavailable")


async def test_wrong_settings_are_told_by_name(keys: Keys) -> None:
    async def says(attempt: object) -> tuple[str, str | None]:
        with pytest.raises(GatewayError) as error:
            await attempt  # type: ignore[misc]
        return error.value.code, error.value.param

    assert await says(keys.create(KeyChanges())) == ("missing_required_parameter", "name")
    assert await says(keys.create(KeyChanges(name=" "))) == ("invalid_value", "name")
    assert await says(keys.create(KeyChanges(name="a\x00"))) == ("invalid_value", "name")
    assert await says(keys.create(KeyChanges(name="a", group_id="grp_none"))) == ("invalid_value", "group_id")
    assert await says(keys.create(KeyChanges(name="a", budget=Budget(day=-1)))) == ("invalid_value", "budget")
    assert await says(keys.create(KeyChanges(name="a", rates=Rates(tokens=-1)))) == ("invalid_value", "rates")
    assert await says(keys.change("key_none", KeyChanges(name="b"))) == ("not_found", None)
    assert await says(keys.rotate("key_none")) == ("not_found", None)
    assert await says(keys.get("key_none")) == ("not_found", None)
    assert await says(keys.delete_group("grp_none")) == ("not_found", None)
    await keys.create_group(GroupChanges(name="design"))
    assert await says(keys.create_group(GroupChanges(name="design"))) == ("invalid_value", "name")


async def test_pages_of_keys(keys: Keys) -> None:
    made = [(await keys.create(KeyChanges(name=f"k{n}"))).key.id for n in range(5)]
    await keys.set_state(made[2], "blocked")
    first = await keys.page(limit=2)
    rest = await keys.page(limit=10, after=first[-1].id)
    assert {key.id for key in first + rest} == set(made)
    assert len(first + rest) == 5
    assert [key.id for key in await keys.page(state="blocked")] == [made[2]]
