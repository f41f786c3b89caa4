"""The tables of each organization's limits, calls and incidents."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Index,
    Integer,
    String,
    Table,
    Text,
    UniqueConstraint,
)

from bot.store.tables import RowId, metadata
from bot.store.types import EpochSeconds, UtcDateTime

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
