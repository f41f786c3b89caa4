"""Column types that behave the same on every database, for times and arbitrary text."""

import json
from datetime import UTC, datetime, timedelta

from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(value: datetime) -> int:
    """Return a time as whole microseconds since 1970."""
    return (value - EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """Return the timezone-aware datetime for microseconds since 1970."""
    return EPOCH + timedelta(microseconds=value)


class UtcDateTime(TypeDecorator[datetime]):
    """A timezone-aware datetime, stored as whole microseconds since 1970 on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Convert a datetime to microseconds since 1970."""
        return None if value is None else to_microseconds(value)

    def process_result_value(
        self,
        value: int | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Convert microseconds since 1970 to a datetime."""
        return None if value is None else from_microseconds(value)


class ExactText(TypeDecorator[str]):
    """Arbitrary text, stored as ASCII JSON because PostgreSQL can't store NUL characters."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Encode the text as JSON."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Decode the text from JSON."""
        return None if value is None else json.loads(value)


class EpochSeconds(TypeDecorator[float]):
    """A time in seconds since 1970, for arithmetic, stored in the same form as `UtcDateTime`."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Convert seconds to microseconds."""
        return None if value is None else round(value * 1_000_000)

    def process_result_value(self, value: int | None, dialect: Dialect) -> float | None:  # noqa: ARG002
        """Convert microseconds to seconds."""
        return None if value is None else value / 1_000_000
