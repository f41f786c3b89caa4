"""Every table, in one place: what the migrations make and the queries use."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from bot.store.engine import EpochSeconds, ExactText, UtcDateTime

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows by itself only in a column of exactly this type.
RowId = BigInteger().with_variant(Integer, "sqlite")

audit_entries = Table(
    "audit_entries",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    Column("at", UtcDateTime, nullable=False),
    Column("actor", String(64), nullable=False),
    Column("action", String(64), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("detail", Text, nullable=False),
    Column("previous_hash", String(64), nullable=False),
    Column("hash", String(64), nullable=False),
    Index(None, "subject", "position"),
)

# One row: the end of the chain. Locking it puts writers in order.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)

jobs = Table(
    "jobs",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("kind", String(32), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("due_at", UtcDateTime, nullable=False),
    Column("generation", BigInteger, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("owner", String(64)),
    Column("leased_until", UtcDateTime),
    Column("last_error", Text),
    Index(None, "due_at"),
)

letters = Table(
    "letters",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("key", String(255), nullable=False),
    Column("kind", String(32), nullable=False),
    Column("subject", String(255), nullable=False),
    Column("payload", JSON, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("tries", Integer, nullable=False),
    Column("sent_at", UtcDateTime),
    Column("failure", Text),
    Index(None, "key", "sent_at"),
    Index(None, "sent_at"),
)

# Where a card stands in Slack, so that it can be edited: one row a card.
cards = Table(
    "cards",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("channel_id", String(64), nullable=False),
    Column("message_ts", String(32), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("sent_at", UtcDateTime, nullable=False),
)

listings = Table(
    "listings",
    metadata,
    Column("data_center", String(16), primary_key=True),
    Column("fetched_at", UtcDateTime, nullable=False),
    Column("organizations", JSON, nullable=False),
)

requests = Table(
    "requests",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("flow_key", String(34), nullable=False),
    Column("flow_sid", String(34), nullable=False),
    Column("flow_alias", String(255)),
    Column("requester_id", String(64), nullable=False),
    Column("requester_name", Text, nullable=False),
    Column("state", String(16), nullable=False),
    Column("version", Integer, nullable=False),
    Column("created_at", UtcDateTime, nullable=False),
    Column("expires_at", UtcDateTime, nullable=False),
    Column("decided_by_id", String(64)),
    Column("decided_by_name", Text),
    Column("decided_at", UtcDateTime),
    Column("wish", JSON, nullable=False),
    Column("progress", JSON, nullable=False),
    Index(None, "flow_key", "created_at"),
    Index(None, "state", "flow_key"),
)

# Who was added by a request, and until when: at most one row a person and flow.
grants = Table(
    "grants",
    metadata,
    Column("flow_key", String(34), primary_key=True),
    Column("identity", ExactText, primary_key=True),
    Column("flow_sid", String(34), nullable=False),
    Column("request_id", String(32), nullable=False),
    Column("granted_by", JSON, nullable=False),
    Column("approved_by", JSON, nullable=False),
    Column("granted_at", UtcDateTime, nullable=False),
    Column("ends_at", UtcDateTime),
    Index(None, "flow_key", "ends_at"),
)

# The list that is about to be sent, one row a flow: what a crash leaves half done is read here.
flow_plans = Table(
    "flow_plans",
    metadata,
    Column("flow_key", String(34), primary_key=True),
    Column("id", String(32), nullable=False),
    Column("planned_at", UtcDateTime, nullable=False),
    Column("plan", JSON, nullable=False),
)

# Every replacement of a list by the bot, with the list before and after.
flow_changes = Table(
    "flow_changes",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("flow_key", String(34), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("content", JSON, nullable=False),
    Index(None, "flow_key", "id"),
)

# An organization's limits, and what is known of its day and its blocks. Its calls are numbered;
# `summed` is the newest one that only stands in `quota_hours` any more.
quota_organizations = Table(
    "quota_organizations",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("data_center", String(16), nullable=False),
    Column("organization_id", String(255), nullable=False),
    Column("summed", BigInteger, nullable=False),
    Column("plan", String(16)),
    Column("lowered_day", Integer),
    Column("told_number", BigInteger),
    Column("told_limit", Integer),
    Column("told_remaining", Integer),
    Column("told_unsure", Integer),
    Column("told_resets_at", EpochSeconds),
    Column("blocks", JSON, nullable=False),
    Column("probing_until", EpochSeconds, nullable=False),
    Column("muted_until", EpochSeconds, nullable=False),
    Column("watched_at", EpochSeconds, nullable=False),
    UniqueConstraint("data_center", "organization_id"),
)

quota_calls = Table(
    "quota_calls",
    metadata,
    Column("organization", BigInteger, primary_key=True, autoincrement=False),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    Column("reserved_at", EpochSeconds, nullable=False),
    Column("slot_free_at", EpochSeconds, nullable=False),
    Column("permit_until", EpochSeconds, nullable=False),
    Column("kind", String(32), nullable=False),
    Column("slack_user_id", String(64), nullable=False),
    Index(None, "organization", "slot_free_at"),
    Index(None, "organization", "reserved_at", "number"),
)

quota_hours = Table(
    "quota_hours",
    metadata,
    Column("organization", BigInteger, primary_key=True, autoincrement=False),
    Column("hour_at", EpochSeconds, primary_key=True),
    Column("kind", String(32), primary_key=True),
    Column("slack_user_id", String(64), primary_key=True),
    Column("calls", Integer, nullable=False),
    Index(None, "hour_at"),
)

# A series of 429 of one code; `detail` is what was known when it opened.
incidents = Table(
    "incidents",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("organization", BigInteger, nullable=False),
    Column("code", Integer, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime),
    Column("refusals", Integer, nullable=False),
    Column("detail", JSON, nullable=False),
    Index(None, "closed_at"),
    Index(None, "organization", "code"),
)
