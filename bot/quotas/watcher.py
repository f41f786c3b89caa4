"""The watcher calls each organization from time to time, so blocks are noticed without a request.

It never takes a slot that people are entitled to: its turn then waits in the database until a slot
is free, while other organizations get theirs. The call at the end of a pause is the probe's job.
"""

from datetime import UTC, datetime, timedelta

import structlog

from bot.errors import GatehouseError, QuotaExhausted
from bot.ops.clock import Clock
from bot.ops.portions import with_pauses
from bot.organizations.directory import InventoryListings, OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.plans import limits_of
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.watching import LEAST_PAUSE_SECONDS, Watched, next_check, next_turn_at, pauses
from bot.quotas.store import ledger as quotas
from bot.quotas.store import quota_use
from bot.services.calls import WATCH, CallCause
from bot.services.errors import ServiceFailed, ServiceTimeout, ServiceUnreachable
from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job

log = structlog.get_logger(__name__)

WATCH_KIND = "watch"
# Delay before the next look while there is nobody to watch.
IDLE = timedelta(minutes=10)
# Interval for reloading the full list; in between, only turns taken by this process update it.
READ_AGAIN_SECONDS = 60.0
# Keep the first turn away from the first requests after a start.
FIRST_AFTER = timedelta(minutes=1)
# Errors that a call for any other organization of the data center would meet too.
OUTAGES = (ServiceFailed, ServiceTimeout, ServiceUnreachable)


class Watcher:
    """Runs the `watch` job.

    Args:
        database: Stores the turns.
        inventory: Makes the calls.
        directory: Has the organizations, and keeps the listings that the calls return.
        terms: The plans, and the timeout of a call.
        clock: Times pauses that let other work run.
        is_on: `INVENTORY_WATCH`.
    """

    def __init__(
        self,
        database: Database,
        inventory: InventoryListings,
        directory: OrganizationDirectory,
        terms: Terms,
        clock: Clock,
        *,
        is_on: bool,
    ) -> None:
        self._database = database
        self._inventory = inventory
        self._directory = directory
        self._terms = terms
        self._clock = clock
        self._is_on = is_on
        self._watched: dict[OrganizationKey, Watched] = {}
        self._pauses: dict[str, float] = {}
        self._read_at = float("-inf")

    async def plan(self, tx: Transaction) -> None:
        """Add the job, or remove it if the watcher is off."""
        if self._is_on and self._inventory.data_centers:
            first_at = await tx.now() + FIRST_AFTER
            await jobs.ensure(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, first_at))
        else:
            await jobs.drop(tx, WATCH_KIND)

    async def run(self, _job: Job, lease: Lease) -> datetime | None:
        """Take one turn; return the time of the next one."""
        if not self._is_on:
            return None
        async with self._database.read_only() as tx:
            now = (await tx.now()).timestamp()
        await self._read(now)
        looks_at: list[float | None] = [now + IDLE.total_seconds()]
        # Looking through ten thousand organizations takes milliseconds here, but hundreds in a
        # thread, which would compete with this one.
        key = next_check(self._watched.values(), self._pauses, now)
        if key is not None:
            await lease.confirm()
            looks_at.append(await self._take_turn(self._watched[key], now))
        next_at = next_turn_at(self._watched.values(), self._pauses, now)
        return datetime.fromtimestamp(min(filter(None, [*looks_at, next_at])), UTC)

    async def _read(self, now: float) -> None:
        """Load what to watch: active organizations, and data centers that were never listed."""
        if now < self._read_at + READ_AGAIN_SECONDS:
            return
        directory = await self._directory.known()
        keys = [place.key for place in directory.places if place.organization.is_org_active]
        keys += [
            OrganizationKey(report.data_center)
            for report in directory.reports
            if not report.listing
        ]
        known: dict[OrganizationKey, Watched] = {}
        async with self._database.read_only() as tx:
            async for portion in with_pauses(quota_use.watched(tx, self._terms), self._clock):
                known.update((watched.key, watched) for watched in portion)
        self._watched = {key: known.get(key) or self._new(key) for key in keys}
        self._pauses = pauses(
            {
                report.data_center: report.listing.size if report.listing else 0
                for report in directory.reports
            }
        )
        self._read_at = now

    def _new(self, key: OrganizationKey) -> Watched:
        return Watched(key, limits_of(self._terms.plan_of(key)).day, 0.0)

    async def _take_turn(self, due: Watched, now: float) -> float | None:
        """Make the call; if there was no room, return when to try again."""
        self._watched[due.key] = Watched(due.key, due.day_limit, now)
        async with self._database.transaction() as tx:
            if not await quotas.take_turn(tx, due.key, due.checked_at):
                return None
        try:
            found = await self._inventory.organizations(due.key, CallCause(WATCH, background=True))
            await self._directory.accept(due.key, found)
        except QuotaExhausted as full:
            return await self._postpone(due, full.free_at.timestamp(), now)
        except GatehouseError as error:
            log.info("watch.failed", key=str(due.key), outcome=error.outcome)
            if isinstance(error, OUTAGES):
                self._directory.note_failure(due.key.data_center, error)
        return None

    async def _postpone(self, due: Watched, until: float, now: float) -> float:
        waiting = due.postpone(max(until, now + LEAST_PAUSE_SECONDS), now)
        async with self._database.transaction() as tx:
            await quotas.postpone_turn(tx, due.key, waiting.checked_at)
        self._watched[due.key] = waiting
        return waiting.checked_at + waiting.every_seconds
