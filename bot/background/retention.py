"""Retention: what is old is forgotten, once a day, by whichever process comes first."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta

import structlog

from bot.background.jobs import Lease
from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.jobs import Job

log = structlog.get_logger(__name__)

RETAIN_KIND = "retain"
EVERY = timedelta(days=1)

Prune = Callable[[Transaction, datetime], Awaitable[int]]


class Retention:
    """Runs the job `retain`.

    Args:
        database: Where things are kept.
        days: `RETAIN_DAYS`.
        prunes: Each removes some of what is older than a time, and returns how many rows that was.
    """

    def __init__(self, database: Database, days: float, prunes: Sequence[Prune]) -> None:
        self._database = database
        self._kept = timedelta(days=days)
        self._prunes = prunes

    async def plan(self, tx: Transaction) -> None:
        """See that there is such a job."""
        await jobs.ensure(tx, Job(RETAIN_KIND, RETAIN_KIND, RETAIN_KIND, await tx.now()))

    async def run(self, _job: Job, _lease: Lease) -> datetime:
        """Forget what is old, in many small transactions. Return when to do it again."""
        for prune in self._prunes:
            removed = await self._prune_all(prune)
            if removed:
                log.info("retention.removed", what=prune.__module__, rows=removed)
        async with self._database.read_only() as tx:
            return await tx.now() + EVERY

    async def _prune_all(self, prune: Prune) -> int:
        """Forget some until nothing is left; nobody else who writes waits for all of it."""
        total = 0
        while True:
            async with self._database.transaction() as tx:
                removed = await prune(tx, await tx.now() - self._kept)
            total += removed
            if not removed:
                return total
