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

from bot.store.tables import EpochSeconds, RowId, UtcDateTime, metadata, required

# An organization's limits and blocks. Calls are numbered. `summed` is the number of the last call
# that earlier versions deleted, which could even be the newest call.
quota_organizations = Table(
    "quota_organizations",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    required("data_center", String(16)),
    required("organization_id", String(255)),
    required("summed", BigInteger, default=0),
    Column("plan", String(16)),
    Column("lowered_day", Integer),
    Column("reported_number", BigInteger),
    Column("reported_limit", Integer),
    Column("reported_remaining", Integer),
    Column("reported_unsure", Integer),
    Column("reported_resets_at", EpochSeconds),
    required("blocks", JSON, default=list),
    required("probing_until", EpochSeconds, default=0.0),
    required("muted_until", EpochSeconds, default=0.0),
    required("watched_at", EpochSeconds, default=0.0),
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
    required("reserved_at", EpochSeconds),
    required("slot_free_at", EpochSeconds),
    required("permit_until", EpochSeconds),
    required("kind", String(32)),
    required("slack_user_id", String(64)),
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
    required("organization", BigInteger),
    required("code", Integer),
    required("opened_at", UtcDateTime),
    Column("closed_at", UtcDateTime),
    required("refusals", Integer),
    required("detail", JSON),
    Index(None, "closed_at"),
    Index(None, "organization", "code"),
)

# How far the database's clock is ahead of the time since a machine started, for each start.
clocks = Table(
    "clocks",
    metadata,
    Column("boot", String(64), primary_key=True),
    required("ahead", EpochSeconds),
)
