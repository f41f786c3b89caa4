"""Sums old calls into their hours, every hour, by whichever process comes first."""

from datetime import datetime, timedelta

from bot.store import accounts, jobs, quota_use
from bot.store.engine import Database, Transaction
from bot.store.jobs import Job
from bot.workflows.jobs import Lease

TIDY_KIND = "quota_tidy"
EVERY = timedelta(hours=1)


class Tidying:
    """Runs the job `quota_tidy`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def plan(self, tx: Transaction) -> None:
        """See that there is such a job."""
        await jobs.ensure(tx, Job(TIDY_KIND, TIDY_KIND, TIDY_KIND, await tx.now() + EVERY))

    async def run(self, _job: Job, _lease: Lease) -> datetime:
        """Sum, an organization a transaction, so that nobody waits long; return when again."""
        async with self._database.reading() as tx:
            keys, now = await quota_use.keys_to_tidy(tx), await tx.now()
        for key in keys:
            async with self._database.transaction() as tx:
                await quota_use.tidy(tx, await accounts.lock(tx, key))
        return now + EVERY
