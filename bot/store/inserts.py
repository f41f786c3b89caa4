"""Statements for both databases: upserts, and `IN` with many values."""

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert


def insert_into(table: Table, *, is_postgres: bool) -> "Insert":
    """Return an insert that has `on_conflict_do_update` and `on_conflict_do_nothing`.

    The two dialects share these methods. PostgreSQL's is imported on use: it takes a twentieth of
    the time and memory of a start.
    """
    if not is_postgres:
        return cast("Insert", sqlite.insert(table))
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def in_few_sizes(values: Collection[str]) -> list[str]:
    """Return the values for an `IN`, ordered by repetition to 1, 2, 4, 8 … values.

    Each number of values requires its own prepared statement.
    """
    ordered = sorted(values)
    size = 1 << max(len(ordered) - 1, 0).bit_length()
    return [*ordered, *ordered[:1] * (size - len(ordered))]
