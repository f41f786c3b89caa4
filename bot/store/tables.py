"""Column types that behave the same on every database, and the tables that every topic uses."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sqlalchemy import (
    JSON,
    BigInteger,
    Column,
    Dialect,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
)
from sqlalchemy.types import TypeDecorator, TypeEngine

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Value = TypeVar("Value")


def to_microseconds(value: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    return (value - EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """Return the timezone-aware datetime for microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)


class _Converted(TypeDecorator[Value]):
    """A type whose values are converted to their stored form and back. NULL stays NULL."""

    stored: Callable[[Any], Any]
    loaded: Callable[[Any], Any]

    def process_bind_param(self, value: Value | None, dialect: Dialect) -> Any:  # noqa: ANN401, ARG002
        """Convert a value to its stored form."""
        return None if value is None else self.stored(value)

    def process_result_value(self, value: Any, dialect: Dialect) -> Value | None:  # noqa: ANN401, ARG002
        """Convert a stored value back."""
        return None if value is None else self.loaded(value)


class UtcDateTime(_Converted[datetime]):
    """A timezone-aware datetime, stored as whole microseconds since 1970 on every database."""

    impl = BigInteger
    cache_ok = True
    stored = staticmethod(to_microseconds)
    loaded = staticmethod(from_microseconds)


class ExactText(_Converted[str]):
    """Arbitrary text, stored as ASCII JSON because PostgreSQL can't store NUL characters."""

    impl = Text
    cache_ok = True
    stored = staticmethod(json.dumps)
    loaded = staticmethod(json.loads)


class EpochSeconds(_Converted[float]):
    """A time in seconds since 1970, for arithmetic, stored in the same form as `UtcDateTime`."""

    impl = BigInteger
    cache_ok = True

    @staticmethod
    def stored(seconds: float) -> int:
        """Convert seconds to microseconds."""
        return round(seconds * 1_000_000)

    @staticmethod
    def loaded(microseconds: int) -> float:
        """Convert microseconds to seconds."""
        return microseconds / 1_000_000


# The metadata of all tables, those of the topics too.
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
