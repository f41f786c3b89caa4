"""The watcher, which calls each organization periodically to notice blocks early.

Checks are spread over the day, within 1 % of each daily limit. The watcher never takes a slot that
is left to people: a check waits in the database until a background slot is free, while other
organizations are checked. The probe job makes the call at the end of a pause.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from bot.errors import GatehouseError, QuotaExhausted
from bot.organizations.client import InventoryClient
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.use import Standing
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.services.calls import WATCH, CallCause
from bot.services.errors import ServiceFailed, ServiceTimeout, ServiceUnreachable
from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Lease
from bot.store.jobs import Job

log = structlog.get_logger(__name__)

WATCH_KIND = "watch"
# The delay before looking again while there are no organizations to watch.
IDLE_SECONDS = 600.0
# Delay the first check to keep it from competing with the first requests after a start.
FIRST_AFTER = timedelta(minutes=1)
# Errors that affect the calls for all organizations of a data center.
OUTAGES = (ServiceFailed, ServiceTimeout, ServiceUnreachable)
_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
# Each check transfers the whole listing of a data center, so large listings make checks rarer.
_LEAST_BETWEEN_LISTINGS_SECONDS = 120.0


@dataclass
class Watched:
    """An organization: the minimum interval, and when it was last checked and is due again."""

    key: OrganizationKey
    every_seconds: float
    checked_at: float

    @property
    def due_at(self) -> float:
        """Return the time of the next check."""
        return self.checked_at + self.every_seconds


@dataclass(frozen=True)
class Watcher:
    """Runs the `watch` job; `is_on` is the setting `INVENTORY_WATCH`."""

    database: Database
    inventory: InventoryClient
    directory: OrganizationDirectory
    terms: Terms
    is_on: bool

    async def plan(self, tx: Transaction) -> None:
        """Add the job, or remove it if the watcher is off."""
        if self.is_on and self.inventory.data_centers:
            first_at = await tx.now() + FIRST_AFTER
            await jobs.ensure(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, first_at))
        else:
            await jobs.drop(tx, WATCH_KIND)

    async def run(self, _job: Job, lease: Lease) -> datetime | None:
        """Make the check that has been due longest; return the time of the following check."""
        if not self.is_on:
            return None
        now = (await self.database.now()).timestamp()
        watched, next_at = await self._watched(), now + IDLE_SECONDS
        due = min(watched, key=lambda each: (each.due_at, each.key), default=None)
        if due is not None and due.due_at <= now:
            await lease.confirm()
            due.checked_at = now
            await self._note(due)
            if free_at := await self._check(due.key):
                due.checked_at = max(free_at, now + LEAST_PAUSE_SECONDS) - due.every_seconds
                await self._note(due)
                next_at = min(next_at, due.due_at)
        if watched:
            # Checks that are due together are spread at twice the usual pace.
            pause = 0.5 / sum(1 / each.every_seconds for each in watched)
            pause = max(pause, LEAST_PAUSE_SECONDS)
            next_at = min(next_at, max(now + pause, min(each.due_at for each in watched)))
        return datetime.fromtimestamp(next_at, UTC)

    async def _watched(self) -> list[Watched]:
        """Return the active organizations, and the data centers that were never listed."""
        async with self.database.read_only() as tx:
            known = {each.key: each for each in await accounts.load_all(tx, self.terms)}
        watched: list[Watched] = []
        for report in (await self.directory.known()).reports:
            keys = [OrganizationKey(report.data_center)]
            if report.listing is not None:
                places = report.listing.places
                keys = [place.key for place in places if place.organization.is_org_active]
            for key in keys:
                standing = known.get(key) or Standing.idle(key, self.terms.plan_of(key))
                every = _DAY_SECONDS / (standing.day.limit * _SHARE_OF_THE_DAY)
                every = max(every, len(keys) * _LEAST_BETWEEN_LISTINGS_SECONDS)
                watched.append(Watched(key, every, standing.watched_at))
        return watched

    async def _check(self, key: OrganizationKey) -> float | None:
        """Make the call; if there is no room for the call, return when there will be."""
        try:
            found = await self.inventory.organizations(key, CallCause(WATCH, background=True))
            await self.directory.accept(key, found)
        except QuotaExhausted as full:
            return full.free_at.timestamp()
        except GatehouseError as error:
            log.info("watch.failed", key=str(key), outcome=error.outcome)
            if isinstance(error, OUTAGES):
                self.directory.note_failure(key.data_center, error)
        return None

    async def _note(self, watched: Watched) -> None:
        async with self.database.transaction() as tx:
            organization = await accounts.lock(tx, watched.key)
            await quotas.change(tx, organization, watched_at=watched.checked_at)
