"""The one job loop: whatever is to be done later, again, or by whoever lives."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import structlog

from bot.clock import Clock
from bot.errors import DatabaseUnavailable, GatehouseError
from bot.store import jobs
from bot.store.jobs import Job

if TYPE_CHECKING:
    from bot.store.engine import Database

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
RENEW_SECONDS = 5.0
AT_ONCE = 32
LONGEST_PAUSE_SECONDS = 20.0


class LeaseLost(GatehouseError):
    """Another process has taken the job: stop, and change nothing."""

    outcome = "lease_lost"


@dataclass(frozen=True)
class Lease:
    """The right to do a job, while it lasts."""

    database: "Database"
    owner: str
    job: Job

    async def confirm(self) -> None:
        """Lengthen the lease to its full time, just before something that must happen once.

        Raises:
            LeaseLost: It has lapsed, and maybe another process has it.
            DatabaseUnavailable: Nobody knows.
        """
        async with self.database.transaction() as tx:
            held = await jobs.renew(tx, self.owner, [self.job.key])
        if not held:
            raise LeaseLost(f"The lease of {self.job.key} was lost.")


Runner = Callable[[Job, Lease], Awaitable[datetime | None]]


class JobLoop:
    """Claims due jobs and runs them, many at once, until it is stopped.

    Args:
        database: Where the jobs stand.
        clock: For pauses only; due times are the database's.
        owner: A name that no other process has.
        runners: The runner of each kind; it returns None when done, or when to run again.
    """

    def __init__(
        self, database: "Database", clock: Clock, owner: str, runners: Mapping[str, Runner]
    ) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._runners = runners
        self._awake = asyncio.Event()
        self._stopping = False
        self._has_ended = asyncio.Event()
        self._has_ended.set()
        self._running: dict[str, asyncio.Task[None]] = {}

    def wake(self) -> None:
        """Look for due jobs now rather than within a second."""
        self._awake.set()

    async def run(self) -> None:
        """Run due jobs until `stop`."""
        self._has_ended.clear()
        renewing = asyncio.create_task(self._renew_for_ever(), name="jobs-renew")
        try:
            while not self._stopping:
                if not await self._claim():
                    await self._rest()
            # What runs on goes on holding its lease.
            while self._running:
                await asyncio.wait(self._running.values())
        finally:
            self._has_ended.set()
            renewing.cancel()
            await asyncio.gather(renewing, return_exceptions=True)

    async def stop(self, seconds: float) -> None:
        """Claim nothing more; let what runs finish for so many seconds, then cancel it."""
        self._stopping = True
        self._awake.set()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._has_ended.wait(), seconds)
        left = list(self._running.values())
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)

    async def _rest(self) -> None:
        pause = asyncio.create_task(self._clock.sleep(POLL_SECONDS))
        woken = asyncio.create_task(self._awake.wait())
        _, pending = await asyncio.wait({pause, woken}, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        await asyncio.gather(*pending, return_exceptions=True)

    async def _claim(self) -> bool:
        """Start what is due; return whether there may be more."""
        self._awake.clear()
        room = AT_ONCE - len(self._running)
        if room <= 0:
            return False
        try:
            claimed = await self._claim_some(room)
        except DatabaseUnavailable as error:
            log.warning("jobs.database", reason=error.sentence)
            return False
        for job in claimed:
            task = asyncio.create_task(self._run(job), name=f"job {job.key}")
            self._running[job.key] = task
        return len(claimed) == room

    async def _claim_some(self, room: int) -> list[Job]:
        async with self._database.reading() as tx:
            if not await jobs.is_any_due(tx):
                return []
        async with self._database.transaction() as tx:
            return await jobs.claim(tx, self._owner, room)

    async def _run(self, job: Job) -> None:
        with structlog.contextvars.bound_contextvars(job=job.key):
            try:
                await self._run_and_finish(job)
            except DatabaseUnavailable as error:
                log.warning("job.database", reason=error.sentence)
            finally:
                self._running.pop(job.key, None)
                self._awake.set()

    async def _run_and_finish(self, job: Job) -> None:
        try:
            again_at = await self._runners[job.kind](job, Lease(self._database, self._owner, job))
        except LeaseLost as error:
            log.warning("job.lease_lost", reason=error.sentence)
        except GatehouseError as error:
            log.warning("job.failed", outcome=error.outcome, reason=error.sentence, tries=job.tries)
            await self._failed(job, error.sentence)
        except Exception as error:
            log.exception("job.broken", tries=job.tries)
            await self._failed(job, type(error).__name__)
        else:
            async with self._database.transaction() as tx:
                await jobs.finish(tx, self._owner, job, again_at)

    async def _failed(self, job: Job, reason: str) -> None:
        pause = min(2.0 ** min(job.tries, 10), LONGEST_PAUSE_SECONDS)
        async with self._database.transaction() as tx:
            again_at = await tx.now() + timedelta(seconds=pause)
            await jobs.fail(tx, self._owner, job, again_at, reason)

    async def _renew_for_ever(self) -> None:
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            keys = list(self._running)
            if not keys:
                continue
            try:
                async with self._database.transaction() as tx:
                    await jobs.renew(tx, self._owner, keys)
            except DatabaseUnavailable as error:
                log.warning("jobs.renew", reason=error.sentence)
