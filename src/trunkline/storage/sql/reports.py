"""Reports on SQL: the port `core.reports.Reports`."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    ColumnElement,
    Float,
    Select,
    String,
    Text,
    and_,
    case,
    cast,
    column,
    exists,
    func,
    null,
    or_,
    select,
    true,
    type_coerce,
)

from trunkline.core.money import Spend, periods_of
from trunkline.core.reports import (
    FAILED,
    KeyCounts,
    KeyRef,
    ProviderCalls,
    Quantiles,
    Quantity,
    Repaired,
    Span,
    UsageBy,
    Used,
)
from trunkline.storage.sql.database import Database, among, now_ms
from trunkline.storage.sql.money import spends
from trunkline.storage.sql.tables import keys, ledger, spend

BY: dict[UsageBy, ColumnElement[str]] = {
    "model": ledger.c.model,
    "key": ledger.c.key_id,
    "provider": ledger.c.provider,
}
SUMS = {
    "prompt_tokens": ledger.c.prompt_tokens,
    "completion_tokens": ledger.c.completion_tokens,
    "images": ledger.c.images,
    "video_ms": ledger.c.video_ms,
    "cost_microusd": func.coalesce(ledger.c.cost_microusd, 0),
    "failed": case((ledger.c.end_reason.in_(FAILED), 1), else_=0),
    "estimated": case((ledger.c.estimated, 1), else_=0),
}
AFTER_FIRST = ledger.c.ended_ms - ledger.c.started_ms - ledger.c.first_event_ms
QUANTITIES: dict[Quantity, tuple[ColumnElement[Any], ColumnElement[bool]]] = {
    "first_event_ms": (ledger.c.first_event_ms, ledger.c.first_event_ms.is_not(None)),
    "duration_ms": (ledger.c.ended_ms - ledger.c.started_ms, ledger.c.ended_ms >= ledger.c.started_ms),
    "token_gap_ms": (
        AFTER_FIRST * 1.0 / (ledger.c.completion_tokens - 1),
        and_(ledger.c.streamed, ledger.c.first_event_ms.is_not(None), ledger.c.completion_tokens > 1, AFTER_FIRST >= 0),
    ),
}
"""What is measured, and of which rows."""
PROVIDERS_FAULT = and_(
    ledger.c.end_reason.in_(("failed", "timeout")),
    or_(ledger.c.status >= 500, ledger.c.status == 429),
)


class SqlReports:
    """See `core.reports.Reports`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def usage(self, span: Span, by: UsageBy, *, most: int) -> list[Used]:
        name = BY[by]
        cost, calls = func.sum(SUMS["cost_microusd"]), func.count()
        largest = select(name).where(_within(span)).group_by(name).order_by(cost.desc(), calls.desc(), name)
        async with self._database.read() as connection:
            names = list((await connection.execute(largest.limit(most))).scalars())
            query = _used(span, case((among(name, names), name), else_=null()))
            return [_as_used(row) for row in await connection.execute(query)]

    async def used(self, span: Span) -> list[Used]:
        return [_as_used(row) for row in await self._database.rows(_used(span, type_coerce("", String)))]

    async def quantiles(
        self, span: Span, quantity: Quantity, *, model: str = "", provider: str = ""
    ) -> list[Quantiles]:
        value, measured = QUANTITIES[quantity]
        rows = (
            select(_bucket(span).label("at"), cast(value, Float).label("value"))
            .where(_within(span), measured, *_filters(model, provider))
            .subquery()
        )
        ranked = select(
            rows.c.at,
            rows.c.value,
            func.row_number().over(partition_by=rows.c.at, order_by=rows.c.value).label("rank"),
            func.count().over(partition_by=rows.c.at).label("many"),
        ).subquery()
        at_rank = [
            func.min(case((ranked.c.rank * 100 >= ranked.c.many * percent, ranked.c.value))) for percent in (50, 95, 99)
        ]
        query = select(ranked.c.at, *at_rank).group_by(ranked.c.at).order_by(ranked.c.at)
        return [Quantiles(int(at), *values) for at, *values in await self._database.rows(query)]

    async def repairs(self, span: Span, *, model: str = "", provider: str = "") -> list[Repaired]:
        if self._database.sqlite:
            each = func.json_each(ledger.c.repairs).table_valued(column("key", Text), column("value", BigInteger))
        else:
            each = func.json_each_text(cast(ledger.c.repairs, JSON)).table_valued(
                column("key", Text), column("value", Text)
            )
        found = (
            select(_bucket(span).label("at"), ledger.c.provider, each.c.key, cast(each.c.value, BigInteger).label("n"))
            .select_from(ledger.join(each, true()))
            .where(_within(span), ledger.c.repairs != "{}", *_filters(model, provider))
            .subquery()
        )
        places = (found.c.at, found.c.provider, found.c.key)
        query = select(*places, func.sum(found.c.n)).group_by(*places).order_by(*places)
        rows = await self._database.rows(query)
        return [Repaired(int(at), name, rule, int(count)) for at, name, rule, count in rows]

    async def providers(self, since_ms: int) -> dict[str, ProviderCalls]:
        since = and_(ledger.c.started_ms >= since_ms, ledger.c.provider != "")
        fault = case((PROVIDERS_FAULT, 1), else_=0)
        counts = select(ledger.c.provider, func.count(), func.sum(fault)).where(since).group_by(ledger.c.provider)
        ranked = (
            select(
                ledger.c.provider,
                ledger.c.first_event_ms,
                func.row_number().over(partition_by=ledger.c.provider, order_by=ledger.c.first_event_ms).label("rank"),
                func.count().over(partition_by=ledger.c.provider).label("many"),
            )
            .where(since, ledger.c.first_event_ms.is_not(None))
            .subquery()
        )
        upper = case((ranked.c.rank * 2 >= ranked.c.many, ranked.c.first_event_ms))
        medians = select(ranked.c.provider, func.min(upper)).group_by(ranked.c.provider)
        newest = func.row_number().over(partition_by=ledger.c.provider, order_by=ledger.c.ended_ms.desc())
        errors = (
            select(ledger.c.provider, ledger.c.error_code, ledger.c.ended_ms, newest.label("rank"))
            .where(since, PROVIDERS_FAULT)
            .subquery()
        )
        async with self._database.read() as connection:
            median = {name: float(value) for name, value in await connection.execute(medians)}
            last = {
                name: (code, at)
                for name, code, at in await connection.execute(
                    select(errors.c.provider, errors.c.error_code, errors.c.ended_ms).where(errors.c.rank == 1)
                )
            }
            return {
                name: ProviderCalls(calls, int(failed), median.get(name), *last.get(name, ("", 0)))
                for name, calls, failed in await connection.execute(counts)
            }

    async def key_counts(self, day: str) -> KeyCounts:
        alive = and_(keys.c.state == "active", or_(keys.c.expires_ms.is_(None), keys.c.expires_ms > now_ms()))
        total, today, month = periods_of(day)
        limits = {total: keys.c.budget_total_microusd, today: keys.c.budget_day_microusd}
        limits[month] = keys.c.budget_month_microusd
        spent = or_(
            *(
                exists().where(spend.c.owner_id == keys.c.id, spend.c.period == period, spend.c.spent_microusd >= limit)
                for period, limit in limits.items()
            )
        )
        blocked = keys.c.state == "blocked"
        query = select(*(func.sum(case((which, 1), else_=0)) for which in (alive, blocked, and_(alive, spent))))
        [row] = await self._database.rows(query.select_from(keys))
        return KeyCounts(*(int(count or 0) for count in row))

    async def key_refs(self, key_ids: Iterable[str]) -> dict[str, KeyRef]:
        query = select(keys.c.id, keys.c.name, keys.c.record).where(among(keys.c.id, sorted(set(key_ids))))
        return {row[0]: KeyRef(*row) for row in await self._database.rows(query)}

    async def last_used(self, key_ids: Sequence[str]) -> dict[str, int]:
        last = select(ledger.c.key_id, func.max(ledger.c.started_ms)).where(among(ledger.c.key_id, key_ids))
        return {key_id: int(at) for key_id, at in await self._database.rows(last.group_by(ledger.c.key_id))}

    async def spends(self, owner_ids: Sequence[str], periods: Sequence[str]) -> Mapping[tuple[str, str], Spend]:
        async with self._database.read() as connection:
            return await spends(connection, owner_ids, periods)


def _within(span: Span) -> ColumnElement[bool]:
    return and_(ledger.c.started_ms >= span.start_ms, ledger.c.started_ms < span.end_ms)


def _bucket(span: Span) -> ColumnElement[int]:
    return ledger.c.started_ms - ledger.c.started_ms % span.bucket_ms


def _filters(model: str, provider: str) -> list[ColumnElement[bool]]:
    asked = ((ledger.c.model, model), (ledger.c.provider, provider))
    return [which == value for which, value in asked if value]


def _used(span: Span, name: ColumnElement[Any]) -> Select[Any]:
    """Sum by bucket and name; from within, since PostgreSQL takes a repeated parameter for another value."""
    sums = [value.label(key) for key, value in SUMS.items()]
    inner = select(_bucket(span).label("at"), name.label("name"), *sums).where(_within(span)).subquery()
    summed = (func.sum(inner.c[key]) for key in SUMS)
    return (
        select(inner.c.at, inner.c.name, func.count(), *summed)
        .group_by(inner.c.at, inner.c.name)
        .order_by(inner.c.at, inner.c.name)
    )


def _as_used(row: Any) -> Used:
    at, name, calls, *sums = row
    return Used(at_ms=int(at), name=name, calls=calls, **dict(zip(SUMS, map(int, sums), strict=True)))
