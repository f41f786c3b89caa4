"""Deletes old calls from the ledger, and records writes that never came back."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import exists

from bot.quotas import writes
from bot.quotas.rules.use import HOUR_SECONDS
from bot.quotas.tables import quota_calls as calls
from bot.store import jobs
from bot.store.engine import Database, Transaction, remove_some
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job

TIDY_JOB = "quota_tidy"
EVERY = timedelta(hours=1)
# After this time, every call of a process that was killed has ended.
AFTER_HOLD = timedelta(seconds=20)
# Keep calls until their hour is older than this, which covers a day of 25 hours and a hold.
KEEP_CALLS_SECONDS = 26 * HOUR_SECONDS


@dataclass(frozen=True)
class Tidying:
    """Runs the `quota_tidy` job."""

    database: Database

    @property
    def kinds(self) -> dict[str, Kind]:
        """The job that deletes old calls."""
        return {TIDY_JOB: Kind(self.run, plan=self.plan)}

    async def plan(self, tx: Transaction) -> None:
        """Run the job soon, because a process that was killed may have left writes."""
        due_at = await tx.now() + AFTER_HOLD
        await jobs.put(tx, Job(TIDY_JOB, TIDY_JOB, TIDY_JOB, due_at))

    async def run(self, _job: Job, _lease: Lease) -> datetime:
        """Record writes that never came back, and delete old calls. Return the next time to run.

        Each organization's newest old call is kept.
        """
        async with self.database.read_only() as tx:
            unrecorded = await writes.unrecorded(tx)
        for organization, number in unrecorded:
            async with self.database.transaction() as tx:
                await writes.record(tx, organization, number, None)
        now = await self.database.now()
        oldest = (now.timestamp() - KEEP_CALLS_SECONDS) // HOUR_SECONDS * HOUR_SECONDS
        later = calls.alias()
        its = (later.c.organization == calls.c.organization) & (later.c.number > calls.c.number)
        is_over = (calls.c.reserved_at < oldest) & exists().where(its, later.c.reserved_at < oldest)
        removed = 1
        while removed:
            async with self.database.transaction() as tx:
                removed = await remove_some(tx, calls, is_over)
        return now + EVERY
