"""The tables of requests, granted access, presets and changes."""

from sqlalchemy import JSON, Column, Index, Integer, String, Table, Text

from bot.store.tables import RowId, metadata, required
from bot.store.types import ExactText, UtcDateTime

requests = Table(
    "requests",
    metadata,
    Column("id", String(32), primary_key=True),
    required("flow_key", String(34)),
    required("flow_sid", String(34)),
    Column("flow_alias", String(255)),
    required("requester_id", String(64)),
    required("requester_name", Text),
    required("state", String(16)),
    required("version", Integer),
    required("created_at", UtcDateTime),
    required("expires_at", UtcDateTime),
    Column("decided_by_id", String(64)),
    Column("decided_by_name", Text),
    Column("decided_at", UtcDateTime),
    required("requested", JSON),
    required("progress", JSON),
    Index(None, "flow_key", "created_at"),
    Index(None, "state", "flow_key"),
)

# Access granted by requests, with the end date if there is one. One row per person and flow.
grants = Table(
    "grants",
    metadata,
    Column("flow_key", String(34), primary_key=True),
    Column("identity", ExactText, primary_key=True),
    required("flow_sid", String(34)),
    required("request_id", String(32)),
    required("granted_by", JSON),
    required("approved_by", JSON),
    required("granted_at", UtcDateTime),
    Column("ends_at", UtcDateTime),
    Index(None, "flow_key", "ends_at"),
    Index(None, "request_id"),
)

# Presets: named lists of people.
presets = Table(
    "presets",
    metadata,
    Column("name", String(40), primary_key=True),
    required("identities", JSON),
    required("saved_by", JSON),
    required("saved_at", UtcDateTime),
)

# Lists of test users that are about to be sent, or were sent with an unknown outcome.
flow_posts = Table(
    "flow_posts",
    metadata,
    Column("id", String(32), primary_key=True),
    required("flow_key", String(34)),
    required("sent_at", UtcDateTime),
    required("content", JSON),
    Index(None, "flow_key", "sent_at"),
)

# Each change that the bot made to a list of test users, with the list before and after.
flow_changes = Table(
    "flow_changes",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    required("flow_key", String(34)),
    required("at", UtcDateTime),
    required("content", JSON),
    Index(None, "flow_key", "id"),
)
