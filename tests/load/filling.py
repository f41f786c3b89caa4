"""A database with a past: requests that wait, and a long audit."""

import uuid

from sqlalchemy import insert, select

from bot.store import audit
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database, Transaction
from bot.store.tables import jobs, requests

CHUNK = 1_000


async def fill(database: Database, pending: int, entries: int) -> None:
    """Multiply the one request that is pending, with its jobs, and lengthen the audit."""
    async with database.transaction() as tx:
        await _multiply_requests(tx, pending)
    for begun in range(0, entries, CHUNK):
        async with database.transaction() as tx:
            for number in range(begun, min(begun + CHUNK, entries)):
                detail = {"number": number}
                entry = AuditEntry("U0LOAD0", "permission.refused", "decide", detail)
                await audit.append(tx, entry)


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
