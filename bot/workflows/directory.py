"""The organization directory: every data center's listing, cached, shared and kept."""

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import chain
from typing import Protocol

import structlog
from cachetools import TLRUCache, TTLCache

from bot.background.batches import Batches
from bot.background.single_flight import SingleFlight
from bot.background.tasks import keep_out_of_collections
from bot.errors import DatabaseUnavailable, GatehouseError, NotConfigured, NotFound
from bot.model.organizations.directory import DataCenterReport, Directory, Listing, Place
from bot.model.organizations.organization import Organization, OrganizationKey
from bot.model.quotas.calls import CallCause
from bot.ops.clock import Clock
from bot.service_errors import RateLimited, ServiceError, ServiceRefused
from bot.store import listings
from bot.store.engine import Database, Transaction
from bot.store.listings import StoredListing, Version
from bot.workflows.lane import RecentFailures
from bot.workflows.organization_lookup import look_up

log = structlog.get_logger(__name__)

NO_LONGER_LISTED = "That organization is no longer listed. /orgs shows those that are."
# A person waits this long for a slow data center; it goes on, and the next asker sees it.
PATIENCE_SECONDS = 12.0
# Of fewer organizations the garbage collector takes no notice.
MANY = 1_000
# What other processes have listed is looked for this often at most.
LOOK_AGAIN_SECONDS = 1.0
# The kind of a call that wants the newest, whatever another process has; for charts.
REFRESH = "refresh"
# What was refreshed by anybody so long ago is what a button `Refresh` shows.
REFRESHED_SECONDS = 5.0


class InventoryListings(Protocol):
    """What is needed of the inventory service."""

    @property
    def data_centers(self) -> Sequence[str]:
        """The configured ones, in order."""
        ...

    async def organizations(self, key: OrganizationKey, cause: CallCause) -> Sequence[Organization]:
        """List a data center's organizations, naming and counting against the key's.

        The very same tuple again where the service has sent the very same answer.
        """
        ...


class OrganizationDirectory:
    """Knows all organizations.

    Args:
        inventory: The service.
        database: Keeps the last good listings.
        clock: For the time between two moments; what time it is, the database says.
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
        self._lookups: SingleFlight[str, Listing] = SingleFlight(
            TLRUCache(
                64,
                lambda _, listing, now: now + self._seconds_fresh(listing),
                timer=clock.monotonic,
            )
        )
        # All of them together, and until when that is so.
        self._fresh: tuple[Sequence[DataCenterReport], float] = (), -math.inf
        self._calls: SingleFlight[str, Listing] = SingleFlight({})
        self._failures = RecentFailures(clock)
        # When each data center last could not be listed, and why.
        self._failed: dict[str, tuple[datetime, str]] = {}
        self._refreshed: TTLCache[str, Listing] = TTLCache(
            64, REFRESHED_SECONDS, timer=clock.monotonic
        )
        # Who asks for what other processes have listed while somebody looks is told together.
        self._looks = Batches(self._look)
        # The newest one: merging ten thousand names takes longer than all else in an answer.
        self._merged = Directory(())
        # The database's time, and when by this process's clock it was that.
        self._read_at: tuple[datetime, float] | None = None

    @property
    def data_centers(self) -> Sequence[str]:
        """The configured data centers."""
        return self._inventory.data_centers

    async def directory(
        self, cause: CallCause, *, fresh: bool = False, is_typed: bool = True
    ) -> Directory:
        """Return all organizations; what failed is named, with the last good listing if any.

        Unless somebody typed for it, a data center that failed a moment ago is not called again,
        nor one that was refreshed a moment ago.

        Raises:
            NotConfigured: No data center is.
        """
        centers = self._configured()
        reports = None if fresh else await self._cached(centers)
        if reports is None:
            reports = await asyncio.gather(
                *(self.report(center, cause, fresh=fresh, is_typed=is_typed) for center in centers)
            )
        return self._merge(reports)

    def _merge(self, reports: Sequence[DataCenterReport]) -> Directory:
        self._merged = self._merged.of(reports)
        return self._merged

    async def _cached(self, centers: Sequence[str]) -> Sequence[DataCenterReport] | None:
        """Return the reports when every listing is fresh; no task is started for them."""
        if self._read_at is None or self._since(self._read_at[1]) >= LOOK_AGAIN_SECONDS:
            await self._last_good_of(centers)
        reports, until = self._fresh
        if self._clock.monotonic() < until:
            return reports
        fresh = [one for center in centers if (one := self._lookups.cached(center))]
        if len(fresh) < len(centers):
            return None
        reports = [self._known_report(one.data_center, one) for one in fresh]
        seconds = min(self._seconds_fresh(one) for one in fresh)
        self._fresh = reports, self._clock.monotonic() + seconds
        return reports

    def name_of(self, key: OrganizationKey) -> str | None:
        """Return an organization's name as far as this process knows it, at once."""
        listing = self._last.get(key.data_center)
        place = listing.place_of(key.organization_id) if listing else None
        return place.organization.name if place else None

    async def find(self, typed: str, cause: CallCause) -> tuple[Place, DataCenterReport]:
        """Return the organization of that id or name, and what is known of its data center.

        Raises:
            NotFound, Ambiguous: None, or several.
        """
        directory = await self.directory(cause)
        place = await look_up(directory, typed)
        return place, directory.report_on(place.data_center)

    async def at(self, place_value: str, cause: CallCause) -> tuple[Place, DataCenterReport]:
        """As `find`, of `<data center>/<id>`, as menus give it; only that data center is asked.

        Raises:
            NotFound: It is gone.
        """
        center, _, organization_id = place_value.partition("/")
        if center in self._inventory.data_centers:
            report = await self.report(center, cause, is_typed=False)
            place = report.listing.place_of(organization_id) if report.listing else None
            if place is not None:
                return place, report
        raise NotFound(NO_LONGER_LISTED)

    async def known(self) -> Directory:
        """Return what is known without any call: the last good listings, and what failed since."""
        centers = self._inventory.data_centers
        last = await self._last_good_of(centers)
        return self._merge([self._known_report(center, last.get(center)) for center in centers])

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
        reports |= {center: self._known_report(center, one) for center, one in last.items()}
        return self._merge([reports[center] for center in centers])

    def _configured(self) -> Sequence[str]:
        centers = self._inventory.data_centers
        if not centers:
            raise NotConfigured("the inventory service", ["INVENTORY_DATA_CENTERS"])
        return centers

    async def report(
        self, center: str, cause: CallCause, *, fresh: bool = False, is_typed: bool = True
    ) -> DataCenterReport:
        """Return one data center's listing, or the last good one and why it is old."""
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
        """Remember why a data center could not be listed, until a listing of it succeeds."""
        is_block = isinstance(error, RateLimited) and error.service == "inventory"
        if not is_block:
            self._failed[center] = self._database_now(), error.sentence
            self._fresh = (), -math.inf

    def _known_report(self, center: str, listing: Listing | None) -> DataCenterReport:
        """Return the listing, and what failed since by this process's knowledge."""
        if center not in self._failed:
            return DataCenterReport(center, listing)
        failed_at, sentence = self._failed[center]
        is_listed_since = listing is not None and listing.fetched_at >= failed_at
        return DataCenterReport(center, listing, None if is_listed_since else sentence)

    async def accept(self, key: OrganizationKey, organizations: Sequence[Organization]) -> Listing:
        """Keep a listing that another call brought along as the newest."""
        return await self._keep(key.data_center, organizations)

    async def _refresh(self, center: str, cause: CallCause, *, is_typed: bool) -> Listing:
        """Return the newest listing there is; who presses on and on makes no call of each press."""
        if not is_typed and (refreshed := self._refreshed.get(center)):
            return refreshed
        listing = await self._call(center, cause, is_typed=is_typed)
        self._refreshed[center] = listing
        return listing

    async def _look_up(self, center: str, cause: CallCause, *, is_typed: bool) -> Listing:
        """Return a fresh listing, of whichever process."""

        async def load(_: str) -> Listing:
            last = await self._last_good(center)
            if last is not None and self._seconds_fresh(last) > 0:
                return last
            return await self._call(center, cause, is_typed=is_typed)

        return await self._lookups.get(center, load)

    async def _call(self, center: str, cause: CallCause, *, is_typed: bool) -> Listing:
        """Ask the service, or wait for the call that is under way."""
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
        """Note that the service declined a call that named an organization.

        Perhaps that is gone: the next listing names none, as the first did.
        """
        self._gone[key.data_center] = key.organization_id

    async def representative(self, center: str) -> str:
        """Return the organization that the next listing of a data center names; "" for none."""
        last = None if center in self._named else await self._last_good(center)
        return self._representative(center, last)

    def _representative(self, center: str, last: Listing | None) -> str:
        """Return the organization that a listing names; the first listing of all names none."""
        if center in self._named:
            return self._named[center]
        representative = last.representative() if last else ""
        return "" if self._gone.get(center) == representative else representative

    def _seconds_fresh(self, listing: Listing) -> float:
        age = (self._database_now() - listing.fetched_at).total_seconds()
        # One from the future, by a clock that was set back, would be fresh until that has come.
        return self._cache_seconds - age if age >= 0 else 0.0

    def _database_now(self) -> datetime:
        """The time that listings are dated by, as far as it is known."""
        if self._read_at is None:
            return self._clock.now()
        then, at = self._read_at
        return then + timedelta(seconds=self._since(at))

    def _since(self, moment: float) -> float:
        return self._clock.monotonic() - moment

    async def _keep(self, center: str, organizations: Sequence[Organization]) -> Listing:
        """Store a listing; it is good for this process even when the database is away."""
        self._failed.pop(center, None)
        size = 0
        try:
            version, size = await self._store(center, tuple(organizations))
        except DatabaseUnavailable as error:
            log.warning("directory.not_stored", data_center=center, reason=error.sentence)
            version = Version(self._database_now(), "")
        last = self._last.get(center)
        if last is not None and last.digest and last.digest == version.digest:
            listing = last.confirmed(version.fetched_at, tuple(organizations))
        else:
            listing = Listing(
                center, tuple(organizations), version.fetched_at, version.digest, size
            )
            await asyncio.to_thread(lambda: listing.contents)
        self._note(listing)
        return listing

    async def _store(
        self, center: str, organizations: tuple[Organization, ...]
    ) -> tuple[Version, int]:
        """Store a listing, unless it is what is stored already; then only that it is so still.

        Returns which one it is, and its size.
        """
        last = self._last.get(center)
        if last is not None and last.digest and last.organizations is organizations:
            async with self._database.transaction() as tx:
                if await listings.confirm(tx, center, last.digest):
                    return Version(await self._read_time(tx), last.digest), last.size
        written = await asyncio.to_thread(listings.written, organizations)
        async with self._database.transaction() as tx:
            if not await listings.confirm(tx, center, written.digest):
                await listings.save(tx, center, written)
            version = Version(await self._read_time(tx), written.digest)
        return version, len(written.organizations)

    async def _read_time(self, tx: Transaction) -> datetime:
        now = await tx.now()
        self._read_at = now, self._clock.monotonic()
        return now

    def _note(self, listing: Listing) -> None:
        last = self._last.get(listing.data_center)
        is_new = last is None or last.contents is not listing.contents
        if is_new and len(listing.organizations) >= MANY:
            keep_out_of_collections()
        self._last[listing.data_center] = listing
        self._fresh = (), -math.inf
        self._lookups.remember(listing.data_center, listing)

    async def _last_good(self, center: str) -> Listing | None:
        """Return the newest good listing of any process; our own while the database is away."""
        return (await self._last_good_of([center])).get(center)

    async def _last_good_of(self, centers: Sequence[str]) -> dict[str, Listing]:
        """As `_last_good`, for those that have one, with one look at the database for all."""
        await self._looks.do(centers)
        return {center: self._last[center] for center in centers if center in self._last}

    async def _look(self, wanted: Sequence[Sequence[str]]) -> Sequence[None]:
        """Take over what other processes have listed, of all data centers that are wanted."""
        centers = sorted(set(chain.from_iterable(wanted)))
        stored: list[StoredListing | None] = []
        with suppress(DatabaseUnavailable):
            async with self._database.read_only() as tx:
                newest = await listings.versions(tx)
                await self._read_time(tx)
                self._confirm(newest)
                behind = [center for center in centers if self._is_behind(center, newest)]
                stored = [await listings.load(tx, center) for center in behind]
        for one in stored:
            if one is not None:
                listing = await asyncio.to_thread(listings.read, one)
                # Meanwhile a call of ours may have brought a newer one.
                if self._is_behind(one.data_center, {one.data_center: one.version}):
                    self._note(listing)
        return [None] * len(wanted)

    def _confirm(self, newest: Mapping[str, Version]) -> None:
        """Note what this process has and another has found to be so later."""
        for center, version in newest.items():
            ours = self._last.get(center)
            is_same = ours is not None and version.digest and ours.digest == version.digest
            if ours is not None and is_same and version.fetched_at > ours.fetched_at:
                self._note(ours.confirmed(version.fetched_at, ours.organizations))

    def _is_behind(self, center: str, newest: Mapping[str, Version]) -> bool:
        """Whether another process, or an earlier one, has a newer listing than ours."""
        ours, version = self._last.get(center), newest.get(center)
        if ours is None or version is None:
            return version is not None
        is_same = version == Version(ours.fetched_at, ours.digest)
        return version.fetched_at >= ours.fetched_at and not is_same
