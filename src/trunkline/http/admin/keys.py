"""Virtual keys and their groups (docs/admin-api.md sections 5 and 6)."""

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import asdict, replace
from starlette.requests import Request

from trunkline.calls.keys import Keys, NewKey, unusable
from trunkline.core.keys import GroupChanges, Key, KeyChanges, KeyGroup, KeyState, Rates
from trunkline.core.money import Budget, Period, Spend, day_of, periods_of
from trunkline.core.reports import Reports
from trunkline.core.route import MediaStyle
from trunkline.http.admin.api import Endpoint
from trunkline.http.admin.reading import after_of, limit_of, listed, one_of, read_body
from trunkline.http.live import Live
from trunkline.policy.key_rules import LEAST_RATE, MOST, MOST_RATE, unmatched_words

STATES = ("active", "blocked", "revoked", "expired")
RATES = {"rpm": "requests", "tpm": "tokens", "images_per_minute": "images", "concurrent_streams": "streams"}
Amount = Annotated[int, Meta(ge=0, le=MOST)]
Count = Annotated[int, Meta(ge=LEAST_RATE, le=MOST_RATE)]
Spends = Mapping[tuple[str, str], Spend]


class BudgetBody(Struct, forbid_unknown_fields=True):
    """How much may be spent, in which time."""

    limit_microusd: Amount
    per: Period


class KeyBody(Struct, forbid_unknown_fields=True):
    """What to set of a key; what is left out stays as it is."""

    name: str | UnsetType = UNSET
    models: tuple[str, ...] | UnsetType = UNSET
    budget: BudgetBody | UnsetType | None = UNSET
    rpm: Count | UnsetType | None = UNSET
    tpm: Count | UnsetType | None = UNSET
    images_per_minute: Count | UnsetType | None = UNSET
    concurrent_streams: Count | UnsetType | None = UNSET
    media_style: MediaStyle | UnsetType | None = UNSET
    record: bool | UnsetType = UNSET
    cache: bool | UnsetType = UNSET
    group_id: str | UnsetType | None = UNSET
    expires_at: Annotated[float, Meta(ge=0, le=10**11)] | UnsetType | None = UNSET
    metadata: dict[str, str] | UnsetType = UNSET

    def changes(self, former: Rates) -> KeyChanges:
        """Give the same in the words of the core; limits that are left out are `former`'s."""
        rates = {ours: value for name, ours in RATES.items() if (value := getattr(self, name)) is not UNSET}
        return KeyChanges(
            name=self.name,
            models=self.models,
            budget=_budget(self.budget),
            rates=replace(former, **rates) if rates else UNSET,
            media_style="" if self.media_style is None else self.media_style,
            record=self.record,
            cache=self.cache,
            group_id=self.group_id,
            expires_ms=round(self.expires_at * 1000) if isinstance(self.expires_at, float) else self.expires_at,
            metadata=self.metadata,
        )


class GroupBody(Struct, forbid_unknown_fields=True):
    """What to set of a group."""

    name: str | UnsetType = UNSET
    budget: BudgetBody | UnsetType | None = UNSET


class KeyPages:
    """The endpoints of keys and groups."""

    def __init__(self, keys: Keys, reports: Reports, live: Live) -> None:
        self._keys = keys
        self._live = live
        self._reports = reports
        one, group = "/keys/{id}", "/groups/{id}"
        self.endpoints = [
            Endpoint("GET", "/keys", self._list),
            Endpoint("POST", "/keys", self._create, 201),
            Endpoint("GET", one, self._get),
            Endpoint("PATCH", one, self._change),
            Endpoint("POST", f"{one}/rotate", self._rotate),
            Endpoint("POST", f"{one}/block", self._state("blocked")),
            Endpoint("POST", f"{one}/unblock", self._state("active")),
            Endpoint("POST", f"{one}/revoke", self._state("revoked")),
            Endpoint("GET", "/groups", self._groups),
            Endpoint("POST", "/groups", self._create_group, 201),
            Endpoint("PATCH", group, self._change_group),
            Endpoint("DELETE", group, self._delete_group),
        ]

    async def _list(self, request: Request) -> Any:
        state, limit = one_of(request, "state", STATES), limit_of(request)
        group_id = request.query_params.get("group") or None
        keys = await self._keys.page(group_id=group_id, state=state, after=after_of(request), limit=limit)
        return listed(await self._told(keys), limit)

    async def _create(self, request: Request) -> Any:
        body = await read_body(request, KeyBody)
        return await self._new(await self._keys.create(body.changes(Rates())))

    async def _get(self, request: Request) -> Any:
        return (await self._told([await self._keys.get(request.path_params["id"])]))[0]

    async def _change(self, request: Request) -> Any:
        body = await read_body(request, KeyBody)
        former = await self._keys.get(request.path_params["id"])
        return (await self._told([await self._keys.change(former.id, body.changes(former.rates))]))[0]

    async def _rotate(self, request: Request) -> Any:
        return await self._new(await self._keys.rotate(request.path_params["id"]))

    def _state(self, state: KeyState) -> Any:
        async def change(request: Request) -> Any:
            return (await self._told([await self._keys.set_state(request.path_params["id"], state)]))[0]

        return change

    async def _new(self, new: NewKey) -> dict[str, Any]:
        return (await self._told([new.key]))[0] | {"key": new.token}

    async def _told(self, keys: Sequence[Key]) -> list[dict[str, Any]]:
        """Give keys as the API shows them."""
        now_ms = time.time_ns() // 1_000_000
        ids = [key.id for key in keys]
        spends = await self._reports.spends(ids, periods_of(day_of(now_ms)))
        last_used = await self._reports.last_used(ids)
        shown = [_shown(key, spends, last_used.get(key.id), now_ms) for key in keys]
        unmatched = self._live.table.unmatched({pattern for key in keys for pattern in key.models})
        for key, members in zip(keys, shown, strict=True):
            missing = [pattern for pattern in key.models if pattern in unmatched]
            members["warnings"] = [unmatched_words(pattern, unmatched[pattern]) for pattern in missing]
        return shown

    async def _groups(self, _request: Request) -> Any:
        return listed(await self._told_groups(await self._keys.groups()))

    async def _create_group(self, request: Request) -> Any:
        body = await read_body(request, GroupBody)
        group = await self._keys.create_group(GroupChanges(name=body.name, budget=_budget(body.budget)))
        return (await self._told_groups([(group, 0)]))[0]

    async def _change_group(self, request: Request) -> Any:
        body = await read_body(request, GroupBody)
        changes = GroupChanges(name=body.name, budget=_budget(body.budget))
        group = await self._keys.change_group(request.path_params["id"], changes)
        members = next((count for each, count in await self._keys.groups() if each.id == group.id), 0)
        return (await self._told_groups([(group, members)]))[0]

    async def _delete_group(self, request: Request) -> None:
        await self._keys.delete_group(request.path_params["id"])

    async def _told_groups(self, groups: Sequence[tuple[KeyGroup, int]]) -> list[dict[str, Any]]:
        day = day_of(time.time_ns() // 1_000_000)
        spends = await self._reports.spends([group.id for group, _ in groups], periods_of(day))
        return [
            {
                "id": group.id,
                "name": group.name,
                "budget": shown_budget(group.id, group.budget, spends, day),
                "keys": members,
                "created_at": group.created_ms / 1000,
            }
            for group, members in groups
        ]


def _shown(key: Key, spends: Spends, last_used_ms: int | None, now_ms: int) -> dict[str, Any]:
    why = unusable(key, now_ms)
    return {
        "id": key.id,
        "name": key.name,
        "prefix": key.prefix,
        "state": "expired" if why == "expired" else key.state,
        "group": {"id": key.group.id, "name": key.group.name} if key.group else None,
        "models": key.models,
        "budget": shown_budget(key.id, key.budget, spends, day_of(now_ms)),
        **{name: getattr(key.rates, ours) for name, ours in RATES.items()},
        "media_style": key.media_style or None,
        "record": key.record,
        "cache": key.cache,
        "metadata": key.metadata,
        "created_at": key.created_ms / 1000,
        "expires_at": None if key.expires_ms is None else key.expires_ms / 1000,
        "last_used_at": None if last_used_ms is None else last_used_ms / 1000,
    }


def shown_budget(owner_id: str, budget: Budget, spends: Spends, day: str) -> dict[str, Any] | None:
    """Give a budget with what was spent of it; of several limits the one of which least is left."""
    shown = []
    for per, limit in asdict(budget).items():
        if limit is None:
            continue
        period = dict(zip(("total", "day", "month"), periods_of(day), strict=True))[per]
        spend = spends.get((owner_id, period)) or Spend(period)
        shown.append(
            {
                "limit_microusd": limit,
                "per": per,
                "spent_microusd": spend.spent,
                "reserved_microusd": spend.reserved,
                "resets_at": _resets_at(per, day),
            }
        )
    return min(shown, key=lambda each: each["limit_microusd"] - each["spent_microusd"], default=None)


def _resets_at(per: str, day: str) -> int | None:
    """Say when a period ends (UTC), in Unix seconds."""
    if per == "total":
        return None
    today = datetime.fromisoformat(day).replace(tzinfo=UTC)
    if per == "day":
        return int((today + timedelta(days=1)).timestamp())
    return int((today.replace(day=1) + timedelta(days=32)).replace(day=1).timestamp())


def _budget(body: BudgetBody | UnsetType | None) -> Budget | UnsetType:
    if body is None or isinstance(body, UnsetType):
        return UNSET if body is UNSET else Budget()
    return Budget(**{body.per: body.limit_microusd})
