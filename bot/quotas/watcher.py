"""The watcher calls each organization periodically, so that blocks are noticed without a request.

It never takes a slot that is left to people: the check waits in the database until a background
slot is free, while other organizations are checked. The probe job makes the call at the end of a
pause.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import structlog

from bot.errors import GatehouseError, QuotaExhausted
from bot.organizations.directory import InventoryListings, OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.plans import limits_of
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.watching import (
    LEAST_PAUSE_SECONDS,
    Watched,
    next_check,
    next_turn_at,
    seconds_between_checks,
)
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
# Delay before looking again while there are no organizations to watch.
IDLE = timedelta(minutes=10)
# Keep the first check away from the first requests after a start.
FIRST_AFTER = timedelta(minutes=1)
# Errors that would affect calls for all other organizations of the data center too.
OUTAGES = (ServiceFailed, ServiceTimeout, ServiceUnreachable)


class Watcher:
    """Runs the `watch` job.

    Args:
        database: Stores the times of checks.
        inventory: Makes the calls.
        directory: Provides the organizations, and stores the listings that the calls return.
        terms: The plans, and the timeout of a call.
        is_on: The setting `INVENTORY_WATCH`.
    """

    def __init__(
        self,
        database: Database,
        inventory: InventoryListings,
        directory: OrganizationDirectory,
        terms: Terms,
        *,
        is_on: bool,
    ) -> None:
        self._database = database
        self._inventory = inventory
        self._directory = directory
        self._terms = terms
        self._is_on = is_on

    async def plan(self, tx: Transaction) -> None:
        """Add the job, or remove it if the watcher is off."""
        if self._is_on and self._inventory.data_centers:
            first_at = await tx.now() + FIRST_AFTER
            await jobs.ensure(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, first_at))
        else:
            await jobs.drop(tx, WATCH_KIND)

    async def run(self, _job: Job, lease: Lease) -> datetime | None:
        """Make the next check; return the time of the one after it."""
        if not self._is_on:
            return None
        async with self._database.read_only() as tx:
            now = (await tx.now()).timestamp()
        watched = await self._watched()
        due = next_check(watched.values(), now)
        if due is not None:
            await lease.confirm()
            watched[due.key] = replace(due, checked_at=await self._take_turn(due, now))
        looks_at = [now + IDLE.total_seconds(), next_turn_at(watched.values(), now)]
        if due is not None and watched[due.key].checked_at < now:
            looks_at.append(watched[due.key].due_at)
        return datetime.fromtimestamp(min(filter(None, looks_at)), UTC)

    async def _watched(self) -> dict[OrganizationKey, Watched]:
        """Return the active organizations, and the data centers that were never listed."""
        reports = (await self._directory.known()).reports
        async with self._database.read_only() as tx:
            known = await quota_use.last_checks(tx, self._terms)
        watched: dict[OrganizationKey, Watched] = {}
        for report in reports:
            keys, size = [OrganizationKey(report.data_center)], 0
            if report.listing is not None:
                places, size = report.listing.places, report.listing.size
                keys = [place.key for place in places if place.organization.is_org_active]
            for key in keys:
                usual = (limits_of(self._terms.plan_of(key)).day, 0.0)
                day_limit, checked_at = known.get(key, usual)
                every = seconds_between_checks(day_limit, size * len(keys), len(reports))
                watched[key] = Watched(key, checked_at, every)
        return watched

    async def _take_turn(self, due: Watched, now: float) -> float:
        """Make the call; return the check's time, set back if there was no room for the call."""
        async with self._database.transaction() as tx:
            if not await quotas.take_turn(tx, due.key, due.checked_at):
                return now
        try:
            found = await self._inventory.organizations(due.key, CallCause(WATCH, background=True))
            await self._directory.accept(due.key, found)
        except QuotaExhausted as full:
            free_at = max(full.free_at.timestamp(), now + LEAST_PAUSE_SECONDS)
            checked_at = min(now, free_at - due.every_seconds)
            async with self._database.transaction() as tx:
                await quotas.postpone_turn(tx, due.key, checked_at)
            return checked_at
        except GatehouseError as error:
            log.info("watch.failed", key=str(due.key), outcome=error.outcome)
            if isinstance(error, OUTAGES):
                self._directory.note_failure(due.key.data_center, error)
        return now
