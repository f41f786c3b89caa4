"""The tables that every topic uses, and the metadata of all tables."""

from typing import Any

from sqlalchemy import JSON, BigInteger, Column, Index, Integer, MetaData, String, Table, Text
from sqlalchemy.types import TypeEngine

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


def required(
    name: str,
    kind: TypeEngine[Any] | type[TypeEngine[Any]],
    **options: Any,  # noqa: ANN401 - those of Column
) -> Column[Any]:
    """Return a column that always has a value."""
    return Column(name, kind, nullable=False, **options)


audit_entries = Table(
    "audit_entries",
    metadata,
    Column("position", BigInteger, primary_key=True, autoincrement=False),
    required("at", UtcDateTime),
    required("actor", String(64)),
    required("action", String(64)),
    required("subject", String(255)),
    required("detail", Text),
    required("previous_hash", String(64)),
    required("hash", String(64)),
    Index(None, "subject", "position"),
)

# A single row with the end of the chain. Writers take turns by locking the row.
audit_head = Table(
    "audit_head",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    required("position", BigInteger),
    required("hash", String(64)),
)

jobs = Table(
    "jobs",
    metadata,
    Column("key", String(255), primary_key=True),
    required("kind", String(32)),
    required("subject", String(255)),
    required("payload", JSON),
    required("due_at", UtcDateTime),
    required("generation", BigInteger),
    required("tries", Integer),
    Column("owner", String(64)),
    Column("leased_until", UtcDateTime),
    Index(None, "due_at"),
)

outbox_messages = Table(
    "outbox_messages",
    metadata,
    Column("id", RowId, primary_key=True, autoincrement=True),
    required("key", String(255)),
    required("kind", String(32)),
    required("subject", String(255)),
    required("payload", JSON),
    required("created_at", UtcDateTime),
    Column("sent_at", UtcDateTime),
    Column("failure", Text),
    Index(None, "key", "sent_at"),
    Index(None, "sent_at"),
    Index(None, "subject"),
)

# Each card's location in Slack, which is needed to edit the card, and what it shows there.
cards = Table(
    "cards",
    metadata,
    Column("key", String(255), primary_key=True),
    required("channel_id", String(64)),
    required("message_ts", String(32)),
    required("version", BigInteger),
    required("sent_at", UtcDateTime),
    required("digest", String(64)),
    Index(None, "sent_at"),
)
