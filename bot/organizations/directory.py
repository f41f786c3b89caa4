"""The organization directory: every data center's listing, cached, shared, and stored."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Protocol

import structlog
from cachetools import TTLCache

from bot.errors import DatabaseUnavailable, GatehouseError, NotConfigured, NotFound
from bot.ops.clock import Clock
from bot.organizations import listings
from bot.organizations.listings import Version
from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
    Place,
)
from bot.services.calls import CallCause
from bot.services.errors import RateLimited, ServiceError, ServiceRefused
from bot.services.lane import RecentFailures
from bot.single_flight import SingleFlight
from bot.store.engine import Database, Transaction

log = structlog.get_logger(__name__)

NO_LONGER_LISTED = "That organization is no longer listed. /orgs shows those that are."
# A person waits this long for a slow data center; the call continues for the next person.
PATIENCE_SECONDS = 12.0
# Minimum interval for reading other processes' listings from the database.
LOOK_AGAIN_SECONDS = 1.0
# Call kinds in charts: `refresh` bypasses fresh listings of other processes.
REFRESH, LIST = "refresh", "list"
# The `Refresh` button reuses a refresh of the last seconds instead of making another call.
REFRESHED_SECONDS = 5.0


class InventoryListings(Protocol):
    """The part of the inventory client that the directory needs."""

    @property
    def data_centers(self) -> Sequence[str]:
        """Return the configured data centers, in order."""
        ...

    async def organizations(self, key: OrganizationKey, cause: CallCause) -> Sequence[Organization]:
        """List a data center's organizations; the call names and counts against `key`.

        Returns the same tuple object for an identical answer.
        """
        ...


class OrganizationDirectory:
    """All organizations of all data centers.

    Args:
        inventory: Makes the calls.
        database: Stores the last good listings.
        clock: Measures durations; dates come from the database.
        cache_seconds: Seconds that a listing stays fresh; `INVENTORY_CACHE_SECONDS`.
        named: The configured `organization_id` of data centers that have one.
    """

    def __init__(
        self,
        inventory: InventoryListings,
        database: Database,
        clock: Clock,
        cache_seconds: float,
        named: dict[str, str],
    ) -> None:
        self._inventory = inventory
        self._database = database
        self._clock = clock
        self._cache_seconds = cache_seconds
        self._named = named
        # The newest good listing of each data center, by any process.
        self._last: dict[str, Listing] = {}
        # The named organization that the service last declined, by data center.
        self._gone: dict[str, str] = {}
        self._calls: SingleFlight[str, Listing] = SingleFlight({})
        self._looks: SingleFlight[str, None] = SingleFlight({})
        self._failures = RecentFailures(clock)
        # The last failure of each data center, with its time.
        self._failed: dict[str, tuple[datetime, str]] = {}
        self._refreshed: TTLCache[str, Listing] = TTLCache(
            64, REFRESHED_SECONDS, timer=clock.monotonic
        )
        self._merged = Directory(())
        # The database's time, and this process's monotonic clock at that moment.
        self._read_at: tuple[datetime, float] | None = None

    @property
    def data_centers(self) -> Sequence[str]:
        """Return the configured data centers."""
        return self._inventory.data_centers

    async def directory(
        self, cause: CallCause, *, fresh: bool = False, is_typed: bool = True
    ) -> Directory:
        """Return all organizations; name what failed, with the last good listing if there is one.

        Unless a person typed the command, a data center isn't called again if it failed or was
        refreshed a moment ago.

        Raises:
            NotConfigured: No data center is configured.
        """
        centers = self._configured()
        if self._read_at is None or self._since(self._read_at[1]) >= LOOK_AGAIN_SECONDS:
            await self._look()
        reports = await asyncio.gather(
            *(self._report(center, cause, fresh=fresh, is_typed=is_typed) for center in centers)
        )
        return self._merge(reports)

    async def _report(
        self, center: str, cause: CallCause, *, fresh: bool, is_typed: bool
    ) -> DataCenterReport:
        last = self._last.get(center)
        if not fresh and last is not None and self._seconds_fresh(last) > 0:
            return self._known_report(center, last)
        return await self.report(center, cause, fresh=fresh, is_typed=is_typed)

    def _merge(self, reports: Sequence[DataCenterReport]) -> Directory:
        # Reuse the directory object, which caches its sorted places and their search texts.
        if self._merged.reports != tuple(reports):
            self._merged = Directory(tuple(reports))
        return self._merged

    def name_of(self, key: OrganizationKey) -> str | None:
        """Return an organization's name if this process knows it; makes no call."""
        listing = self._last.get(key.data_center)
        place = listing.place_of(key.organization_id) if listing else None
        return place.organization.name if place else None

    async def lists(self, key: OrganizationKey) -> bool:
        """Return True if a data center lists an organization; calls it if its listing is old."""
        if self.name_of(key) is not None:
            return True
        cause = CallCause(LIST, background=True)
        listing = (await self.report(key.data_center, cause, is_typed=False)).listing
        return listing is not None and listing.place_of(key.organization_id) is not None

    async def find(self, typed: str, cause: CallCause) -> tuple[Place, DataCenterReport]:
        """Return the organization with that ID or name, and its data center's report.

        Raises:
            NotFound, Ambiguous: No organization matches, or several do.
        """
        directory = await self.directory(cause)
        place = directory.find(typed)
        return place, directory.report_on(place.data_center)

    async def at(self, place_value: str, cause: CallCause) -> tuple[Place, DataCenterReport]:
        """Return the organization of a menu value, `<data center>/<id>`, as `find` does.

        Raises:
            NotFound: The organization is gone.
        """
        center, _, organization_id = place_value.partition("/")
        if center in self._inventory.data_centers:
            report = await self.report(center, cause, is_typed=False)
            place = report.listing.place_of(organization_id) if report.listing else None
            if place is not None:
                return place, report
        raise NotFound(NO_LONGER_LISTED)

    async def known(self) -> Directory:
        """Return the last good listings and later failures, without a call."""
        await self._look()
        centers = self._inventory.data_centers
        return self._merge([self._known_report(name, self._last.get(name)) for name in centers])

    async def listed(self, cause: CallCause) -> Directory:
        """Return what is known; call only data centers that were never listed.

        Raises:
            NotConfigured: No data center is configured.
        """
        centers = self._configured()
        await self._look()
        unlisted = [center for center in centers if center not in self._last]
        called = await asyncio.gather(*(self.report(center, cause) for center in unlisted))
        reports = {report.data_center: report for report in called}
        return self._merge(
            [reports.get(name) or self._known_report(name, self._last[name]) for name in centers]
        )

    def _configured(self) -> Sequence[str]:
        centers = self._inventory.data_centers
        if not centers:
            raise NotConfigured("the inventory service", ["INVENTORY_DATA_CENTERS"])
        return centers

    async def report(
        self, center: str, cause: CallCause, *, fresh: bool = False, is_typed: bool = True
    ) -> DataCenterReport:
        """Return a data center's listing, or the last good one and why it is old."""
        look = self._refresh if fresh else self._look_up
        lookup = look(center, cause, is_typed=is_typed)
        listing = asyncio.ensure_future(lookup)
        done, _ = await asyncio.wait({listing}, timeout=PATIENCE_SECONDS)
        if not done:
            listing.cancel()
            sentence = f"It didn't respond within {PATIENCE_SECONDS:.0f} s."
            return DataCenterReport(center, await self._last_good(center), sentence)
        try:
            return self._known_report(center, listing.result())
        except GatehouseError as error:
            log.warning("directory.failed", data_center=center, outcome=error.outcome)
            return DataCenterReport(center, await self._last_good(center), error.sentence)

    def note_failure(self, center: str, error: ServiceError) -> None:
        """Remember why a data center couldn't be listed, until a listing succeeds."""
        is_block = isinstance(error, RateLimited) and error.service == "inventory"
        if not is_block:
            self._failed[center] = self._database_now(), error.sentence

    def _known_report(self, center: str, listing: Listing | None) -> DataCenterReport:
        """Return the listing, with any later failure that this process knows of."""
        if center not in self._failed:
            return DataCenterReport(center, listing)
        failed_at, sentence = self._failed[center]
        is_listed_since = listing is not None and listing.fetched_at >= failed_at
        return DataCenterReport(center, listing, None if is_listed_since else sentence)

    async def accept(self, key: OrganizationKey, organizations: Sequence[Organization]) -> Listing:
        """Keep a listing from another call as the newest."""
        return await self._keep(key.data_center, organizations)

    async def _refresh(self, center: str, cause: CallCause, *, is_typed: bool) -> Listing:
        """Call the service, unless a button is pressed again within a few seconds."""
        if not is_typed and (refreshed := self._refreshed.get(center)):
            return refreshed
        listing = await self._call(center, cause, is_typed=is_typed)
        self._refreshed[center] = listing
        return listing

    async def _look_up(self, center: str, cause: CallCause, *, is_typed: bool) -> Listing:
        last = await self._last_good(center)
        if last is not None and self._seconds_fresh(last) > 0:
            return last
        return await self._call(center, cause, is_typed=is_typed)

    async def _call(self, center: str, cause: CallCause, *, is_typed: bool) -> Listing:
        """Call the service, or wait for the call in progress."""
        if not is_typed:
            self._failures.check(center)

        async def call(_: str) -> Listing:
            last = await self._last_good(center)
            key = OrganizationKey(center, self._representative(center, last))
            try:
                organizations = await self._inventory.organizations(key, cause)
            except ServiceError as error:
                self._failures.note(center, error)
                self.note_failure(center, error)
                if isinstance(error, ServiceRefused):
                    self.note_declined(key)
                raise
            self._failures.forget(center)
            self._gone.pop(center, None)
            return await self._keep(center, organizations)

        return await self._calls.get(center, call, fresh=True)

    def note_declined(self, key: OrganizationKey) -> None:
        """Record that the service declined a call that named an organization.

        The organization may be gone, so the next listing names none, like the first.
        """
        self._gone[key.data_center] = key.organization_id

    async def representative(self, center: str) -> str:
        """Return the organization that a data center's next listing names; "" for none."""
        last = None if center in self._named else await self._last_good(center)
        return self._representative(center, last)

    def _representative(self, center: str, last: Listing | None) -> str:
        """Return the organization that a listing names; the first listing names none."""
        if center in self._named:
            return self._named[center]
        representative = last.representative() if last else ""
        return "" if self._gone.get(center) == representative else representative

    def _seconds_fresh(self, listing: Listing) -> float:
        age = (self._database_now() - listing.fetched_at).total_seconds()
        # A date in the future, left by a clock that was set back, would count as fresh until then.
        return self._cache_seconds - age if age >= 0 else 0.0

    def _database_now(self) -> datetime:
        """Return the best estimate of the database's time, which dates the listings."""
        if self._read_at is None:
            return self._clock.now()
        then, at = self._read_at
        return then + timedelta(seconds=self._since(at))

    def _since(self, moment: float) -> float:
        return self._clock.monotonic() - moment

    async def _keep(self, center: str, organizations: Sequence[Organization]) -> Listing:
        """Store a listing; this process uses it even if the database is unavailable."""
        self._failed.pop(center, None)
        written = listings.written(organizations)
        try:
            async with self._database.transaction() as tx:
                if not await listings.confirm(tx, center, written.digest):
                    await listings.save(tx, center, written)
                fetched_at = await self._read_time(tx)
        except DatabaseUnavailable as error:
            log.warning("directory.not_stored", data_center=center, reason=error.sentence)
            fetched_at = self._database_now()
            written = replace(written, digest="")
        size = len(written.organizations)
        listing = Listing(center, tuple(organizations), fetched_at, written.digest, size)
        self._last[center] = listing
        return listing

    async def _read_time(self, tx: Transaction) -> datetime:
        now = await tx.now()
        self._read_at = now, self._clock.monotonic()
        return now

    async def _last_good(self, center: str) -> Listing | None:
        """Return the newest good listing of any process; without a database, this process's own."""
        await self._look()
        return self._last.get(center)

    async def _look(self) -> None:

        async def look(_: str) -> None:
            with suppress(DatabaseUnavailable):
                async with self._database.read_only() as tx:
                    newest = await listings.versions(tx)
                    await self._read_time(tx)
                    behind = [center for center in newest if self._is_behind(center, newest)]
                    stored = [await listings.load(tx, center) for center in behind]
                for listing in filter(None, stored):
                    # A call of this process may have returned a newer listing in the meantime.
                    version = Version(listing.fetched_at, listing.digest)
                    if self._is_behind(listing.data_center, {listing.data_center: version}):
                        self._last[listing.data_center] = listing

        await self._looks.get("", look, fresh=True)

    def _is_behind(self, center: str, newest: Mapping[str, Version]) -> bool:
        own, version = self._last.get(center), newest.get(center)
        if own is None or version is None:
            return version is not None
        is_same = version == Version(own.fetched_at, own.digest)
        return version.fetched_at >= own.fetched_at and not is_same
