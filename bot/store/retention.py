"""The daily job, which deletes old data and then runs other daily tasks."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job

RETAIN_KIND = "retain"
EVERY = timedelta(days=1)

Prune = Callable[[Transaction, datetime], Awaitable[int]]
Daily = Callable[[Transaction], Awaitable[None]]


@dataclass(frozen=True)
class Retention:
    """Runs the `retain` job.

    Each function in `prunes` deletes a batch of rows and returns the number deleted.
    """

    database: Database
    days: float
    prunes: Sequence[Prune]
    daily: Sequence[Daily] = ()

    @property
    def kinds(self) -> dict[str, Kind]:
        """The daily job."""
        return {RETAIN_KIND: Kind(self.run, plan=self.plan)}

    async def plan(self, tx: Transaction) -> None:
        """Schedule the job to run in a day, unless it's already scheduled."""
        await jobs.ensure(tx, Job(RETAIN_KIND, RETAIN_KIND, RETAIN_KIND, await tx.now() + EVERY))

    async def run(self, _job: Job, _lease: Lease) -> datetime:
        """Delete old data in batches, run the daily tasks, and return the time of the next run."""
        for prune in self.prunes:
            removed = 1
            while removed:
                async with self.database.transaction() as tx:
                    removed = await prune(tx, await tx.now() - timedelta(days=self.days))
        async with self.database.transaction() as tx:
            for work in self.daily:
                await work(tx)
            return await tx.now() + EVERY
