"""The one job loop: whatever is to be done later, again, or by whoever lives."""

import asyncio
import itertools
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import structlog

from bot.background.batches import Batches
from bot.dataclass import dataclass
from bot.errors import DatabaseUnavailable, GatehouseError
from bot.ops.clock import Clock, since_boot
from bot.store import jobs
from bot.store.jobs import Finished, Job

if TYPE_CHECKING:
    from bot.store.engine import Database, Transaction

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
RENEW_SECONDS = 5.0
# So many that kinds which are no crowd have room when all crowds are full: see `bot/shared.py`.
AT_ONCE = 116
FINISH_EVERY_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 20.0
# A call takes at most 10 s: what is sent while its lease is so young has arrived or failed before
# the lease lapses.
SEND_WITHIN_SECONDS = 5.0


class LeaseLost(GatehouseError):
    """Another process has taken the job: stop, and change nothing."""

    outcome = "lease_lost"


@dataclass(eq=False)
class Lease:
    """The right to do a job, while it lasts; `owner` is the name of the claim that gave it.

    `since_boot` has seconds that go on while the machine sleeps; `held_at` is when the lease had
    its full time for the last time.
    """

    database: "Database"
    owner: str
    job: Job
    since_boot: Callable[[], float] = since_boot
    held_at: float = -math.inf

    @property
    def is_fresh(self) -> bool:
        """Whether it had its full time so lately that something may be sent with it."""
        return self.since_boot() - self.held_at <= SEND_WITHIN_SECONDS

    async def confirm(self) -> None:
        """Lengthen the lease to its full time, just before something that must happen once.

        Raises:
            LeaseLost: It has lapsed, and maybe another process has it.
            DatabaseUnavailable: Nobody knows.
        """
        async with self.database.transaction() as tx:
            await self.hold(tx)

    async def hold(self, tx: "Transaction") -> None:
        """Let a transaction count only if the lease still holds: rows of jobs are locked last.

        Raises:
            LeaseLost: It does not.
        """
        before = self.since_boot()
        if not await jobs.renew(tx, self.owner, [self.job.key]):
            raise LeaseLost(f"The lease of {self.job.key} was lost.")
        self.held_at = before

    async def remember(self, tx: "Transaction", payload: Mapping[str, Any]) -> None:
        """Store what the next run of the job is to know, unless the job was put anew meanwhile."""
        self.job = replace(self.job, payload=payload)
        await jobs.remember(tx, self.job)

    def check(self) -> None:
        """Return if there is time left to send something; to be asked right before that.

        A process may have been stopped, or its machine asleep, since the lease was confirmed.

        Raises:
            LeaseLost: It was confirmed too long ago.
        """
        if not self.is_fresh:
            raise LeaseLost(f"The lease of {self.job.key} is too old to send with.")


@dataclass(frozen=True, slots=True)
class Again:
    """A job is to run again at a time; `tries` is how often in a row it has failed by then."""

    at: datetime
    tries: int = 0


Outcome = datetime | Again | None
Runner = Callable[[Job, Lease], Awaitable[Outcome]]


async def finish(lease: Lease, outcome: Outcome) -> None:
    """End a run that went as its runner says: done, or to run again.

    Raises:
        DatabaseUnavailable: The lease lapses by itself, and the job is run again.
    """
    run = _finished(lease, outcome)
    async with lease.database.transaction() as tx:
        await jobs.finish(tx, run.owner, run.job, run.again_at, run.tries)


def _finished(lease: Lease, outcome: Outcome) -> Finished:
    again = Again(outcome) if isinstance(outcome, datetime) else outcome
    at, tries = (again.at, again.tries) if again else (None, 0)
    return Finished(lease.owner, lease.job, at, tries)


@dataclass(frozen=True)
class Crowd:
    """Kinds of which there may be any number of jobs, each of which may wait long for a service.

    `most` of them run at once, half of these may have `tries`: so neither other kinds nor what is
    new wait for them. Where many come at once, those that have ended are finished together.
    """

    kinds: frozenset[str]
    most: int
    finish_together: bool = False


class JobLoop:
    """Claims due jobs and runs them, many at once, until it is stopped.

    Args:
        database: Where the jobs stand.
        clock: For pauses only; due times are the database's.
        owner: A name that no other process has.
        runners: The runner of each kind; it returns None when done, or when to run again.
        crowds: Kinds that leave some room to the others, however many of them are due.
        on_edited: Told of a job that the bot did not put; it is not run.
    """

    def __init__(
        self,
        database: "Database",
        clock: Clock,
        owner: str,
        runners: Mapping[str, Runner],
        crowds: Sequence[Crowd] = (),
    ) -> None:
        self.on_edited: Callable[[Job], Awaitable[None]] | None = None
        self._database = database
        self._clock = clock
        self._owner = owner
        self._runners = runners
        self._crowds = crowds
        self._finishing = Batches(self._finish_all, every=FINISH_EVERY_SECONDS)
        self._awake = asyncio.Event()
        self._is_put = False
        self._stopping = False
        self._has_ended = asyncio.Event()
        self._has_ended.set()
        self._claims = itertools.count(1)
        self._running: dict[Lease, asyncio.Task[None]] = {}
        # Runs that the database broke off: nobody need wait until their leases lapse.
        self._broken_off: list[Lease] = []
        database.on_due_jobs(self.wake)

    def wake(self) -> None:
        """Look for due jobs now rather than within a second: one was put, and is committed."""
        self._is_put = True
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
        is_put, self._is_put = self._is_put, False
        if not is_put:
            # A look costs less than a claim in vain, and needs no writer's turn.
            async with self._database.read_only() as tx:
                if not await jobs.is_any_due(tx):
                    return []
        owner = f"{self._owner}-{next(self._claims)}"
        claimed: list[Job] = []
        since_boot = self._clock.since_boot
        before = since_boot()
        async with self._database.transaction() as tx:
            while len(claimed) < room:
                limit = _limit(self._crowds, [*self._jobs(), *claimed], room - len(claimed))
                some = await jobs.claim(
                    tx,
                    owner,
                    limit.count,
                    exclude_kinds=limit.full,
                    exclude_retried=limit.full_of_retried,
                )
                claimed += some
                if len(some) < limit.count:
                    break
        return [Lease(self._database, owner, job, since_boot, held_at=before) for job in claimed]

    def _jobs(self) -> Iterable[Job]:
        return [lease.job for lease in self._running]

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
        if not job.is_genuine:
            await self._put_aside(job)
            return
        try:
            outcome = await self._runners[job.kind](job, lease)
        except LeaseLost as error:
            log.warning("job.lease_lost", reason=error.sentence)
        except GatehouseError as error:
            log.warning("job.failed", outcome=error.outcome, reason=error.sentence, tries=job.tries)
            await self._failed(lease, error.sentence)
        except Exception as error:
            log.exception("job.broken", tries=job.tries)
            await self._failed(lease, type(error).__name__)
        else:
            await self._finish(lease, outcome)

    async def _finish(self, lease: Lease, outcome: Outcome) -> None:
        kind = lease.job.kind
        if any(kind in crowd.kinds and crowd.finish_together for crowd in self._crowds):
            await self._finishing.do(_finished(lease, outcome))
        else:
            await finish(lease, outcome)

    async def _finish_all(self, runs: Sequence[Finished]) -> Sequence[None]:
        async with self._database.transaction() as tx:
            await jobs.finish_all(tx, runs)
        return [None] * len(runs)

    async def _put_aside(self, job: Job) -> None:
        """Do nothing that somebody else has put into the database."""
        log.error("job.edited", kind=job.kind)
        if self.on_edited is not None:
            await self.on_edited(job)

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
            except Exception:
                # Without renewals every lease would lapse under its run.
                log.exception("jobs.renew_broken")

    async def _renew(self) -> None:
        """Waits for no row while it holds others: who has locked it may want one of those.

        What is skipped so has its turn a little later, long before it lapses.
        """
        async with self._database.transaction() as tx:
            for owner, leases in _by_owner(self._running).items():
                await jobs.renew(tx, owner, [lease.job.key for lease in leases], skip_locked=True)
        broken_off = list(self._broken_off)
        async with self._database.autocommit() as tx:
            for lease in broken_off:
                await jobs.release(tx, lease.owner, [lease.job.key])
        del self._broken_off[: len(broken_off)]
        if broken_off:
            self.wake()


@dataclass(frozen=True)
class _Limit:
    """So many jobs may be claimed, of other kinds than those that are `full`.

    Of those `full_of_retried` none that failed before.
    """

    count: int
    full: Collection[str]
    full_of_retried: Collection[str]


def _limit(crowds: Sequence[Crowd], running: Sequence[Job], room: int) -> _Limit:
    count, full, full_of_retried = room, set[str](), set[str]()
    for crowd in crowds:
        mine = [job for job in running if job.kind in crowd.kinds]
        left = crowd.most - len(mine)
        left_retried = crowd.most // 2 - sum(job.tries > 0 for job in mine)
        if left <= 0:
            full |= crowd.kinds
            continue
        count = min(count, left)
        if left_retried <= 0:
            full_of_retried |= crowd.kinds
        else:
            count = min(count, left_retried)
    return _Limit(count, full, full_of_retried)


def _by_owner(leases: Iterable[Lease]) -> dict[str, list[Lease]]:
    grouped: dict[str, list[Lease]] = {}
    for lease in leases:
        grouped.setdefault(lease.owner, []).append(lease)
    return grouped
