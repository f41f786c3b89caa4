"""The tables that every topic uses, and the metadata of all tables."""

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, MetaData, String, Table, Text

from bot.store.types import UtcDateTime

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
