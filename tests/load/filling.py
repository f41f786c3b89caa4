"""A database with a past: requests that wait, a long audit, and many organizations' calls."""

import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta
from types import SimpleNamespace

from sqlalchemy import insert, select, update

from bot.organizations.rules import OrganizationKey
from bot.store.audit import AuditStore
from bot.store.audit_entry import AuditEntry
from bot.store.engine import Database, Transaction
from bot.store.tables import (
    audit_entries,
    audit_head,
    jobs,
    quota_calls,
    quota_organizations,
    requests,
)

CHUNK = 5_000
LEDGER_CHUNK = 1_000
CALLS_EACH = 10


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
    store, at = AuditStore(), await tx.now()
    head = (await tx.connection.execute(select(audit_head))).one()
    recorded = []
    for number in range(count):
        entry = AuditEntry("U0LOAD0", "permission.refused", "decide", {"number": number})
        one = store._recorded(entry, head, at + timedelta(microseconds=number))
        recorded.append(vars(one))
        head = SimpleNamespace(position=one.position, hash=one.hash)
    await tx.connection.execute(insert(audit_entries), recorded)
    await tx.connection.execute(update(audit_head).values(position=head.position, hash=head.hash))


async def fill_ledger(database: Database, organizations: Sequence[OrganizationKey]) -> None:
    """Give each organization calls of the last day, as a day of the watcher and people does."""
    for begun in range(0, len(organizations), LEDGER_CHUNK):
        async with database.transaction() as tx:
            await _add_calls(tx, organizations[begun : begun + LEDGER_CHUNK])


async def _add_calls(tx: Transaction, keys: Sequence[OrganizationKey]) -> None:
    now = (await tx.now()).timestamp()
    usual = {
        "summed": 0,
        "blocks": [],
        "probing_until": 0.0,
        "muted_until": 0.0,
        "watched_at": now - 60,
    }
    rows = [{**usual, **asdict(key)} for key in keys]
    await tx.connection.execute(insert(quota_organizations), rows)
    newest = select(quota_organizations.c.id).order_by(quota_organizations.c.id.desc())
    ids = (await tx.connection.execute(newest.limit(len(keys)))).scalars()
    calls = [_call(its_id, number, now) for its_id in ids for number in range(1, CALLS_EACH + 1)]
    await tx.connection.execute(insert(quota_calls), calls)


def _call(organization: int, number: int, now: float) -> dict[str, object]:
    """One of the last 20 hours, over long ago but for the newest of some."""
    at = now - 20 * 3600.0 * (1 - number / (CALLS_EACH + 1 + organization % 2))
    return {
        "organization": organization,
        "number": number,
        "reserved_at": at,
        "slot_free_at": at + 61,
        "permit_until": at + 1,
        "kind": "watch",
        "slack_user_id": "",
    }
