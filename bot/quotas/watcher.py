"""The watcher, which calls each organization periodically to notice blocks early.

Checks are spread over the day, within 1 % of each daily limit. The watcher never takes a slot that
is left to people: a check waits in the database until a background slot is free, while other
organizations are checked. The probe job makes the call at the end of a pause.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
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
IDLE = timedelta(minutes=10)
# Delay the first check to keep it from competing with the first requests after a start.
FIRST_AFTER = timedelta(minutes=1)
# Errors that affect the calls for all organizations of a data center.
OUTAGES = (ServiceFailed, ServiceTimeout, ServiceUnreachable)
_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
# Each check transfers the whole listing of a data center, so large listings make checks rarer: less
# than 1 GB a day for all data centers together, including listings for people.
_MOST_BYTES_A_DAY = 800_000_000


@dataclass(frozen=True, slots=True)
class Watched:
    """An organization, the time of its last check (0: never), and the minimum interval."""

    key: OrganizationKey
    checked_at: float
    every_seconds: float

    @property
    def due_at(self) -> float:
        """Return the time of the next check."""
        return self.checked_at + self.every_seconds


def seconds_between_checks(day_limit: int, bytes_a_round: int, data_centers: int) -> float:
    """Return the minimum time between two checks of an organization.

    Checking every organization of the data center once transfers `bytes_a_round` bytes.
    """
    checks_a_day = day_limit * _SHARE_OF_THE_DAY
    if checks_a_day <= 0:
        return float("inf")
    rounds_a_day = _MOST_BYTES_A_DAY / data_centers / max(1, bytes_a_round)
    return _DAY_SECONDS / min(checks_a_day, rounds_a_day)


def next_check(watched: Collection[Watched], now: float) -> Watched | None:
    """Return the organization that has been due for the longest time, if any is due."""
    due = (each for each in watched if now >= each.due_at)
    return min(due, key=lambda each: (each.due_at, each.key), default=None)


def next_turn_at(watched: Collection[Watched], now: float) -> float | None:
    """Return when to look for the next due check; None if there are no organizations.

    Checks that are due together are spread at twice the usual pace.
    """
    checks_a_second = sum(1 / organization.every_seconds for organization in watched)
    if checks_a_second <= 0:
        return None
    due_at = min(organization.due_at for organization in watched)
    return max(due_at, now + max(0.5 / checks_a_second, LEAST_PAUSE_SECONDS))


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
        """Make the next check; return the time of the following check."""
        if not self.is_on:
            return None
        async with self.database.read_only() as tx:
            now = (await tx.now()).timestamp()
        watched = await self._watched()
        due = next_check(watched.values(), now)
        looks_at = [now + IDLE.total_seconds()]
        if due is not None:
            await lease.confirm()
            checked = replace(due, checked_at=await self._check(due, now))
            watched[due.key] = checked
            looks_at += [checked.due_at] if checked.checked_at < now else []
        looks_at.append(next_turn_at(watched.values(), now) or looks_at[0])
        return datetime.fromtimestamp(min(looks_at), UTC)

    async def _watched(self) -> dict[OrganizationKey, Watched]:
        """Return the active organizations, and the data centers that were never listed."""
        reports = (await self.directory.known()).reports
        async with self.database.read_only() as tx:
            known = {each.key: each for each in await accounts.load_all(tx, self.terms)}
        watched: dict[OrganizationKey, Watched] = {}
        for report in reports:
            keys, size = [OrganizationKey(report.data_center)], 0
            if report.listing is not None:
                places, size = report.listing.places, report.listing.size
                keys = [place.key for place in places if place.organization.is_org_active]
            for key in keys:
                standing = known.get(key) or Standing.idle(key, self.terms.plan_of(key))
                limit, round_size = standing.day.limit, size * len(keys)
                every = seconds_between_checks(limit, round_size, len(reports))
                watched[key] = Watched(key, standing.watched_at, every)
        return watched

    async def _check(self, due: Watched, now: float) -> float:
        """Make the call; return the check's time, set back if there was no room for the call."""
        await self._note(due.key, now)
        try:
            found = await self.inventory.organizations(due.key, CallCause(WATCH, background=True))
            await self.directory.accept(due.key, found)
        except QuotaExhausted as full:
            free_at = max(full.free_at.timestamp(), now + LEAST_PAUSE_SECONDS)
            checked_at = min(now, free_at - due.every_seconds)
            await self._note(due.key, checked_at)
            return checked_at
        except GatehouseError as error:
            log.info("watch.failed", key=str(due.key), outcome=error.outcome)
            if isinstance(error, OUTAGES):
                self.directory.note_failure(due.key.data_center, error)
        return now

    async def _note(self, key: OrganizationKey, watched_at: float) -> None:
        async with self.database.transaction() as tx:
            await quotas.change(tx, await accounts.lock(tx, key), watched_at=watched_at)
