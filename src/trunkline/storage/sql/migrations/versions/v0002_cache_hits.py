"""Which calls were answered from the response cache."""

import sqlalchemy as sa
from alembic import op

revision = "v0002"
down_revision = "v0001"


def upgrade() -> None:
    """Add the mark; no call before it was."""
    op.add_column("ledger", sa.Column("cache_hit", sa.Boolean(), server_default=sa.text("false"), nullable=False))
