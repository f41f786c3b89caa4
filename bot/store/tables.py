"""The database tables, for queries and migrations."""

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

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)

# SQLite numbers rows automatically only in a column of exactly this type.
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

# A single row with the end of the chain. Writers take turns by locking the row.
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

outbox_messages = Table(
    "outbox_messages",
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
    Index(None, "subject"),
)

# Each card's location in Slack, which is needed to edit the card, and the version it shows there.
cards = Table(
    "cards",
    metadata,
    Column("key", String(255), primary_key=True),
    Column("channel_id", String(64), nullable=False),
    Column("message_ts", String(32), nullable=False),
    Column("version", BigInteger, nullable=False),
    Column("sent_at", UtcDateTime, nullable=False),
)

# The people who opened the Home tab, and a digest of the content that it's known to show.
home_views = Table(
    "home_views",
    metadata,
    Column("slack_user_id", String(64), primary_key=True),
    Column("opened_at", UtcDateTime, nullable=False),
    Column("published_at", UtcDateTime),
    Column("digest", String(64), nullable=False),
    Index(None, "opened_at"),
)

# Deliveries from Slack, recorded so that each is handled only once, even if Slack repeats it.
received_events = Table(
    "received_events",
    metadata,
    Column("event_id", String(255), primary_key=True),
    Column("received_at", UtcDateTime, nullable=False),
    Column("answered_at", UtcDateTime),
    Index(None, "received_at"),
)

listings = Table(
    "listings",
    metadata,
    Column("data_center", String(16), primary_key=True),
    Column("fetched_at", UtcDateTime, nullable=False),
    Column("organizations", JSON, nullable=False),
    Column("digest", String(64), nullable=False, server_default=""),
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
    Column("requested", JSON, nullable=False),
    Column("progress", JSON, nullable=False),
    Index(None, "flow_key", "created_at"),
    Index(None, "state", "flow_key"),
)

# Access granted by requests, with the end date if there is one. One row per person and flow.
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
    Index(None, "request_id"),
)

# Presets: named lists of people.
presets = Table(
    "presets",
    metadata,
    Column("name", String(40), primary_key=True),
    Column("identities", JSON, nullable=False),
    Column("saved_by", JSON, nullable=False),
    Column("saved_at", UtcDateTime, nullable=False),
)

# Lists of test users that are about to be sent, or were sent with an unknown outcome.
flow_posts = Table(
    "flow_posts",
    metadata,
    Column("id", String(32), primary_key=True),
    Column("flow_key", String(34), nullable=False),
    Column("sent_at", UtcDateTime, nullable=False),
    Column("content", JSON, nullable=False),
    Index(None, "flow_key", "sent_at"),
)

# Each change that the bot made to a list of test users, with the list before and after.
flow_changes = Table(
    "flow_changes",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("flow_key", String(34), nullable=False),
    Column("at", UtcDateTime, nullable=False),
    Column("content", JSON, nullable=False),
    Index(None, "flow_key", "id"),
)

# An organization's limits and blocks. Calls are numbered. `summed` is the number of the last call
# that earlier versions deleted, which could even be the newest call.
quota_organizations = Table(
    "quota_organizations",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    Column("data_center", String(16), nullable=False),
    Column("organization_id", String(255), nullable=False),
    Column("summed", BigInteger, nullable=False, default=0),
    Column("plan", String(16)),
    Column("lowered_day", Integer),
    Column("reported_number", BigInteger),
    Column("reported_limit", Integer),
    Column("reported_remaining", Integer),
    Column("reported_unsure", Integer),
    Column("reported_resets_at", EpochSeconds),
    Column("blocks", JSON, nullable=False, default=list),
    Column("probing_until", EpochSeconds, nullable=False, default=0.0),
    Column("muted_until", EpochSeconds, nullable=False, default=0.0),
    Column("watched_at", EpochSeconds, nullable=False, default=0.0),
    Column("muted_by", Text),
    Column("lowered_concurrent", Integer),
    Column("lowered_until", EpochSeconds),
    Column("lowered_minute", Integer),
    Column("lowered_minute_until", EpochSeconds),
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
    # A write through the gateway, until the audit log has its entry.
    Column("written", JSON(none_as_null=True)),
    Index(None, "organization", "slot_free_at"),
    Index(None, "organization", "reserved_at", "number"),
)

# A series of 429 responses with the same code. `detail` is the state when the incident opened.
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
