"""The schema: every table of Trunkline, for SQLite and PostgreSQL alike.

Conventions: money is whole micro-dollars (`_microusd`), instants are Unix milliseconds (`_ms`), JSON is text written by
msgspec. An owner without a virtual key (keys not required) is the empty string, so that unique keys hold for it too.
A change here needs a migration beside it in `migrations/versions`; a test compares the two.
"""

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    LargeBinary,
    MetaData,
    String,
    Table,
    Text,
    text,
)

NAMING = {
    "ix": "ix_%(table_name)s_%(column_0_N_name)s",
    "uq": "uq_%(table_name)s_%(column_0_N_name)s",
    "fk": "fk_%(table_name)s_%(column_0_name)s",
    "pk": "pk_%(table_name)s",
}
metadata = MetaData(naming_convention=NAMING)


def _text(name: str, default: str = "") -> Column[str]:
    return Column(name, Text, nullable=False, server_default=default)


def _count(name: str, default: int = 0) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default=str(default))


def _flag(name: str) -> Column[bool]:
    return Column(name, Boolean, nullable=False, server_default=text("false"))


def _ms(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False)


def _maybe(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=True)


key_groups = Table(
    "key_groups",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    _text("state", "active"),
    _maybe("budget_total_microusd"),
    _maybe("budget_day_microusd"),
    _maybe("budget_month_microusd"),
    _text("metadata", "{}"),
    _ms("created_ms"),
    _ms("updated_ms"),
)

keys = Table(
    "keys",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("name", Text, nullable=False),
    Column("digest", LargeBinary(32), nullable=False, unique=True),
    Column("prefix", String(16), nullable=False),
    Column("group_id", ForeignKey("key_groups.id"), nullable=True, index=True),
    _text("state", "active"),
    _text("models", "[]"),
    _maybe("budget_total_microusd"),
    _maybe("budget_day_microusd"),
    _maybe("budget_month_microusd"),
    _maybe("requests_per_min"),
    _maybe("tokens_per_min"),
    _maybe("images_per_min"),
    _maybe("concurrent_streams"),
    _text("media_style"),
    _flag("record"),
    _flag("cache"),
    _text("metadata", "{}"),
    _ms("created_ms"),
    _ms("updated_ms"),
    _maybe("expires_ms"),
)

# What an owner (key or group) has spent and holds reserved in a period: `total`, a day `2026-11-04`, a month `2026-11`
# (UTC, of the call's start). Invariant: reserved = the sum of the open reservations of that owner and period.
spend = Table(
    "spend",
    metadata,
    Column("owner_id", String(40), primary_key=True),
    Column("period", String(10), primary_key=True),
    _count("spent_microusd"),
    _count("reserved_microusd"),
    _count("calls"),
)

# Money set aside. With a job: for that job, until it is settled. Without: a process's allowance for one key, from which
# it admits calls in memory; it ends with the lease of its holder.
reservations = Table(
    "reservations",
    metadata,
    Column("id", String(40), primary_key=True),
    Column("key_id", String(40), nullable=False),
    Column("group_id", String(40), nullable=False, server_default=""),
    Column("day", String(10), nullable=False),
    Column("holder", Text, nullable=False, server_default="", index=True),
    Column("job_id", String(64), nullable=False, server_default=""),
    _text("state", "open"),
    _count("amount_microusd"),
    # The part of the amount that no call uses yet: what another process may hope to get back.
    _count("spare_microusd"),
    _ms("created_ms"),
    _ms("updated_ms"),
    Index(
        "ix_reservations_open",
        "key_id",
        "day",
        sqlite_where=text("state = 'open'"),  # PostgreSQL's is in the migration: here it would load its dialect
    ),
)

# One row a call; its id makes booking idempotent.
ledger = Table(
    "ledger",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("key_id", String(40), nullable=False),
    Column("group_id", String(40), nullable=False, server_default=""),
    _text("request_id"),
    _text("job_id"),
    _text("route"),
    _text("kind", "text"),
    _text("model"),
    _text("provider"),
    _text("upstream_model"),
    _text("credential_id"),
    _count("prompt_tokens"),
    _count("completion_tokens"),
    _count("cached_tokens"),
    _count("cache_write_tokens"),
    _count("reasoning_tokens"),
    _count("audio_input_tokens"),
    _count("audio_output_tokens"),
    _count("image_input_tokens"),
    _count("image_output_tokens"),
    _count("images"),
    _count("video_ms"),
    _maybe("cost_microusd"),  # null: no price was known
    _text("price_version"),
    _flag("estimated"),
    _flag("streamed"),
    _text("end_reason"),
    _text("error_code"),
    _count("status"),
    _count("attempts", 1),
    _ms("started_ms"),
    _maybe("first_event_ms"),
    _ms("ended_ms"),
    _text("repairs", "{}"),
    _text("extra", "{}"),
    _flag("cache_hit"),
    Index("ix_ledger_started_ms", "started_ms"),
    Index("ix_ledger_key_id_started_ms", "key_id", "started_ms"),
)

# A durable piece of work: the truth of the API. Every write carries `generation`; a claim raises it.
jobs = Table(
    "jobs",
    metadata,
    Column("id", String(64), primary_key=True),
    _text("kind"),
    _text("state", "queued"),
    _text("owner"),
    _count("generation", 1),
    # who asked, and how
    Column("key_id", String(40), nullable=False),
    Column("group_id", String(40), nullable=False, server_default=""),
    _text("request_id"),
    _text("route"),
    _text("model"),
    _text("request", "{}"),
    Column("body_hash", String(64), nullable=False, server_default=""),
    Column("stream_id", String(64), nullable=False, server_default=""),
    _text("link_base"),
    _text("media_style"),
    _text("answer", "{}"),
    _text("on_disconnect", "continue"),
    _flag("cancel_requested"),
    # what it is bound to, from the submit on
    _text("provider"),
    _text("upstream_model"),
    _text("credential_id"),
    _text("upstream_task_id"),
    _text("binding", "{}"),
    _text("price", "{}"),
    _text("price_version"),
    Column("reservation_id", String(40), nullable=False, server_default=""),
    # how far it is
    Column("progress", Float, nullable=True),
    _text("progress_text"),
    _text("result", "[]"),
    _text("error_code"),
    _text("error_message"),
    _maybe("cost_microusd"),
    _flag("billed"),
    # who is to be told
    _text("callback_url"),
    _text("callback_state"),
    _count("callback_attempts"),
    _maybe("callback_due_ms"),
    _ms("created_ms"),
    _ms("updated_ms"),
    _maybe("submitting_ms"),
    _maybe("running_ms"),
    _maybe("storing_ms"),
    _maybe("finished_ms"),
    _maybe("deadline_ms"),
    _maybe("expires_ms"),
    Index("ix_jobs_key_id_created_ms", "key_id", "created_ms"),
    Index("ix_jobs_state_owner", "state", "owner"),
    Index("ix_jobs_provider_upstream_model_finished_ms", "provider", "upstream_model", "finished_ms"),
    Index("ix_jobs_body_hash", "body_hash"),
    Index("ix_jobs_callback_due_ms", "callback_due_ms"),
)

# An answer that can be taken up again; `generation` fences its writer as a job's does.
streams = Table(
    "streams",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("key_id", String(40), nullable=False),
    Column("job_id", String(64), nullable=False, server_default="", index=True),
    _text("route"),
    _text("model"),
    _text("state", "open"),
    _text("owner"),
    _count("generation", 1),
    _count("first_seq", 1),
    _count("last_seq"),
    _count("bytes"),
    _flag("cancel_requested"),
    _ms("created_ms"),
    _ms("updated_ms"),
    _maybe("ended_ms"),
    Column("expires_ms", BigInteger, nullable=True, index=True),
)

stream_events = Table(
    "stream_events",
    metadata,
    Column("stream_id", String(64), primary_key=True),
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("data", LargeBinary, nullable=False),
    _ms("created_ms"),
)

# `Idempotency-Key`: scope is key and route; another body under it is a conflict.
idempotency = Table(
    "idempotency",
    metadata,
    Column("key_id", String(40), primary_key=True),
    Column("route", String(128), primary_key=True),
    Column("name", String(255), primary_key=True),
    Column("body_hash", String(64), nullable=False),
    Column("job_id", String(64), nullable=False, server_default=""),
    Column("stream_id", String(64), nullable=False, server_default=""),
    _ms("created_ms"),
    Column("expires_ms", BigInteger, nullable=False, index=True),
)

# Finished pictures, films and covers. Several rows may share one blob (`storage_key`, named by the hash of its bytes).
media = Table(
    "media",
    metadata,
    Column("id", String(64), primary_key=True),
    _text("kind"),
    Column("key_id", String(40), nullable=False),
    Column("job_id", String(64), nullable=False, server_default="", index=True),
    _text("model"),
    Column("sha256", String(64), nullable=False, index=True),
    _text("storage_key"),
    _text("mime_type"),
    _count("bytes"),
    _count("width"),
    _count("height"),
    Column("duration_s", Float, nullable=True),
    Column("cover_id", String(64), nullable=False, server_default=""),
    _ms("created_ms"),
    Column("expires_ms", BigInteger, nullable=True, index=True),
    Index("ix_media_key_id_created_ms", "key_id", "created_ms"),
)

# What clients uploaded (`POST /v1/files`).
files = Table(
    "files",
    metadata,
    Column("id", String(64), primary_key=True),
    Column("key_id", String(40), nullable=False),
    _text("purpose"),
    _text("filename"),
    Column("sha256", String(64), nullable=False, index=True),
    _text("storage_key"),
    _text("mime_type"),
    _count("bytes"),
    _count("width"),
    _count("height"),
    _ms("created_ms"),
    Column("expires_ms", BigInteger, nullable=True, index=True),
    Index("ix_files_key_id_created_ms", "key_id", "created_ms"),
)

# The processes that are alive, by the database's clock. `holder` is the name and a random mark of one process's life.
leases = Table(
    "leases",
    metadata,
    Column("name", String(128), primary_key=True),
    Column("holder", String(160), nullable=False, unique=True),
    _ms("started_ms"),
    _ms("until_ms"),
    _text("info", "{}"),
)

# Named values with a version that every change raises; `keys` tells all processes to forget what they cached.
settings = Table(
    "settings",
    metadata,
    Column("name", String(128), primary_key=True),
    _text("value"),
    _count("version", 1),
    _ms("updated_ms"),
)

# Short-lived messages to every process (cancel a call, …), read by polling; kept for a minute.
signals = Table(
    "signals",
    metadata,
    Column("id", String(40), primary_key=True),
    _text("topic"),
    _text("body"),
    Column("created_ms", BigInteger, nullable=False, index=True),
)
