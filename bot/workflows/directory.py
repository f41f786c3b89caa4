"""The organization directory: every data center's listing, cached, shared and kept."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Protocol

import structlog
from cachetools import TLRUCache

from bot.clock import Clock
from bot.errors import (
    DatabaseUnavailable,
    GatehouseError,
    NotConfigured,
    NotFound,
    ServiceRefused,
)
from bot.model.calls import CallCause
from bot.model.directory import DataCenterReport, Directory, Listing, Place
from bot.model.organization import Organization, OrganizationKey
from bot.store import listings
from bot.store.engine import Database
from bot.store.listings import StoredListing
from bot.workflows.flights import Flights

log = structlog.get_logger(__name__)

NO_LONGER_LISTED = "That organization is no longer listed. Type /orgs to see those that are."
# A person waits this long for a slow data center; it goes on, and the next asker sees it.
PATIENCE_SECONDS = 12.0
# The kind of a call that wants the newest, whatever another process has; for charts.
REFRESH = "refresh"


class InventoryListings(Protocol):
    """What is needed of the inventory service."""

    @property
    def data_centers(self) -> Sequence[str]:
        """The configured ones, in order."""
        ...

    async def organizations(self, key: OrganizationKey, cause: CallCause) -> list[Organization]:
        """List a data center's organizations, naming and counting against the key's."""
        ...


class OrganizationDirectory:
    """Knows all organizations.

    Args:
        inventory: The service.
        database: Keeps the last good listings.
        clock: For the age of what is cached.
        cache_seconds: How long a listing is fresh; `INVENTORY_CACHE_SECONDS`.
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
        # Read by the next call of this process; other processes' listings come by the database.
        self._last: dict[str, Listing] = {}
        self._gone: dict[str, str] = {}
        # As fresh as the listing is, whichever process made it and when.
        self._lookups: Flights[str, Listing] = Flights(
            TLRUCache(
                64,
                lambda _, listing, now: now + self._seconds_fresh(listing),
                timer=clock.monotonic,
            )
        )
        self._calls: Flights[str, Listing] = Flights({})
        # The newest one: merging ten thousand names takes longer than all else in an answer.
        self._merged = Directory(())

    @property
    def data_centers(self) -> Sequence[str]:
        """The configured data centers."""
        return self._inventory.data_centers

    async def directory(self, cause: CallCause, *, fresh: bool = False) -> Directory:
        """Return all organizations; what failed is named, with the last good listing if any.

        Raises:
            NotConfigured: No data center is.
        """
        centers = self._configured()
        reports = None if fresh else self._cached(centers)
        if reports is None:
            reports = await asyncio.gather(
                *(self.report(center, cause, fresh=fresh) for center in centers)
            )
        return self._merge(reports)

    def _merge(self, reports: Sequence[DataCenterReport]) -> Directory:
        if not self._merged.is_of(reports):
            self._merged = Directory(tuple(reports))
        return self._merged

    def _cached(self, centers: Sequence[str]) -> list[DataCenterReport] | None:
        """Return the reports when every listing is fresh; no task is started for them."""
        fresh = [(center, self._lookups.cached(center)) for center in centers]
        reports = [DataCenterReport(center, listing) for center, listing in fresh if listing]
        return reports if len(reports) == len(centers) else None

    async def find(self, typed: str, cause: CallCause) -> tuple[Place, DataCenterReport]:
        """Return the organization of that id or name, and what is known of its data center.

        Raises:
            NotFound, Ambiguous: None, or several.
        """
        directory = await self.directory(cause)
        place = directory.find(typed)
        return place, directory.report_on(place.data_center)

    async def at(self, place_value: str, cause: CallCause) -> tuple[Place, DataCenterReport]:
        """As `find`, of `<data center>/<id>`, as menus give it; only that data center is asked.

        Raises:
            NotFound: It is gone.
        """
        center, _, organization_id = place_value.partition("/")
        if center in self._inventory.data_centers:
            report = await self.report(center, cause)
            place = report.listing.place_of(organization_id) if report.listing else None
            if place is not None:
                return place, report
        raise NotFound(NO_LONGER_LISTED)

    async def known(self) -> Directory:
        """Return what is known without any call: the last good listings."""
        centers = self._inventory.data_centers
        last = await self._last_good_of(centers)
        return self._merge([DataCenterReport(center, last.get(center)) for center in centers])

    async def listed(self, cause: CallCause) -> Directory:
        """Return what is known; only data centers that were never listed are called.

        Raises:
            NotConfigured: No data center is.
        """
        centers = self._configured()
        last = await self._last_good_of(centers)
        unlisted = [center for center in centers if center not in last]
        called = await asyncio.gather(*(self.report(center, cause) for center in unlisted))
        reports = {report.data_center: report for report in called}
        reports |= {center: DataCenterReport(center, listing) for center, listing in last.items()}
        return self._merge([reports[center] for center in centers])

    def _configured(self) -> Sequence[str]:
        centers = self._inventory.data_centers
        if not centers:
            raise NotConfigured("the inventory service", ["INVENTORY_DATA_CENTERS"])
        return centers

    async def report(
        self, center: str, cause: CallCause, *, fresh: bool = False
    ) -> DataCenterReport:
        """Return one data center's listing, or the last good one and why it is old."""
        flight = self._call(center, cause) if fresh else self._look_up(center, cause)
        listing = asyncio.ensure_future(flight)
        done, _ = await asyncio.wait({listing}, timeout=PATIENCE_SECONDS)
        if not done:
            listing.cancel()
            sentence = f"It has not answered within {PATIENCE_SECONDS:.0f} s."
            return DataCenterReport(center, await self._last_good(center), sentence)
        try:
            return DataCenterReport(center, listing.result())
        except GatehouseError as error:
            log.warning("directory.failed", data_center=center, outcome=error.outcome)
            return DataCenterReport(center, await self._last_good(center), error.sentence)

    async def accept(self, key: OrganizationKey, organizations: list[Organization]) -> Listing:
        """Keep a listing that another call brought along as the newest."""
        return await self._keep(key.data_center, organizations)

    async def _look_up(self, center: str, cause: CallCause) -> Listing:
        """Return a fresh listing, of whichever process."""

        async def load(_: str) -> Listing:
            last = await self._last_good(center)
            if last is not None and self._seconds_fresh(last) > 0:
                return last
            return await self._call(center, cause)

        return await self._lookups.get(center, load)

    async def _call(self, center: str, cause: CallCause) -> Listing:
        """Ask the service, or wait for the call that is in flight."""

        async def call(_: str) -> Listing:
            last = await self._last_good(center)
            key = OrganizationKey(center, self._spokesman(center, last))
            try:
                organizations = await self._inventory.organizations(key, cause)
            except ServiceRefused:
                # Perhaps the organization is gone: the next listing names none, as the first did.
                self._gone[center] = key.organization_id
                raise
            self._gone.pop(center, None)
            return await self._keep(center, organizations)

        return await self._calls.get(center, call, fresh=True)

    def _spokesman(self, center: str, last: Listing | None) -> str:
        """Return the organization that a listing names; the first listing of all names none."""
        if center in self._named:
            return self._named[center]
        spokesman = last.spokesman() if last else ""
        return "" if self._gone.get(center) == spokesman else spokesman

    def _seconds_fresh(self, listing: Listing) -> float:
        age = (self._clock.now() - listing.fetched_at).total_seconds()
        # A database whose clock is ahead keeps nothing for longer.
        return self._cache_seconds - max(0.0, age)

    async def _keep(self, center: str, organizations: list[Organization]) -> Listing:
        """Store a listing; it is good for this process even when the database is away."""
        text = await asyncio.to_thread(listings.written, organizations)
        try:
            async with self._database.transaction() as tx:
                await listings.save(tx, center, text)
                fetched_at = await tx.now()
        except DatabaseUnavailable as error:
            log.warning("directory.not_stored", data_center=center, reason=error.sentence)
            fetched_at = self._clock.now()
        listing = Listing(center, tuple(organizations), fetched_at)
        await asyncio.to_thread(listing.prepare)
        self._last[center] = listing
        self._lookups.remember(center, listing)
        return listing

    async def _last_good(self, center: str) -> Listing | None:
        """Return the newest good listing of any process; our own while the database is away."""
        return (await self._last_good_of([center])).get(center)

    async def _last_good_of(self, centers: Sequence[str]) -> dict[str, Listing]:
        """As `_last_good`, for those that have one, with one look at the database for all."""
        stored: list[StoredListing | None] = []
        with suppress(DatabaseUnavailable):
            async with self._database.reading() as tx:
                newest = await listings.fetched_at(tx)
                behind = [center for center in centers if self._is_behind(center, newest)]
                stored = [await listings.load(tx, center) for center in behind]
        for one in stored:
            if one is not None:
                listing = await asyncio.to_thread(listings.read, one)
                # Meanwhile a call of ours may have brought a newer one.
                if self._is_behind(one.data_center, {one.data_center: listing.fetched_at}):
                    self._last[one.data_center] = listing
        return {center: self._last[center] for center in centers if center in self._last}

    def _is_behind(self, center: str, newest: Mapping[str, datetime]) -> bool:
        """Whether another process, or an earlier one, has a newer listing than ours."""
        ours, at = self._last.get(center), newest.get(center)
        return at is not None and (ours is None or at > ours.fetched_at)
