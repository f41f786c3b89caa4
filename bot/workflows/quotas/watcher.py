"""The watcher: calls each organization now and then, so that a block is noticed with nobody asking.

It never takes a slot that people are due: then the turn waits, in the database, until one is free,
while others have theirs. The call at the end of a pause is not its business, but the probe's.
"""

from datetime import UTC, datetime, timedelta

import structlog

from bot.background.jobs import Lease
from bot.errors import GatehouseError, QuotaExhausted
from bot.model.organizations.organization import OrganizationKey
from bot.model.quotas.calls import WATCH, CallCause
from bot.model.quotas.plans import limits_of
from bot.model.quotas.quota import Terms
from bot.model.quotas.watching import (
    LEAST_PAUSE_SECONDS,
    Watched,
    next_check,
    next_turn_at,
    pauses,
)
from bot.ops.clock import Clock
from bot.ops.portions import with_pauses
from bot.service_errors import ServiceFailed, ServiceTimeout, ServiceUnreachable
from bot.store import jobs, quota_use, quotas
from bot.store.engine import Database, Transaction
from bot.store.jobs import Job
from bot.workflows.directory import InventoryListings, OrganizationDirectory

log = structlog.get_logger(__name__)

WATCH_KIND = "watch"
# With nobody to watch: how soon to look whether there is.
IDLE = timedelta(minutes=10)
# The list of all is read anew this often; between, only the turns taken here are noted in it.
READ_AGAIN_SECONDS = 60.0
# Whoever asks first after a start is not in the watcher's company.
FIRST_AFTER = timedelta(minutes=1)
# What a call for any other organization of the data center would meet too.
OUTAGES = (ServiceFailed, ServiceTimeout, ServiceUnreachable)


class Watcher:
    """Runs the job `watch`.

    Args:
        database: Remembers the turns.
        inventory: Makes the calls.
        directory: Knows the organizations, and takes the listings that the calls bring along.
        terms: The plans in force, and when a call is given up.
        clock: For pauses in which others are answered.
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
        """See that there is such a job, or that there is none when the watcher is off."""
        if self._is_on and self._inventory.data_centers:
            first_at = await tx.now() + FIRST_AFTER
            await jobs.ensure(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, first_at))
        else:
            await jobs.drop(tx, WATCH_KIND)

    async def run(self, _job: Job, lease: Lease) -> datetime | None:
        """Take one turn; return when the next one is."""
        if not self._is_on:
            return None
        now = await self._now()
        await self._read(now)
        looks_at: list[float | None] = [now + IDLE.total_seconds()]
        # To look through ten thousand takes some milliseconds; in a thread it would take hundreds,
        # in which that thread and this one take turns.
        key = next_check(self._watched.values(), self._pauses, now)
        if key is not None:
            await lease.confirm()
            looks_at.append(await self._take_turn(self._watched[key], now))
        next_at = next_turn_at(self._watched.values(), self._pauses, now)
        return datetime.fromtimestamp(min(filter(None, [*looks_at, next_at])), UTC)

    async def _now(self) -> float:
        async with self._database.read_only() as tx:
            return (await tx.now()).timestamp()

    async def _read(self, now: float) -> None:
        """Everybody there is: active organizations, and data centers that were never listed."""
        if now < self._read_at + READ_AGAIN_SECONDS:
            return
        directory = await self._directory.known()
        keys = [place.key for place in directory.places if place.organization.is_org_active]
        keys += [OrganizationKey(one.data_center) for one in directory.reports if not one.listing]
        known: dict[OrganizationKey, Watched] = {}
        async with self._database.read_only() as tx:
            async for portion in with_pauses(quota_use.watched(tx, self._terms), self._clock):
                known.update((one.key, one) for one in portion)
        self._watched = {key: known.get(key) or self._new(key) for key in keys}
        self._pauses = pauses(
            {one.data_center: one.listing.size if one.listing else 0 for one in directory.reports}
        )
        self._read_at = now

    def _new(self, key: OrganizationKey) -> Watched:
        return Watched(key, limits_of(self._terms.plan_of(key)).day, 0.0)

    async def _take_turn(self, one: Watched, now: float) -> float | None:
        """Make the call; return when to look again whether there is room for it."""
        self._watched[one.key] = Watched(one.key, one.day_limit, now)
        async with self._database.transaction() as tx:
            if not await quotas.take_turn(tx, one.key, one.checked_at):
                return None
        try:
            found = await self._inventory.organizations(one.key, CallCause(WATCH, background=True))
            await self._directory.accept(one.key, found)
        except QuotaExhausted as full:
            return await self._postpone(one, full.free_at.timestamp(), now)
        except GatehouseError as error:
            log.info("watch.failed", key=str(one.key), outcome=error.outcome)
            if isinstance(error, OUTAGES):
                self._directory.note_failure(one.key.data_center, error)
        return None

    async def _postpone(self, one: Watched, until: float, now: float) -> float:
        waiting = one.postpone(max(until, now + LEAST_PAUSE_SECONDS), now)
        async with self._database.transaction() as tx:
            await quotas.postpone_turn(tx, one.key, waiting.checked_at)
        self._watched[one.key] = waiting
        return waiting.checked_at + waiting.every_seconds
