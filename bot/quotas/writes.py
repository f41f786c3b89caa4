"""Records each write through the gateway in the audit log exactly once.

The call's row in the ledger holds the write until its entry is written in the same transaction. If
the process dies between the call and the entry, the `quota_tidy` job writes the entry.
"""

from sqlalchemy import select, update

from bot.organizations.rules import OrganizationKey
from bot.quotas.tables import quota_calls as calls
from bot.quotas.tables import quota_organizations as organizations
from bot.services.calls import client_named
from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction

ACTION = "gateway.write"


async def record(tx: Transaction, organization: int, number: int, status: int | None) -> None:
    """Write the entry of a call that is a write, unless that was done before.

    `status` is the HTTP status of the answer, or None if the outcome is unknown.
    """
    its = (calls.c.organization == organization) & (calls.c.number == number)
    query = (
        select(
            calls.c.slack_user_id,
            calls.c.written,
            organizations.c.data_center,
            organizations.c.organization_id,
        )
        .join(organizations, organizations.c.id == calls.c.organization)
        .where(its)
    )
    row = (await tx.connection.execute(query)).first()
    if row is None:
        return
    unwritten = update(calls).where(its, calls.c.written.is_not(None))
    taken = await tx.connection.execute(unwritten.values(written=None))
    if taken.rowcount != 1:
        return
    key = OrganizationKey(row.data_center, row.organization_id)
    detail = {
        **row.written,
        "client": client_named(row.slack_user_id),
        "organization": str(key),
        "status": status,
    }
    await audit.append(tx, AuditEntry(row.slack_user_id, ACTION, str(key), detail))


async def unrecorded(tx: Transaction) -> list[tuple[int, int]]:
    """Return the organization and number of the writes that never came back, oldest first."""
    query = (
        select(calls.c.organization, calls.c.number)
        .where(calls.c.written.is_not(None), calls.c.permit_until <= tx.clock)
        .order_by(calls.c.reserved_at)
    )
    rows = await tx.connection.execute(query, tx.clock_parameters)
    return [(row.organization, row.number) for row in rows]
