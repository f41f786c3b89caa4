"""Statements for both databases: upserts, and deletions in batches."""

from typing import Any

from sqlalchemy import ColumnElement, Table, delete, select, tuple_
from sqlalchemy.dialects import postgresql

from bot.store.engine import Transaction

# SQLite's compiler also supports its `on_conflict_do_update` and `on_conflict_do_nothing`.
insert_into = postgresql.insert
# Small enough that other writers don't wait long.
BATCH = 2_000


async def upsert(tx: Transaction, table: Table, values: dict[str, Any]) -> None:
    """Insert a row, or replace these columns of the row with the same primary key."""
    insert = insert_into(table).values(values)
    key = list(table.primary_key)
    await tx.connection.execute(insert.on_conflict_do_update(index_elements=key, set_=values))


async def remove_some(tx: Transaction, table: Table, where: ColumnElement[bool]) -> int:
    """Remove up to `BATCH` matching rows; return how many.

    A single statement for all rows might exceed the statement timeout.
    """
    key = list(table.primary_key)
    batch = select(*key).where(where).limit(BATCH)
    removed = await tx.connection.execute(delete(table).where(tuple_(*key).in_(batch)))
    return removed.rowcount
