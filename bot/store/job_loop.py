"""The job loop: runs due jobs, retries failed jobs, and takes over jobs from dead processes."""

import asyncio
import itertools
import math
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import Context
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import structlog
from psycopg.errors import DivisionByZero
from sqlalchemy.exc import DataError

from bot.errors import DatabaseUnavailable, GatehouseError
from bot.ops.clock import Clock, since_boot
from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.jobs import Again, Job
from bot.tasks import cancel

log = structlog.get_logger(__name__)

POLL_SECONDS = 1.0
RENEW_SECONDS = 5.0
CLAIMED_AT_ONCE = 8
LONGEST_PAUSE_SECONDS = 20.0
# A call takes at most 10 s, so a call sent this soon after a renewal ends before the lease
# expires.
SEND_WITHIN_SECONDS = 5.0
# A lease that was renewed this recently leaves enough time to send something.
NEW_SECONDS = 2.0


class LeaseLost(GatehouseError):
    """The lease on the job was lost. The runner must stop without changing anything."""

    outcome = "lease_lost"


@dataclass(eq=False)
class Lease:
    """The right to run a job for a limited time.

    `owner` identifies the claim. `held_at` is the time of the last renewal, in seconds since boot.
    `is_finished` is True if the runner has finished the job in a transaction of its own. `result`
    is for those who wait for the run, if the runner sets it. `wake` makes the job loop look for due
    jobs.
    """

    database: Database
    owner: str
    job: Job
    since_boot: Callable[[], float] = since_boot
    held_at: float = -math.inf
    is_finished: bool = False
    result: Any = None
    wake: Callable[[], None] = lambda: None

    @property
    def is_fresh(self) -> bool:
        """True if the lease was renewed recently enough to send something."""
        return self.since_boot() - self.held_at <= SEND_WITHIN_SECONDS

    @property
    def is_new(self) -> bool:
        """True if the lease was claimed or renewed so recently that it needn't be renewed."""
        return self.since_boot() - self.held_at <= NEW_SECONDS

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Transaction]:
        """Yield a transaction that fails if it has called `require` and the lease is lost.

        Raises:
            LeaseLost: The lease is lost, so nothing is stored.
        """
        try:
            async with self.database.transaction() as tx:
                yield tx
        except DataError as error:
            if not isinstance(error.orig, DivisionByZero):
                raise
            raise self._lost() from error

    async def require(self, tx: Transaction) -> None:
        """Renew the lease at the end of a `transaction`, in the same round trip as the commit."""
        if tx.is_postgres:
            self.held_at = self.since_boot()
            await jobs.renew_or_fail(tx, self.owner, self.job.key)
        else:
            await self.hold(tx)

    async def confirm(self) -> None:
        """Renew the lease before an action that must happen only once, or raise LeaseLost."""
        async with self.database.transaction() as tx:
            await self.hold(tx)

    async def hold(self, tx: Transaction) -> None:
        """Renew the lease within a transaction, or raise LeaseLost.

        Call this at the end of the transaction: to avoid deadlocks, job rows are locked last.
        """
        before = self.since_boot()
        if not await jobs.renew(tx, self.owner, self.job.key):
            raise self._lost()
        self.held_at = before

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"The lease on {self.job.key} was lost.")

    async def finish(self, tx: Transaction, outcome: "Outcome" = None) -> None:
        """End the run together with the transaction's other changes, as if it returned `outcome`.

        Call this last. If the job was replaced during the run, the new job stays.
        """
        again = Again(outcome) if isinstance(outcome, datetime) else outcome
        if await jobs.finish(tx, self.owner, self.job, again):
            tx.after_commit.append(self.wake)
        self.is_finished = True

    def check(self) -> None:
        """Raise LeaseLost if the lease is too old. Call this right before sending anything.

        The process or machine might have been suspended since the lease was confirmed.
        """
        if not self.is_fresh:
            raise LeaseLost(f"The lease on {self.job.key} is too old, so nothing was sent.")


Outcome = datetime | Again | None
Runner = Callable[[Job, Lease], Awaitable[Outcome]]


@dataclass(frozen=True)
class Kind:
    """The way to run jobs of a kind.

    `run` returns None when the job is done, or the time of the next run. About `at_once` jobs run
    at once, so that jobs that wait for a slow service don't delay other kinds of jobs. `plan`
    schedules jobs at startup.
    """

    run: Runner
    at_once: int = 8
    plan: Callable[[Transaction], Awaitable[None]] | None = None


@dataclass
class JobLoop:
    """Claims due jobs and runs them concurrently until `stop` is called.

    `_owner` is unique to this process.
    """

    _database: Database
    _clock: Clock
    _owner: str
    _kinds: Mapping[str, Kind]

    def __post_init__(self) -> None:
        self._awake = asyncio.Event()
        self._is_stopping = False
        self._has_ended = asyncio.Event()
        self._has_ended.set()
        self._is_crowded = False
        self._claims = itertools.count(1)
        self._running: dict[Lease, asyncio.Task[None]] = {}
        self._database.claim_due_jobs = self._claim
        self._database.until_job_ends = self._until_ends

    def wake(self) -> None:
        """Look for due jobs immediately."""
        self._awake.set()

    async def _until_ends(self, key: str, seconds: float) -> Any:  # noqa: ANN401 - the runner's
        for lease, run in self._running.items():
            if lease.job.key == key:
                await asyncio.wait({run}, timeout=seconds)
                return lease.result
        return None

    async def plan(self, tx: Transaction) -> None:
        """Schedule the jobs that must exist at startup."""
        for kind in self._kinds.values():
            if kind.plan is not None:
                await kind.plan(tx)

    async def run(self) -> None:
        """Run due jobs until `stop` is called and the running jobs have ended."""
        self._has_ended.clear()
        renewing = asyncio.create_task(self._renew_for_ever(), name="jobs-renew")
        try:
            while not self._is_stopping:
                await self._look()
                pause = asyncio.create_task(self._clock.sleep(POLL_SECONDS))
                woken = asyncio.create_task(self._awake.wait())
                await asyncio.wait({pause, woken}, return_when=asyncio.FIRST_COMPLETED)
                pause.cancel()
                woken.cancel()
            # Until running jobs finish, their leases are still renewed.
            while self._running:
                await asyncio.wait(self._running.values())
        finally:
            self._has_ended.set()
            await cancel([renewing])

    async def stop(self, seconds: float) -> None:
        """Stop claiming jobs. Wait up to `seconds` for running jobs, then cancel them."""
        self._is_stopping = True
        self._awake.set()
        # A claim that has begun still starts its jobs.
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._has_ended.wait()
                # A transaction that had claimed jobs may have ended later than the loop.
                while self._running:
                    await asyncio.wait(self._running.values())
        await cancel(self._running.values())

    async def _look(self) -> None:
        """Start due jobs, with a transaction that does nothing else.

        The database itself logs why it fails.
        """
        self._awake.clear()
        with suppress(DatabaseUnavailable):
            async with self._database.transaction() as tx:
                await self._database.require_known_schema(tx)
                await self._claim(tx, newest_first=False)

    async def _claim(self, tx: Transaction, *, newest_first: bool = True) -> None:
        """Claim due jobs at the end of a transaction, and start them after the commit.

        The newest are those that the transaction has stored, so that a click doesn't wait for a
        hundred cards. The jobs that are claimed together, or at the same moment, may exceed a limit
        by a few.
        """
        if self._is_stopping or self._has_ended.is_set():
            return
        owner = f"{self._owner}-{next(self._claims)}"
        held_at = self._clock.since_boot()
        running = Counter(lease.job.kind for lease in self._running)
        full = [name for name, kind in self._kinds.items() if running[name] >= kind.at_once]
        self._is_crowded = bool(full)
        await tx.end_with_next()
        claimed = await jobs.claim(
            tx, owner, CLAIMED_AT_ONCE, exclude_kinds=full, newest_first=newest_first
        )

        def start() -> None:
            for job in claimed:
                lease = Lease(
                    self._database, owner, job, self._clock.since_boot, held_at, wake=self.wake
                )
                # The caller's context names a Slack request that has nothing to do with the job.
                self._running[lease] = asyncio.create_task(
                    self._run(lease), name=f"job {job.key}", context=Context()
                )
            if len(claimed) == CLAIMED_AT_ONCE:
                self.wake()

        tx.after_commit.append(start)

    async def _run(self, lease: Lease) -> None:
        with structlog.contextvars.bound_contextvars(job=lease.job.key):
            try:
                # If the database is unavailable, the job runs again after the lease expires.
                with suppress(DatabaseUnavailable):
                    await self._run_and_finish(lease)
            finally:
                self._running.pop(lease, None)
                if self._is_crowded:
                    # Due jobs may have been waiting for this one to end.
                    self.wake()

    async def _run_and_finish(self, lease: Lease) -> None:
        job = lease.job
        try:
            outcome = await self._kinds[job.kind].run(job, lease)
        except LeaseLost as error:
            log.warning("job.lease_lost", reason=error.sentence)
            return
        except GatehouseError as error:
            log.warning("job.failed", outcome=error.outcome, reason=error.sentence, tries=job.tries)
        except Exception:
            log.exception("job.broken", tries=job.tries)
        else:
            if not lease.is_finished:
                async with self._database.transaction() as tx:
                    await lease.finish(tx, outcome)
            return
        pause = timedelta(seconds=min(2.0 ** min(job.tries, 10), LONGEST_PAUSE_SECONDS))
        async with self._database.transaction() as tx:
            await lease.finish(tx, Again(await tx.now() + pause, job.tries + 1))

    async def _renew_for_ever(self) -> None:
        while True:
            await self._clock.sleep(RENEW_SECONDS)
            if not self._running:
                continue
            try:
                async with self._database.transaction() as tx:
                    # Jobs start and end meanwhile.
                    for lease in list(self._running):
                        # Skip locked rows to avoid deadlocks. Their leases are renewed in a later
                        # round, long before they expire.
                        await jobs.renew(tx, lease.owner, lease.job.key, skip_locked=True)
            except DatabaseUnavailable:
                continue
            except Exception:
                # Continue, because the leases of running jobs expire if they aren't renewed.
                log.exception("jobs.renew_broken")
