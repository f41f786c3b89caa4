"""The tables of requests, granted access, presets and changes."""

from sqlalchemy import JSON, Column, Index, Integer, String, Table, Text

from bot.store.tables import RowId, metadata
from bot.store.types import ExactText, UtcDateTime

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
