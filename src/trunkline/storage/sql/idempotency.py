"""`Idempotency-Key`: the first call under a key is remembered for a day, later ones are told of it."""

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncConnection

from trunkline.core.errors import GatewayError
from trunkline.core.jobs import Idempotency
from trunkline.storage.sql.database import now_ms, upsert
from trunkline.storage.sql.records import Records
from trunkline.storage.sql.tables import idempotency

KEPT_MS = 24 * 3600 * 1000
RECORDS = Records(idempotency, Idempotency)


async def remember(connection: AsyncConnection, asked: Idempotency) -> Idempotency | None:
    """Note the key; what it stands for already, or None when it is new. Raises `idempotency_conflict`."""
    scope = (
        (idempotency.c.key_id == asked.key_id)
        & (idempotency.c.route == asked.route)
        & (idempotency.c.name == asked.name)
    )
    await connection.execute(delete(idempotency).where(scope, idempotency.c.expires_ms <= now_ms()))
    values = RECORDS.values(asked) | {"created_ms": now_ms(), "expires_ms": now_ms() + KEPT_MS}
    if (await connection.execute(upsert(connection, idempotency).values(values).on_conflict_do_nothing())).rowcount:
        return None
    known = RECORDS.read((await connection.execute(select(*RECORDS.columns).where(scope))).one())
    if known.body_hash != asked.body_hash:
        raise GatewayError(
            "idempotency_conflict",
            "this Idempotency-Key was used with another body in the last 24 hours; use a new key for a new request",
        )
    return known
