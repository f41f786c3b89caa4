"""Deletes old calls from the ledger, and records writes in the audit log exactly once.

The row of a call that is a write through the gateway holds what the audit log says about it, until
its entry is written in the same transaction. If the process dies between the call and the entry,
the `quota_tidy` job writes the entry.
"""

from datetime import datetime, timedelta

from sqlalchemy import exists, select, update

from bot.quotas.rules.quota import HOUR_SECONDS
from bot.quotas.tables import quota_calls as calls
from bot.store import audit, jobs
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Transaction, remove_some
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job

TIDY_JOB = "quota_tidy"
EVERY = timedelta(hours=1)
# After this time, every call of a process that was killed has ended.
AFTER_HOLD = timedelta(seconds=20)
# Keep calls until their hour is older than this, which covers a day of 25 hours and a hold.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS
_IS_UNRECORDED = calls.c.written.is_not(None)


async def record_write(tx: Transaction, organization: int, number: int, status: int | None) -> None:
    """Write the entry of a call that is a write, unless that was done before.

    `status` is the HTTP status of the answer, or None if the outcome is unknown.
    """
    its = _IS_UNRECORDED & (calls.c.organization == organization) & (calls.c.number == number)
    row = (await tx.connection.execute(select(calls).where(its).with_for_update())).first()
    if row is None:
        return
    await tx.write(update(calls).where(its).values(written=None))
    key, detail = row.written["organization"], {**row.written, "status": status}
    await audit.append(tx, AuditEntry(row.slack_user_id, "gateway.write", key, detail))


async def plan(tx: Transaction) -> None:
    """Run the job soon, because a process that was killed may have left writes."""
    due_at = await tx.now() + AFTER_HOLD
    await jobs.put(tx, Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, due_at))


async def run(_job: Job, lease: Lease) -> datetime:
    """Record writes that never came back, and delete old calls. Return the next time to run.

    Each organization's newest old call is kept.
    """
    database = lease.database
    now = await database.now()
    never_came_back = _IS_UNRECORDED & (calls.c.permit_until <= now.timestamp())
    query = select(calls.c.organization, calls.c.number).where(never_came_back)
    async with database.read_only() as tx:
        rows = await tx.connection.execute(query.order_by(calls.c.reserved_at))
        unrecorded = rows.all()
    for organization, number in unrecorded:
        async with database.transaction() as tx:
            await record_write(tx, organization, number, None)
    oldest = (now.timestamp() - KEEP_CALLS_SECONDS) // HOUR_SECONDS * HOUR_SECONDS
    later = calls.alias()
    its = (later.c.organization == calls.c.organization) & (later.c.number > calls.c.number)
    is_over = (calls.c.reserved_at < oldest) & exists().where(its, later.c.reserved_at < oldest)
    removed = 1
    while removed:
        async with database.transaction() as tx:
            removed = await remove_some(tx, calls, is_over)
    return now + EVERY


KINDS = {TIDY_JOB: Kind(run, plan=plan)}
