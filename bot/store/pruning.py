"""Removing old rows in steps: a single statement might exceed its time limit."""

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Table, delete, select, tuple_

if TYPE_CHECKING:
    from bot.store.engine import Transaction

# Few enough that other writers don't wait for long.
BATCH = 2_000


async def remove_some(tx: "Transaction", table: Table, where: ColumnElement[bool]) -> int:
    """Remove up to `BATCH` matching rows; return how many."""
    key = list(table.primary_key)
    batch = select(*key).where(where).limit(BATCH)
    removed = await tx.connection.execute(delete(table).where(tuple_(*key).in_(batch)))
    return removed.rowcount
