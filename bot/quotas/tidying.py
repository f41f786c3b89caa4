"""Deletes old calls once an hour, in the process that runs the job first."""

from datetime import datetime, timedelta

import structlog

from bot.ops.clock import Clock, SystemClock, boot_id
from bot.quotas.store import accounts, quota_clock, quota_use
from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job

log = structlog.get_logger(__name__)

TIDY_KIND = quota_clock.TIDY_JOB
EVERY = timedelta(hours=1)


class Tidying:
    """Runs the `quota_tidy` job.

    Args:
        database: The ledger.
        clock: The ledger's clock if the database doesn't have its own.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    async def plan(self, tx: Transaction) -> None:
        """Add the job, and adjust the ledger to this process's clock."""
        await jobs.ensure(tx, Job(TIDY_KIND, TIDY_KIND, TIDY_KIND, await tx.now() + EVERY))
        boot = boot_id()
        if self._database.is_sqlite and boot and isinstance(self._clock, SystemClock):
            step = await quota_clock.follow(tx, boot, self._clock.offset)
            if step:
                log.warning("quota.clock_was_set", seconds=round(step, 3))

    async def run(self, _job: Job, _lease: Lease) -> datetime:
        """Delete old calls, one organization per transaction; return the time of the next run."""
        async with self._database.read_only() as tx:
            keys, now = await quota_use.keys_to_tidy(tx), await tx.now()
        for key in keys:
            async with self._database.transaction() as tx:
                await quota_use.tidy(tx, await accounts.lock(tx, key))
        return now + EVERY
