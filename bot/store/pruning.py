"""Removing what is old in steps: a statement that removed all of it might run into its limit."""

from typing import TYPE_CHECKING

from sqlalchemy import ColumnElement, Table, delete, select, tuple_

if TYPE_CHECKING:
    from bot.store.engine import Transaction

# So few that no other writer waits for long.
BATCH = 2_000


async def remove_some(tx: "Transaction", table: Table, where: ColumnElement[bool]) -> int:
    """Remove up to `BATCH` rows of which something is true; return how many that were."""
    key = list(table.primary_key)
    some = select(*key).where(where).limit(BATCH)
    removed = await tx.connection.execute(delete(table).where(tuple_(*key).in_(some)))
    return removed.rowcount
