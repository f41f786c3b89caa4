"""Columns that hold the same on every database: times, any text, and JSON."""

import json
from datetime import UTC, datetime, timedelta

from pydantic_core import PydanticSerializationError, to_json
from sqlalchemy import BigInteger, Dialect, Text
from sqlalchemy.types import TypeDecorator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def to_microseconds(value: datetime) -> int:
    """Return whole microseconds since 1970."""
    return (value - EPOCH) // timedelta(microseconds=1)


def from_microseconds(value: int) -> datetime:
    """Return the aware time so many microseconds after 1970."""
    return EPOCH + timedelta(microseconds=value)


class Unreadable(str):
    """What stands in a column and is not of its form: not the bot has written it."""

    __slots__ = ()


class UtcDateTime(TypeDecorator[datetime]):
    """An aware time, stored as whole microseconds since 1970: exact and alike on every database."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Python to database."""
        return None if value is None else to_microseconds(value)

    def process_result_value(
        self,
        value: int | None,
        dialect: Dialect,  # noqa: ARG002
    ) -> datetime | None:
        """Database to Python."""
        try:
            return None if value is None else from_microseconds(value)
        except (TypeError, OverflowError):
            return Unreadable(value)  # type: ignore[return-value]


class ExactText(TypeDecorator[str]):
    """Any text, stored as its JSON in ASCII: PostgreSQL has no place for the character zero."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Python to database."""
        return None if value is None else json.dumps(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> str | None:  # noqa: ARG002
        """Database to Python."""
        if value is None:
            return None
        text = read_json(value)
        return text if isinstance(text, str) else Unreadable(value)


class EpochSeconds(TypeDecorator[float]):
    """Seconds since 1970 for arithmetic, stored as `UtcDateTime` stores them."""

    impl = BigInteger
    cache_ok = True

    def process_bind_param(self, value: float | None, dialect: Dialect) -> int | None:  # noqa: ARG002
        """Python to database."""
        return None if value is None else round(value * 1_000_000)

    def process_result_value(self, value: int | None, dialect: Dialect) -> float | None:  # noqa: ARG002
        """Database to Python."""
        return None if value is None else value / 1_000_000


class JsonText(str):
    """JSON that is written already, for a column of JSON."""

    __slots__ = ()


def read_json(text: str) -> object:
    """Return what a column of JSON holds; as it stands where it is none."""
    try:
        return json.loads(text)
    except (ValueError, TypeError):
        return Unreadable(text)


def json_text(value: object) -> str:
    """Return JSON in a quarter of the time of `json.dumps`."""
    if isinstance(value, JsonText):
        return value
    try:
        return to_json(value).decode()
    except PydanticSerializationError:
        # Half of a surrogate pair has an escape, and no bytes.
        return json.dumps(value)
