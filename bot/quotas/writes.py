"""Records each write through the gateway in the audit log exactly once.

The call's row in the ledger holds the write until its entry is written in the same transaction. If
the process dies between the call and the entry, the `quota_tidy` job writes the entry.
"""

from collections.abc import Sequence

from sqlalchemy import select, update

from bot.quotas.tables import quota_calls as calls
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction

ACTION = "gateway.write"
_IS_UNRECORDED = calls.c.written.is_not(None)


async def record(tx: Transaction, organization: int, number: int, status: int | None) -> None:
    """Write the entry of a call that is a write, unless that was done before.

    `status` is the HTTP status of the answer, or None if the outcome is unknown.
    """
    its = _IS_UNRECORDED & (calls.c.organization == organization) & (calls.c.number == number)
    row = (await tx.connection.execute(select(calls).where(its).with_for_update())).first()
    if row is None:
        return
    await tx.write(update(calls).where(its).values(written=None))
    detail = {**row.written, "status": status}
    await audit.append(tx, AuditEntry(row.slack_user_id, ACTION, detail["organization"], detail))


async def unrecorded(tx: Transaction) -> Sequence[tuple[int, int]]:
    """Return the organization and number of the writes that never came back, oldest first."""
    query = (
        select(calls.c.organization, calls.c.number)
        .where(_IS_UNRECORDED, calls.c.permit_until <= tx.clock)
        .order_by(calls.c.reserved_at)
    )
    return (await tx.connection.execute(query, tx.clock_parameters)).all()
