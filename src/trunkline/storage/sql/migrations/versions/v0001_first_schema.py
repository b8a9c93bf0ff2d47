"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "v0001"
down_revision = None


def upgrade() -> None:
    """Make all tables."""
    _key_groups()
    _keys()
    _spend()
    _reservations()
    _ledger()
    _jobs()
    _jobs_indexes()
    _streams()
    _stream_events()
    _idempotency()
    _media()
    _files()
    _leases()
    _settings()
    _signals()


def _key_groups() -> None:
    op.create_table(
        "key_groups",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("budget_total_microusd", sa.BigInteger(), nullable=True),
        sa.Column("budget_day_microusd", sa.BigInteger(), nullable=True),
        sa.Column("budget_month_microusd", sa.BigInteger(), nullable=True),
        sa.Column("metadata", sa.Text(), server_default="{}", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_key_groups"),
        sa.UniqueConstraint("name", name="uq_key_groups_name"),
    )


def _keys() -> None:
    op.create_table(
        "keys",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("digest", sa.LargeBinary(length=32), nullable=False),
        sa.Column("prefix", sa.String(length=16), nullable=False),
        sa.Column("group_id", sa.String(length=40), nullable=True),
        sa.Column("state", sa.Text(), server_default="active", nullable=False),
        sa.Column("models", sa.Text(), server_default="[]", nullable=False),
        sa.Column("budget_total_microusd", sa.BigInteger(), nullable=True),
        sa.Column("budget_day_microusd", sa.BigInteger(), nullable=True),
        sa.Column("budget_month_microusd", sa.BigInteger(), nullable=True),
        sa.Column("requests_per_min", sa.BigInteger(), nullable=True),
        sa.Column("tokens_per_min", sa.BigInteger(), nullable=True),
        sa.Column("images_per_min", sa.BigInteger(), nullable=True),
        sa.Column("concurrent_streams", sa.BigInteger(), nullable=True),
        sa.Column("media_style", sa.Text(), server_default="", nullable=False),
        sa.Column("record", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("cache", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("metadata", sa.Text(), server_default="{}", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.ForeignKeyConstraint(["group_id"], ["key_groups.id"], name="fk_keys_group_id"),
        sa.PrimaryKeyConstraint("id", name="pk_keys"),
        sa.UniqueConstraint("digest", name="uq_keys_digest"),
    )
    op.create_index("ix_keys_group_id", "keys", ["group_id"], unique=False)


def _spend() -> None:
    op.create_table(
        "spend",
        sa.Column("owner_id", sa.String(length=40), nullable=False),
        sa.Column("period", sa.String(length=10), nullable=False),
        sa.Column("spent_microusd", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reserved_microusd", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("calls", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("owner_id", "period", name="pk_spend"),
    )


def _reservations() -> None:
    op.create_table(
        "reservations",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("group_id", sa.String(length=40), server_default="", nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("holder", sa.Text(), server_default="", nullable=False),
        sa.Column("job_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("amount_microusd", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("spare_microusd", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_reservations"),
    )
    op.create_index("ix_reservations_holder", "reservations", ["holder"], unique=False)
    op.create_index(
        "ix_reservations_open",
        "reservations",
        ["key_id", "day"],
        unique=False,
        sqlite_where=sa.text("state = 'open'"),
        postgresql_where=sa.text("state = 'open'"),
    )


def _ledger() -> None:
    op.create_table(
        "ledger",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("group_id", sa.String(length=40), server_default="", nullable=False),
        sa.Column("request_id", sa.Text(), server_default="", nullable=False),
        sa.Column("job_id", sa.Text(), server_default="", nullable=False),
        sa.Column("route", sa.Text(), server_default="", nullable=False),
        sa.Column("kind", sa.Text(), server_default="text", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("provider", sa.Text(), server_default="", nullable=False),
        sa.Column("upstream_model", sa.Text(), server_default="", nullable=False),
        sa.Column("credential_id", sa.Text(), server_default="", nullable=False),
        sa.Column("prompt_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("completion_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cached_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cache_write_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("reasoning_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("audio_input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("audio_output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("image_input_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("image_output_tokens", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("images", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("video_ms", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cost_microusd", sa.BigInteger(), nullable=True),
        sa.Column("price_version", sa.Text(), server_default="", nullable=False),
        sa.Column("estimated", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("streamed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("end_reason", sa.Text(), server_default="", nullable=False),
        sa.Column("error_code", sa.Text(), server_default="", nullable=False),
        sa.Column("status", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("attempts", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("first_event_ms", sa.BigInteger(), nullable=True),
        sa.Column("ended_ms", sa.BigInteger(), nullable=False),
        sa.Column("repairs", sa.Text(), server_default="{}", nullable=False),
        sa.Column("extra", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_ledger"),
    )
    op.create_index("ix_ledger_key_id_started_ms", "ledger", ["key_id", "started_ms"], unique=False)
    op.create_index("ix_ledger_started_ms", "ledger", ["started_ms"], unique=False)


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="queued", nullable=False),
        sa.Column("owner", sa.Text(), server_default="", nullable=False),
        sa.Column("generation", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("group_id", sa.String(length=40), server_default="", nullable=False),
        sa.Column("request_id", sa.Text(), server_default="", nullable=False),
        sa.Column("route", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("request", sa.Text(), server_default="{}", nullable=False),
        sa.Column("body_hash", sa.String(length=64), server_default="", nullable=False),
        sa.Column("stream_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("link_base", sa.Text(), server_default="", nullable=False),
        sa.Column("media_style", sa.Text(), server_default="", nullable=False),
        sa.Column("answer", sa.Text(), server_default="{}", nullable=False),
        sa.Column("on_disconnect", sa.Text(), server_default="continue", nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("provider", sa.Text(), server_default="", nullable=False),
        sa.Column("upstream_model", sa.Text(), server_default="", nullable=False),
        sa.Column("credential_id", sa.Text(), server_default="", nullable=False),
        sa.Column("upstream_task_id", sa.Text(), server_default="", nullable=False),
        sa.Column("binding", sa.Text(), server_default="{}", nullable=False),
        sa.Column("price", sa.Text(), server_default="{}", nullable=False),
        sa.Column("price_version", sa.Text(), server_default="", nullable=False),
        sa.Column("reservation_id", sa.String(length=40), server_default="", nullable=False),
        sa.Column("progress", sa.Float(), nullable=True),
        sa.Column("progress_text", sa.Text(), server_default="", nullable=False),
        sa.Column("result", sa.Text(), server_default="[]", nullable=False),
        sa.Column("error_code", sa.Text(), server_default="", nullable=False),
        sa.Column("error_message", sa.Text(), server_default="", nullable=False),
        sa.Column("cost_microusd", sa.BigInteger(), nullable=True),
        sa.Column("billed", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("callback_url", sa.Text(), server_default="", nullable=False),
        sa.Column("callback_state", sa.Text(), server_default="", nullable=False),
        sa.Column("callback_attempts", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("callback_due_ms", sa.BigInteger(), nullable=True),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.Column("submitting_ms", sa.BigInteger(), nullable=True),
        sa.Column("running_ms", sa.BigInteger(), nullable=True),
        sa.Column("storing_ms", sa.BigInteger(), nullable=True),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.Column("deadline_ms", sa.BigInteger(), nullable=True),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_jobs"),
    )


def _jobs_indexes() -> None:
    op.create_index("ix_jobs_body_hash", "jobs", ["body_hash"], unique=False)
    op.create_index("ix_jobs_callback_due_ms", "jobs", ["callback_due_ms"], unique=False)
    op.create_index("ix_jobs_key_id_created_ms", "jobs", ["key_id", "created_ms"], unique=False)
    op.create_index(
        "ix_jobs_provider_upstream_model_finished_ms",
        "jobs",
        ["provider", "upstream_model", "finished_ms"],
        unique=False,
    )
    op.create_index("ix_jobs_state_owner", "jobs", ["state", "owner"], unique=False)


def _streams() -> None:
    op.create_table(
        "streams",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("job_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("route", sa.Text(), server_default="", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("state", sa.Text(), server_default="open", nullable=False),
        sa.Column("owner", sa.Text(), server_default="", nullable=False),
        sa.Column("generation", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("first_seq", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("last_seq", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("cancel_requested", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=True),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_streams"),
    )
    op.create_index("ix_streams_expires_ms", "streams", ["expires_ms"], unique=False)
    op.create_index("ix_streams_job_id", "streams", ["job_id"], unique=False)


def _stream_events() -> None:
    op.create_table(
        "stream_events",
        sa.Column("stream_id", sa.String(length=64), nullable=False),
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("stream_id", "seq", name="pk_stream_events"),
    )


def _idempotency() -> None:
    op.create_table(
        "idempotency",
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("route", sa.String(length=128), nullable=False),
        sa.Column("name", sa.String(length=255), nullable=False),
        sa.Column("body_hash", sa.String(length=64), nullable=False),
        sa.Column("job_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("stream_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key_id", "route", "name", name="pk_idempotency"),
    )
    op.create_index("ix_idempotency_expires_ms", "idempotency", ["expires_ms"], unique=False)


def _media() -> None:
    op.create_table(
        "media",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("kind", sa.Text(), server_default="", nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("job_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("model", sa.Text(), server_default="", nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("storage_key", sa.Text(), server_default="", nullable=False),
        sa.Column("mime_type", sa.Text(), server_default="", nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("width", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("height", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("duration_s", sa.Float(), nullable=True),
        sa.Column("cover_id", sa.String(length=64), server_default="", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_media"),
    )
    op.create_index("ix_media_expires_ms", "media", ["expires_ms"], unique=False)
    op.create_index("ix_media_job_id", "media", ["job_id"], unique=False)
    op.create_index("ix_media_key_id_created_ms", "media", ["key_id", "created_ms"], unique=False)
    op.create_index("ix_media_sha256", "media", ["sha256"], unique=False)


def _files() -> None:
    op.create_table(
        "files",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("key_id", sa.String(length=40), nullable=False),
        sa.Column("purpose", sa.Text(), server_default="", nullable=False),
        sa.Column("filename", sa.Text(), server_default="", nullable=False),
        sa.Column("sha256", sa.String(length=64), nullable=False),
        sa.Column("storage_key", sa.Text(), server_default="", nullable=False),
        sa.Column("mime_type", sa.Text(), server_default="", nullable=False),
        sa.Column("bytes", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("width", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("height", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name="pk_files"),
    )
    op.create_index("ix_files_expires_ms", "files", ["expires_ms"], unique=False)
    op.create_index("ix_files_key_id_created_ms", "files", ["key_id", "created_ms"], unique=False)
    op.create_index("ix_files_sha256", "files", ["sha256"], unique=False)


def _leases() -> None:
    op.create_table(
        "leases",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("holder", sa.String(length=160), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("until_ms", sa.BigInteger(), nullable=False),
        sa.Column("info", sa.Text(), server_default="{}", nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_leases"),
        sa.UniqueConstraint("holder", name="uq_leases_holder"),
    )


def _settings() -> None:
    op.create_table(
        "settings",
        sa.Column("name", sa.String(length=128), nullable=False),
        sa.Column("value", sa.Text(), server_default="", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_settings"),
    )


def _signals() -> None:
    op.create_table(
        "signals",
        sa.Column("id", sa.String(length=40), nullable=False),
        sa.Column("topic", sa.Text(), server_default="", nullable=False),
        sa.Column("body", sa.Text(), server_default="", nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_signals"),
    )
    op.create_index("ix_signals_created_ms", "signals", ["created_ms"], unique=False)
