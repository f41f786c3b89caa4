"""The schema of version 0.2.0, to which databases from earlier versions must be upgraded first."""

from alembic import op
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

from bot.store.types import EpochSeconds, ExactText, UtcDateTime

revision = "0015"
down_revision = None
branch_labels = None
depends_on = None

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

ROW_ID = BigInteger().with_variant(Integer, "sqlite")

Table(
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

Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("position", BigInteger, nullable=False),
    Column("hash", String(64), nullable=False),
)

Table(
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
    Column("signature", String(64)),
    Index(None, "due_at"),
)

Table(
    "outbox_messages",
    metadata,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
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
    Index(None, "subject"),
)

Table(
    "cards",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("channel_id", String(64), nullable=False),
    Column("message_ts", String(32), nullable=False),
    Column("fingerprint", String(64), nullable=False),
    Column("sent_at", UtcDateTime, nullable=False),
)

Table(
    "home_views",
    metadata,
    Column("slack_user_id", String(64), primary_key=True),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("published_at", UtcDateTime),
    Column("hash", String(255)),
    Column("fingerprint", String(64), nullable=False),
    Column("unsure_until", UtcDateTime),
    Index(None, "opened_at"),
)

Table(
    "received_events",
    metadata,
    Column("event_id", String(255), primary_key=True),
    Column("received_at", UtcDateTime, nullable=False),
    Column("answered_at", UtcDateTime),
    Index(None, "received_at"),
)

Table(
    "listings",
    metadata,
    Column("data_center", String(16), primary_key=True),
    Column("fetched_at", UtcDateTime, nullable=False),
    Column("organizations", JSON, nullable=False),
    Column("digest", String(64), nullable=False, server_default=""),
)

Table(
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
    Column("requested", JSON, nullable=False),
    Column("progress", JSON, nullable=False),
    Column("signature", String(64)),
    Index(None, "flow_key", "created_at"),
    Index(None, "state", "flow_key"),
)

Table(
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
    Column("signature", String(64)),
    Index(None, "flow_key", "ends_at"),
    Index(None, "request_id"),
)

Table(
    "presets",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("identities", JSON, nullable=False),
    Column("saved_by", JSON, nullable=False),
    Column("saved_at", UtcDateTime, nullable=False),
)

Table(
    "flow_posts",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("flow_key", String(34), nullable=False),
    Column("sent_at", UtcDateTime, nullable=False),
    Column("content", JSON, nullable=False),
    Column("signature", String(64)),
    Index(None, "flow_key", "sent_at"),
)

Table(
    "flow_changes",
    metadata,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("flow_key", String(34), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("content", JSON, nullable=False),
    Index(None, "flow_key", "id"),
)

Table(
    "quota_organizations",
    metadata,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("data_center", String(16), nullable=False),
    Column("organization_id", String(255), nullable=False),
    Column("summed", BigInteger, nullable=False),
    Column("plan", String(16)),
    Column("lowered_day", Integer),
    Column("reported_number", BigInteger),
    Column("reported_limit", Integer),
    Column("reported_remaining", Integer),
    Column("reported_unsure", Integer),
    Column("reported_resets_at", EpochSeconds),
    Column("blocks", JSON, nullable=False),
    Column("probing_until", EpochSeconds, nullable=False),
    Column("muted_until", EpochSeconds, nullable=False),
    Column("watched_at", EpochSeconds, nullable=False),
    Column("muted_by", Text),
    Column("lowered_concurrent", Integer),
    Column("lowered_until", EpochSeconds),
    UniqueConstraint("data_center", "organization_id"),
)

Table(
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

Table(
    "machine_clocks",
    metadata,
    Column("boot", String(64), primary_key=True),
    Column("offset", EpochSeconds, nullable=False),
)

Table(
    "quota_hours",
    metadata,
    Column("organization", BigInteger, primary_key=True, autoincrement=False),
    Column("hour_at", EpochSeconds, primary_key=True),
    Column("kind", String(32), primary_key=True),
    Column("slack_user_id", String(64), primary_key=True),
    Column("calls", Integer, nullable=False),
    Index(None, "hour_at"),
)

Table(
    "gateway_waits",
    metadata,
    Column("ticket", ROW_ID, primary_key=True, autoincrement=True),
    Column("organization", BigInteger, nullable=False),
    Column("client", String(40), nullable=False),
    Column("until", EpochSeconds, nullable=False),
    Index(None, "organization", "until"),
)

Table(
    "incidents",
    metadata,
    Column("id", ROW_ID, primary_key=True, autoincrement=True),
    Column("organization", BigInteger, nullable=False),
    Column("code", Integer, nullable=False),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("closed_at", UtcDateTime),
    Column("refusals", Integer, nullable=False),
    Column("detail", JSON, nullable=False),
    Index(None, "closed_at"),
    Index(None, "organization", "code"),
)


def upgrade() -> None:
    metadata.create_all(op.get_bind())
    head = metadata.tables["audit_head"]
    op.bulk_insert(head, [{"id": 1, "position": 0, "hash": "0" * 64}])
