"""`Idempotency-Key`: the first call under a key is remembered for a day, later ones are told of it."""

from sqlalchemy import ColumnElement, delete, select

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency
from trunkline.storage.sql.database import now_ms, upsert
from trunkline.storage.sql.engine import AsyncConnection
from trunkline.storage.sql.records import Records
from trunkline.storage.sql.tables import idempotency

KEPT_MS = 24 * 3600 * 1000
RECORDS = Records(idempotency, Idempotency)


async def remember(connection: AsyncConnection, asked: Idempotency) -> Idempotency | None:
    """Note the key; what it stands for already, or None when it is new. Raises `idempotency_conflict`."""
    await connection.execute(delete(idempotency).where(_scope(asked), idempotency.c.expires_ms <= now_ms()))
    values = RECORDS.values(asked) | {"created_ms": now_ms(), "expires_ms": now_ms() + KEPT_MS}
    if (await connection.execute(upsert(connection, idempotency).values(values).on_conflict_do_nothing())).rowcount:
        return None
    return await recall(connection, asked)


async def recall(connection: AsyncConnection, asked: Idempotency) -> Idempotency | None:
    """Give what the key stands for already. Raises `idempotency_conflict`."""
    query = select(*RECORDS.columns).where(_scope(asked), idempotency.c.expires_ms > now_ms())
    row = (await connection.execute(query)).one_or_none()
    known = None if row is None else RECORDS.read(row)
    if known is not None and known.body_hash != asked.body_hash:
        raise GatewayError(
            "idempotency_conflict",
            "this Idempotency-Key was used with another body in the last 24 hours; use a new key for a new request",
        )
    return known


def _scope(asked: Idempotency) -> ColumnElement[bool]:
    """Tell a key's rows by whose it is, what was asked of which route, and its name."""
    return (
        (idempotency.c.key_id == asked.key_id)
        & (idempotency.c.route == asked.route)
        & (idempotency.c.name == asked.name)
    )
