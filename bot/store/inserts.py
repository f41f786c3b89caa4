"""Statements of both databases: inserting a row that may be there, and looking for some of many."""

from collections.abc import Collection
from typing import TYPE_CHECKING, cast

from sqlalchemy import Table
from sqlalchemy.dialects import sqlite

if TYPE_CHECKING:
    from sqlalchemy.dialects.postgresql import Insert


def insert_into(table: Table, *, is_postgres: bool) -> "Insert":
    """Return an insert that has `on_conflict_do_update` and `on_conflict_do_nothing`.

    The two dialects spell them alike. PostgreSQL's is imported where it is used: that takes a
    twentieth of the time and memory of a start.
    """
    if not is_postgres:
        return cast("Insert", sqlite.insert(table))
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)


def in_few_sizes(values: Collection[str]) -> list[str]:
    """Return the values for an `IN`, some of them again, so that there are 1, 2, 4, 8 … of them.

    A statement is prepared for each number of values that it is given.
    """
    some = sorted(values)
    size = 1 << max(len(some) - 1, 0).bit_length()
    return [*some, *some[:1] * (size - len(some))]
