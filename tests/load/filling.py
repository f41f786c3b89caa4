"""A database with a past: 1,000 pending requests and 100,000 entries of the audit."""

import uuid
from datetime import timedelta
from types import SimpleNamespace

from sqlalchemy import insert, select, update

from bot.model.audit import AuditEntry
from bot.store.audit import AuditStore
from bot.store.engine import Database, Transaction
from bot.store.tables import audit_entries, audit_head, jobs, requests

CHUNK = 5_000


async def fill(database: Database, pending: int, entries: int) -> None:
    """Multiply the one request that is pending, with its jobs, and lengthen the audit."""
    async with database.transaction() as tx:
        await _multiply_requests(tx, pending)
    for begun in range(0, entries, CHUNK):
        async with database.transaction() as tx:
            await _lengthen_audit(tx, min(CHUNK, entries - begun))


async def _multiply_requests(tx: Transaction, count: int) -> None:
    """Copy the newest request, and every job that is about it, under other ids."""
    newest = select(requests).order_by(requests.c.created_at.desc()).limit(1)
    row = (await tx.connection.execute(newest)).mappings().one()
    about_it = select(jobs).where(jobs.c.subject == row["id"])
    its_jobs = (await tx.connection.execute(about_it)).mappings().all()
    ids = [uuid.uuid4().hex[: len(row["id"])] for _ in range(count)]
    await tx.connection.execute(insert(requests), [{**row, "id": new} for new in ids])
    copies = [
        {**job, "key": job["key"].replace(row["id"], new), "subject": new}
        for new in ids
        for job in its_jobs
    ]
    if copies:
        await tx.connection.execute(insert(jobs), copies)


async def _lengthen_audit(tx: Transaction, count: int) -> None:
    """Append entries as the bot does, many with one statement."""
    store, at = AuditStore(None), await tx.now()
    head = (await tx.connection.execute(select(audit_head))).one()
    recorded = []
    for number in range(count):
        entry = AuditEntry("U0LOAD0", "permission.refused", "decide", {"number": number})
        one = store._recorded(entry, head, at + timedelta(microseconds=number))
        recorded.append(vars(one))
        head = SimpleNamespace(position=one.position, hash=one.hash)
    await tx.connection.execute(insert(audit_entries), recorded)
    await tx.connection.execute(update(audit_head).values(position=head.position, hash=head.hash))
