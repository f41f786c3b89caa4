"""The watcher, which regularly makes a test call for each organization to notice blocks early.

The calls are spread over the day and use at most 1% of each daily limit. The watcher never takes a
slot that is reserved for people. If an organization's limit is used up, its check is left out. At
the end of a pause, the `probe` job makes the test call.
"""

from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from bot.errors import GatehouseError
from bot.organizations.directory import OrganizationDirectory
from bot.organizations.rules import OrganizationKey
from bot.quotas.rules.limits import LimitKind
from bot.quotas.rules.quota import Terms
from bot.quotas.rules.use import Standing
from bot.quotas.store import accounts
from bot.quotas.store import ledger as quotas
from bot.services.calls import WATCH, CallCause
from bot.store import jobs
from bot.store.engine import Database, Transaction
from bot.store.job_loop import Kind, Lease
from bot.store.jobs import Job

WATCH_KIND = "watch"
# The delay before looking again while there are no organizations to watch.
IDLE_SECONDS = 600.0
# Delay the first check to keep it from competing with the first requests after a start.
FIRST_AFTER = timedelta(minutes=1)
_DAY_SECONDS = 86_400.0
_SHARE_OF_THE_DAY = 0.01
LEAST_PAUSE_SECONDS = 5.0
# Each check downloads a data center's whole listing, so space out a data center's checks.
_LEAST_BETWEEN_LISTINGS_SECONDS = 120.0


@dataclass(frozen=True)
class Watcher:
    """Runs the `watch` job. `is_on` is the value of `INVENTORY_WATCH`."""

    database: Database
    directory: OrganizationDirectory
    terms: Terms
    is_on: bool

    @property
    def kinds(self) -> dict[str, Kind]:
        """The job that calls the inventory service for each organization."""
        return {WATCH_KIND: Kind(self.run, plan=self.plan)}

    async def plan(self, tx: Transaction) -> None:
        """Add the job, or remove it if the watcher is off or no data center is configured."""
        if self.is_on and self.directory.data_centers:
            first_at = await tx.now() + FIRST_AFTER
            await jobs.ensure(tx, Job(WATCH_KIND, WATCH_KIND, WATCH_KIND, first_at))
        else:
            await jobs.drop(tx, WATCH_KIND)

    async def run(self, _job: Job, lease: Lease) -> datetime | None:
        """Check the most overdue organization. Return the time of the next check, if any."""
        if not self.is_on:
            return None
        now = (await self.database.now()).timestamp()
        watched = await self._watched()
        if not watched:
            return datetime.fromtimestamp(now + IDLE_SECONDS, UTC)
        due_at, key, _ = min(watched)
        if due_at <= now:
            await lease.confirm()
            # Checks that are due at the same time are spread out at twice the usual pace.
            pace = sum(1 / seconds for _, _, seconds in watched)
            due_at = now + max(0.5 / pace, LEAST_PAUSE_SECONDS)
            async with self.database.transaction() as tx:
                await quotas.change(tx, await accounts.lock(tx, key), watched_at=now)
            # Calls log their own failures.
            with suppress(GatehouseError):
                await self.directory.call(key, CallCause(WATCH, background=True))
        return datetime.fromtimestamp(min(due_at, now + IDLE_SECONDS), UTC)

    async def _watched(self) -> list[tuple[float, OrganizationKey, float]]:
        """Return the time of each organization's next check, its key, and its check interval.

        Data centers that have never been listed are watched too.
        """
        async with self.database.read_only() as tx:
            stored = await accounts.load_all(tx, self.terms)
        watched = []
        for report in (await self.directory.known()).reports:
            keys = [OrganizationKey(report.data_center)]
            if report.listing is not None:
                places = report.listing.places
                keys = [place.key for place in places if place.organization.is_org_active]
            for key in keys:
                standing = stored.get(key) or Standing.idle(key, self.terms)
                day = standing.meters[LimitKind.DAY]
                seconds = _DAY_SECONDS / (day.limit * _SHARE_OF_THE_DAY)
                seconds = max(seconds, len(keys) * _LEAST_BETWEEN_LISTINGS_SECONDS)
                watched.append((standing.watched_at + seconds, key, seconds))
        return watched
