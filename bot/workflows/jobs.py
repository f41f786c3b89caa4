"""The one job loop: whatever is to be done later, again, or by whoever lives."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
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
# Of the kinds of which there may be any number, each of which may wait long for Slack.
CROWD_AT_ONCE = 24
LONGEST_PAUSE_SECONDS = 20.0


class LeaseLost(GatehouseError):
    """Another process has taken the job: stop, and change nothing."""

    outcome = "lease_lost"


@dataclass(frozen=True, eq=False)
class Lease:
    """The right to do a job, while it lasts; `owner` is the name of the claim that gave it."""

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
        crowding: Kinds that leave some room to the others, however many of them are due.
    """

    def __init__(
        self,
        database: "Database",
        clock: Clock,
        owner: str,
        runners: Mapping[str, Runner],
        crowding: Collection[str] = (),
    ) -> None:
        self._database = database
        self._clock = clock
        self._owner = owner
        self._runners = runners
        self._crowding = crowding
        self._awake = asyncio.Event()
        self._stopping = False
        self._has_ended = asyncio.Event()
        self._has_ended.set()
        self._claims = itertools.count(1)
        self._running: dict[Lease, asyncio.Task[None]] = {}
        # Runs that the database broke off: nobody need wait until their leases lapse.
        self._broken_off: list[Lease] = []

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
            async with asyncio.timeout(seconds):
                await self._has_ended.wait()
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
        for lease in claimed:
            task = asyncio.create_task(self._run(lease), name=f"job {lease.job.key}")
            self._running[lease] = task
        return len(claimed) == room

    async def _claim_some(self, room: int) -> list[Lease]:
        """Claim under a name of its own.

        So a run that slept through its lease does not take the lease of the run that followed it,
        in this very process, for its own.
        """
        async with self._database.reading() as tx:
            if not await jobs.is_any_due(tx):
                return []
        owner = f"{self._owner}-{next(self._claims)}"
        crowd = sum(lease.job.kind in self._crowding for lease in self._running)
        of_any = max(0, min(room, CROWD_AT_ONCE - crowd))
        async with self._database.transaction() as tx:
            claimed = await jobs.claim(tx, owner, of_any) if of_any else []
            if len(claimed) == of_any < room:
                claimed += await jobs.claim(tx, owner, room - of_any, but=self._crowding)
        return [Lease(self._database, owner, job) for job in claimed]

    async def _run(self, lease: Lease) -> None:
        with structlog.contextvars.bound_contextvars(job=lease.job.key):
            try:
                await self._run_and_finish(lease)
            except DatabaseUnavailable as error:
                log.warning("job.database", reason=error.sentence)
                self._broken_off.append(lease)
            finally:
                self._running.pop(lease, None)
                self._awake.set()

    async def _run_and_finish(self, lease: Lease) -> None:
        job = lease.job
        try:
            again_at = await self._runners[job.kind](job, lease)
        except LeaseLost as error:
            log.warning("job.lease_lost", reason=error.sentence)
        except GatehouseError as error:
            log.warning("job.failed", outcome=error.outcome, reason=error.sentence, tries=job.tries)
            await self._failed(lease, error.sentence)
        except Exception as error:
            log.exception("job.broken", tries=job.tries)
            await self._failed(lease, type(error).__name__)
        else:
            async with self._database.transaction() as tx:
                await jobs.finish(tx, lease.owner, job, again_at)

    async def _failed(self, lease: Lease, reason: str) -> None:
        pause = min(2.0 ** min(lease.job.tries, 10), LONGEST_PAUSE_SECONDS)
        async with self._database.transaction() as tx:
            again_at = await tx.now() + timedelta(seconds=pause)
            await jobs.fail(tx, lease.owner, lease.job, again_at, reason)

    async def _renew_for_ever(self) -> None:
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            if not self._running and not self._broken_off:
                continue
            try:
                await self._renew()
            except DatabaseUnavailable as error:
                log.warning("jobs.renew", reason=error.sentence)

    async def _renew(self) -> None:
        """Waits for no row while it holds others: who has locked it may want one of those.

        What is skipped so has its turn a little later, long before it lapses.
        """
        async with self._database.transaction() as tx:
            for owner, leases in _by_owner(self._running).items():
                await jobs.renew(tx, owner, [lease.job.key for lease in leases], waits=False)
        broken_off = list(self._broken_off)
        async with self._database.statements() as tx:
            for lease in broken_off:
                await jobs.release(tx, lease.owner, [lease.job.key])
        del self._broken_off[: len(broken_off)]
        if broken_off:
            self.wake()


def _by_owner(leases: Iterable[Lease]) -> dict[str, list[Lease]]:
    grouped: dict[str, list[Lease]] = {}
    for lease in leases:
        grouped.setdefault(lease.owner, []).append(lease)
    return grouped
