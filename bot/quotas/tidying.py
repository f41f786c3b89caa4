"""Deletes old calls from the ledger and adjusts stored times if the clock is changed.

Reservations expire at a stored time. If the clock is set forward, they expire too soon. If it's set
back, they expire too late, and calls may be declined for up to a day.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from sqlalchemy import BigInteger, bindparam, case, select, type_coerce, update

from bot.ops.clock import Clock, SystemClock, boot_id
from bot.quotas import writes
from bot.quotas.incidents import PROBE_JOB
from bot.quotas.rules.use import HOUR_SECONDS
from bot.store import jobs
from bot.store.engine import Database, Transaction, remove_some
from bot.store.job_loop import Lease
from bot.store.jobs import Job
from bot.store.tables import jobs as job_rows
from bot.store.tables import quota_calls as calls
from bot.store.tables import quota_organizations as organizations
from bot.store.types import EpochSeconds

log = structlog.get_logger(__name__)

TIDY_JOB = "quota_tidy"
EVERY = timedelta(hours=1)
# The subject of the job at the start, when every call of an earlier process has ended.
WRITES, AFTER_HOLD = "writes", timedelta(seconds=20)
# Keep calls until their hour is older than this, which covers a day of 25 hours and a hold.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS
# Ignore smaller differences, which come from rounding or from reading two clocks.
LEAST_STEP_SECONDS = 0.01
# An organization's stored times, which are adjusted unless they are 0 or null.
MOVED = (
    *("probing_until", "muted_until", "watched_at", "reported_resets_at"),
    *("lowered_until", "lowered_minute_until"),
)


@dataclass(frozen=True)
class Tidying:
    """Runs the `quota_tidy` job. `clock` provides the time for SQLite, which has no clock."""

    database: Database
    clock: Clock

    async def plan(self, tx: Transaction) -> None:
        """Add the job, and adjust stored times if the clock was changed."""
        now = await tx.now()
        await jobs.ensure(tx, Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, now + EVERY))
        # A process that was killed a moment ago may have left writes without an entry.
        await jobs.put(tx, Job(f"{TIDY_JOB}:{WRITES}", TIDY_JOB, WRITES, now + AFTER_HOLD))
        boot = boot_id()
        if self.database.is_sqlite and boot and isinstance(self.clock, SystemClock):
            step = await follow(tx, boot, self.clock.offset)
            if step:
                log.warning("quota.clock_was_set", seconds=round(step, 3))

    async def run(self, job: Job, _lease: Lease) -> datetime | None:
        """Record writes that never came back, and delete old calls. Return the next time to run.

        Each organization's newest call is kept.
        """
        await self._record_writes()
        if job.subject == WRITES:
            return None
        now = await self.database.now()
        oldest = (now.timestamp() - KEEP_CALLS_SECONDS) // HOUR_SECONDS * HOUR_SECONDS
        older = calls.alias()
        its = select(older.c.number).where(older.c.organization == calls.c.organization)
        newest = its.where(older.c.reserved_at < oldest).limit(1)
        newest = newest.order_by(older.c.reserved_at.desc(), older.c.number.desc())
        is_over = (calls.c.reserved_at < oldest) & (calls.c.number < newest.scalar_subquery())
        removed = 1
        while removed:
            async with self.database.transaction() as tx:
                removed = await remove_some(tx, calls, is_over)
        return now + EVERY

    async def _record_writes(self) -> None:
        while True:
            async with self.database.read_only() as tx:
                unrecorded = await writes.unrecorded(tx)
            if not unrecorded:
                return
            for organization, number in unrecorded:
                async with self.database.transaction() as tx:
                    await writes.record(tx, organization, number, None)


async def follow(tx: Transaction, boot: str, offset: float) -> float:
    """Adjust stored times if the clock was changed since the previous process started.

    `offset` is the clock's time minus the time since the machine started, and `boot` identifies
    the current boot. Return the detected clock change in seconds, or 0 if there is none.
    """
    last = await jobs.payload_of(tx, TIDY_JOB)
    step = offset - last["offset"] if last.get("boot") == boot else 0.0
    if abs(step) < LEAST_STEP_SECONDS:
        step = 0.0
    await move(tx, boot, offset, step)
    return step


async def move(tx: Transaction, boot: str, offset: float, step: float) -> None:
    """Move stored times by `step` seconds, the amount by which the clock was changed.

    Reservations, blocks, probes, and leases then have as much time left as before.
    """
    recorded = update(job_rows).where(job_rows.c.key == TIDY_JOB)
    await tx.connection.execute(recorded.values(payload={"boot": boot, "offset": offset}))
    if not step:
        return
    by = bindparam("step", step, type_=EpochSeconds)
    held = (calls.c.slot_free_at, calls.c.permit_until)
    # Calls that were never sent hold no slot and keep the value `UNSENT`.
    moved: dict[Any, Any] = {
        column: case((calls.c.slot_free_at > 0.0, column + by), else_=column) for column in held
    }
    moved[calls.c.reserved_at] = calls.c.reserved_at + by
    await tx.connection.execute(update(calls).values(moved))
    for column in (organizations.c[name] for name in MOVED):
        after = update(organizations).where(column > 0.0).values({column: column + by})
        await tx.connection.execute(after)
    query = select(organizations.c.id, organizations.c.blocks)
    for row in (row for row in (await tx.connection.execute(query)).all() if row.blocks):
        blocks = [
            {**block, "since": block["since"] + step, "until": block["until"] + step}
            for block in row.blocks
        ]
        its = update(organizations).where(organizations.c.id == row.id)
        await tx.connection.execute(its.values(blocks=blocks))
    microseconds = round(step * 1_000_000)
    for column, which in (
        (job_rows.c.leased_until, job_rows.c.leased_until.is_not(None)),
        (job_rows.c.due_at, job_rows.c.kind == PROBE_JOB),
    ):
        later = type_coerce(column, BigInteger) + microseconds
        await tx.connection.execute(update(job_rows).where(which).values({column: later}))
