"""Virtual keys: made, changed and recognised; what is known of them is kept in memory for a moment."""

import asyncio
import hmac
import secrets
import time
from typing import TypeVar

from msgspec import UNSET, Struct

from trunkline.core.errors import GatewayError
from trunkline.core.keys import GroupChanges, Key, KeyChanges, KeyGroup, KeyState
from trunkline.core.state import KeyStore, NameTakenError, StorageError
from trunkline.policy import key_rules

PREFIX = "sk-tl-"
SHOWN = len(PREFIX) + 8
LONGEST_TOKEN = 256
FRESH_S = 5.0
"""How long a process goes on with what it knows of a key without asking again."""
LOOK_S = 1.0
MOST_CACHED = 50_000
T = TypeVar("T")
WHY = {
    "blocked": "this API key is blocked",
    "revoked": "this API key was revoked",
    "expired": "this API key has expired",
}


class NewKey(Struct, frozen=True):
    """A key and its secret, which is told this once."""

    key: Key
    token: str

    def __repr__(self) -> str:
        return f"NewKey({self.key.id})"


class Keys:
    """The virtual keys of this gateway, over their store. `secret` is the server's: it peppers the stored digests.

    While `watch` runs, keys that were asked for before are recognised without the store, and changes made by other
    processes are seen within `LOOK_S` or so, at the latest after `FRESH_S`. Methods raise StorageError as the store.
    """

    def __init__(self, store: KeyStore, secret: bytes) -> None:
        self._store = store
        self._pepper = hmac.digest(secret, b"virtual keys", "sha256")
        self._found: dict[str, Key | None] = {}
        """By secret; None: there is no such key. Strings are found by a keyed hash, so nobody can aim at one."""
        self._usable: dict[str, Key] = {}
        """Those of them that were usable when they were found: only their end is still to be looked at."""
        self._fresh_until = 0.0
        self._version: int | None = None
        self._forgotten = 0
        self.made = False
        """Whether there is any key, as `watch` last saw it."""

    # -- recognising -----------------------------------------------------------------------------------------------

    def known(self, token: str) -> Key | None:
        """Give the usable key of this secret if it is in memory: no wait. None: ask `authenticate`."""
        key = self._usable.get(token)
        if key is None or time.monotonic() >= self._fresh_until:
            return None
        return key if key.expires_ms is None or key.expires_ms > _now_ms() else None

    async def authenticate(self, token: str) -> Key:
        """Give the key of this secret. Raises GatewayError `invalid_api_key`, `storage_unavailable`."""
        if (key := self.known(token)) is not None:
            return key
        if not token.isascii() or len(token) > LONGEST_TOKEN:
            raise wrong_key()
        found = await self._find(token)
        if found is None:
            raise wrong_key()
        if (why := unusable(found, _now_ms())) is not None:
            raise GatewayError("invalid_api_key", WHY[why])
        return found

    async def _find(self, token: str) -> Key | None:
        if time.monotonic() < self._fresh_until and token in self._found:
            return self._found[token]
        forgotten = self._forgotten
        try:
            key = await self._store.find_key(self._digest(token))
        except StorageError as error:
            raise GatewayError("storage_unavailable", "the key cannot be checked now: the database is away") from error
        if forgotten == self._forgotten:  # else a change was seen meanwhile, and this may be the state before it
            if len(self._found) >= MOST_CACHED:
                self._clear()
            self._found[token] = key
            if key is not None and unusable(key, _now_ms()) is None:
                self._usable[token] = key
        return key

    def forget(self) -> None:
        """Forget what is known: a key has changed somewhere."""
        self._clear()
        self._forgotten += 1

    def _clear(self) -> None:
        self._found.clear()
        self._usable.clear()

    async def watch(self) -> None:
        """Keep fresh what a `look` has found, until cancelled. While the store is away, it grows too old to use."""
        while True:
            await asyncio.sleep(LOOK_S)
            await self.look()

    async def look(self) -> None:
        """Ask once whether any key has changed."""
        asked = time.monotonic()
        try:
            version = await self._store.keys_version()
            if version != self._version:
                self.forget()
                self.made = bool(await self._store.list_keys(limit=1))
                self._version = version
        except StorageError:
            return
        self._fresh_until = asked + FRESH_S

    # -- making and changing ---------------------------------------------------------------------------------------

    async def create(self, settings: KeyChanges) -> NewKey:
        """Make a key. Raises GatewayError `missing_required_parameter`, `invalid_value`."""
        _require_name(settings)
        key_rules.check_new(settings, _now_ms())
        token = _new_token()
        try:
            key = await self._store.add_key(_new_id("key"), self._digest(token), token[:SHOWN], settings)
        except LookupError as error:
            raise _unknown_group(settings) from error
        self.forget()
        self.made = True
        return NewKey(key, token)

    async def get(self, key_id: str) -> Key:
        """Give one key. Raises GatewayError `not_found`."""
        return _found(await self._store.get_key(key_id), "key", key_id)

    async def page(
        self, *, group_id: str | None = None, state: str | None = None, after: str = "", limit: int = 50
    ) -> list[Key]:
        """List keys, newest first; `after` is the id of the last one seen."""
        return await self._store.list_keys(group_id=group_id, state=state, after=after, limit=limit)

    async def change(self, key_id: str, changes: KeyChanges) -> Key:
        """Change what is set. Raises GatewayError `invalid_value`, `not_found`."""
        key_rules.check(changes)
        try:
            key = await self._store.change_key(key_id, changes)
        except LookupError as error:
            raise _unknown_group(changes) from error
        except ValueError as error:
            raise GatewayError("invalid_value", str(error), param="state") from error
        self.forget()
        return _found(key, "key", key_id)

    async def rotate(self, key_id: str) -> NewKey:
        """Give a key another secret; the former one stops at once. Raises GatewayError `not_found`, `invalid_value`."""
        token = _new_token()
        try:
            key = await self._store.rotate_key(key_id, self._digest(token), token[:SHOWN])
        except ValueError as error:
            raise GatewayError("invalid_value", str(error)) from error
        self.forget()
        return NewKey(_found(key, "key", key_id), token)

    async def set_state(self, key_id: str, state: KeyState) -> Key:
        """Block, unblock (`active`) or revoke a key; revoking is for good. Raises GatewayError as `change`."""
        return await self.change(key_id, KeyChanges(state=state))

    async def create_group(self, settings: GroupChanges) -> KeyGroup:
        """Make a group. Raises GatewayError `missing_required_parameter`, `invalid_value`."""
        _require_name(settings)
        key_rules.check(settings)
        try:
            return await self._store.add_group(_new_id("grp"), settings)
        except NameTakenError as error:
            raise GatewayError("invalid_value", str(error), param="name") from error

    async def groups(self) -> list[tuple[KeyGroup, int]]:
        """List all groups, newest first, each with the number of its keys."""
        return await self._store.list_groups()

    async def change_group(self, group_id: str, changes: GroupChanges) -> KeyGroup:
        """Change what is set. Raises GatewayError `invalid_value`, `not_found`."""
        key_rules.check(changes)
        try:
            group = await self._store.change_group(group_id, changes)
        except NameTakenError as error:
            raise GatewayError("invalid_value", str(error), param="name") from error
        self.forget()
        return _found(group, "group", group_id)

    async def delete_group(self, group_id: str) -> None:
        """Take a group away; its keys stay. Raises GatewayError `not_found`."""
        deleted = await self._store.delete_group(group_id)
        self.forget()
        _found(deleted or None, "group", group_id)

    def _digest(self, token: str) -> bytes:
        """Give what is stored of a secret. Finding it by this is constant-time: nobody can aim at a digest."""
        return hmac.digest(self._pepper, token.encode("utf-8", "surrogatepass"), "sha256")


def unusable(key: Key, now_ms: int) -> str | None:
    """Say why a key opens nothing (`blocked`, `revoked`, `expired`), or None."""
    if key.state != "active":
        return key.state
    if key.group is not None and key.group.state != "active":
        return "blocked"
    return "expired" if key.expires_ms is not None and key.expires_ms <= now_ms else None


def wrong_key() -> GatewayError:
    """Give the error for a key that is none; the same for all of them."""
    return GatewayError("invalid_api_key", "incorrect API key provided; keys look like sk-tl-…")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _new_token() -> str:
    return f"{PREFIX}{secrets.token_urlsafe(32)}"


def _new_id(kind: str) -> str:
    return f"{kind}_{secrets.token_hex(8)}"


def _require_name(settings: KeyChanges | GroupChanges) -> None:
    if settings.name is UNSET:
        raise GatewayError("missing_required_parameter", "name is required", param="name")


def _unknown_group(settings: KeyChanges) -> GatewayError:
    return GatewayError("invalid_value", f"there is no group {settings.group_id!r}", param="group_id")


def _found(thing: T | None, kind: str, identity: str) -> T:
    if thing is None:
        raise GatewayError("not_found", f"there is no {kind} {identity!r}")
    return thing
