"""The organization directory, which caches and stores the listings of all data centers."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from pydantic import TypeAdapter
from sqlalchemy import Text, cast, select

from bot.errors import DatabaseUnavailable, GatehouseError, NotConfigured
from bot.ops.clock import Clock
from bot.organizations.client import InventoryClient
from bot.organizations.rules import (
    DataCenterReport,
    Directory,
    Listing,
    Organization,
    OrganizationKey,
)
from bot.organizations.tables import listings
from bot.services.calls import LIST, REFRESH, CallCause
from bot.services.errors import (
    CredentialsRefused,
    PermissionMissing,
    RateLimited,
    ServiceError,
    ServiceRefused,
    ServiceTimeout,
)
from bot.store.engine import Database
from bot.tasks import Flights, SingleFlight

ORGANIZATIONS = TypeAdapter(tuple[Organization, ...])

# The errors for an organization that doesn't exist or that the credential can't access.
DECLINED = (ServiceRefused, CredentialsRefused, PermissionMissing)
# The longest time that a person waits for a slow data center. The call continues in the background.
PATIENCE_SECONDS = 12.0
# For this long, a stored listing isn't read from the database again.
LOOKED_SECONDS = 5.0
# For this long, a listing that any process fetched isn't fetched again, even by `refresh`.
JUST_FETCHED_SECONDS = 5.0
# After a failure, background calls and `refresh` don't try the data center again for this long.
FAILED_SECONDS = 5.0


@dataclass(eq=False)
class OrganizationDirectory:
    """Lists all organizations and stores each data center's last successful listing.

    `named` maps data centers to their configured `organization_id`, if they have one.
    """

    inventory: InventoryClient
    database: Database
    clock: Clock
    cache_seconds: float
    named: Mapping[str, str]

    def __post_init__(self) -> None:
        # Each data center's last successful listing by any process.
        self.listings: dict[str, Listing] = {}
        # Each data center's failure since its last listing, and the time of the failure.
        self._failures: dict[str, tuple[GatehouseError, float]] = {}
        self._calls = Flights[str, None]()
        self._merged = Directory(())
        # How far the database's clock was ahead when the stored listings were read.
        self._looks = SingleFlight(self._load, LOOKED_SECONDS, self.clock.monotonic)

    @property
    def data_centers(self) -> Sequence[str]:
        """The configured data centers, in the same order as in the settings."""
        return self.inventory.data_centers

    async def directory(self, cause: CallCause) -> Directory:
        """Return the organizations of all data centers.

        If a data center can't be listed, its last successful listing is used.
        """
        if not self.data_centers:
            raise NotConfigured("the inventory service", ["INVENTORY_DATA_CENTERS"])
        now = await self._look()
        if any(self._is_due(center, cause, now) for center in self.data_centers):
            # Another process may have fetched them in the meantime.
            now = await self._look(again=True)
        failures = dict[str, str]()

        async def fetch(center: str) -> None:
            try:
                await self._listing(center, cause)
            except GatehouseError as error:
                failures[center] = error.sentence

        due = [center for center in self.data_centers if self._is_due(center, cause, now)]
        await asyncio.gather(*map(fetch, due))
        return self._merge(failures)

    async def known(self) -> Directory:
        """Return the last successful listings and any later failures, without making a call."""
        await self._look()
        return self._merge({})

    def _merge(self, failures: Mapping[str, str]) -> Directory:
        """Return the listings and what is known to be wrong. `failures` are those of this look."""
        earlier = {center: error.sentence for center, (error, _) in self._failures.items()}
        told = {**earlier, **failures}
        reports = tuple(
            DataCenterReport(center, self.listings.get(center), told.get(center))
            for center in self.data_centers
        )
        # An unchanged directory is reused, because it caches sorted organizations and search texts.
        if self._merged.reports != reports:
            self._merged = Directory(reports)
        return self._merged

    async def lists(self, key: OrganizationKey) -> bool:
        """Return True if the data center lists the organization. Call the service if necessary.

        Raises:
            GatehouseError: The organization is unknown, and the data center couldn't be listed.
        """
        if self._is_listed(key):
            return True
        now = await self._look(again=True)
        if not self._is_listed(key):
            cause = CallCause(LIST, background=True)
            failure = self._failures.get(key.data_center)
            if self._is_due(key.data_center, cause, now):
                await self._listing(key.data_center, cause)
            elif failure is not None:
                raise failure[0].with_traceback(None)
        return self._is_listed(key)

    def _is_listed(self, key: OrganizationKey) -> bool:
        last = self.listings.get(key.data_center)
        return last is not None and key.organization_id in last.by_id

    def _is_due(self, center: str, cause: CallCause, now: datetime) -> bool:
        """Return True if a data center's listing must be fetched. `now` is the database's time."""
        is_refresh = cause.kind == REFRESH
        failure = self._failures.get(center)
        has_just_failed = failure and self.clock.monotonic() < failure[1] + FAILED_SECONDS
        if has_just_failed and (cause.background or is_refresh):
            return False
        last = self.listings.get(center)
        if last is None:
            return True
        # The clock may have been set back in the meantime.
        age = abs((now - last.fetched_at).total_seconds())
        return age >= (JUST_FETCHED_SECONDS if is_refresh else self.cache_seconds)

    async def _listing(self, center: str, cause: CallCause) -> None:
        """List a data center, or wait for a listing that is under way."""

        async def fetch() -> None:
            key = OrganizationKey(center, await self.representative(center))
            try:
                await self.call(key, cause)
            except DECLINED as error:
                self._failures[center] = error, self.clock.monotonic()
                raise

        call = self._calls.start(center, fetch)
        await asyncio.wait({call}, timeout=PATIENCE_SECONDS)
        if not call.done():
            sentence = f"The data center didn't respond within {PATIENCE_SECONDS:.0f} s."
            raise ServiceTimeout("inventory", sentence)
        call.result()

    async def representative(self, center: str) -> str:
        """Return the organization ID for the next listing request, or an empty string for none."""
        if center in self.named:
            return self.named[center]
        await self._look()
        last = self.listings.get(center)
        failure = self._failures.get(center)
        # The service refuses calls that specify an organization that was deleted.
        if last is None or (failure and isinstance(failure[0], DECLINED)):
            return ""
        return last.representative()

    async def call(self, key: OrganizationKey, cause: CallCause) -> None:
        """Make a call that counts against `key`, and keep the data center's listing.

        An error that concerns the data center is remembered until it is listed again.
        """
        try:
            organizations = await self.inventory.organizations(key, cause)
        except ServiceError as error:
            # The service may refuse only this organization, and blocks are shown with its limits.
            if not isinstance(error, (RateLimited, *DECLINED)):
                self._failures[key.data_center] = error, self.clock.monotonic()
            raise
        await self.accept(key.data_center, organizations)

    async def accept(self, center: str, organizations: tuple[Organization, ...]) -> None:
        """Store a listing. If the database is unavailable, keep it only in memory."""
        self._failures.pop(center, None)
        fetched_at = self.clock.now()
        with suppress(DatabaseUnavailable):
            async with self.database.transaction() as tx:
                fetched_at = await tx.now()
                stored = ORGANIZATIONS.dump_python(organizations, mode="json")
                values = {"data_center": center, "fetched_at": fetched_at, "organizations": stored}
                await tx.upsert(listings, values)
        self.listings[center] = await searchable(Listing(center, organizations, fetched_at))

    async def _look(self, *, again: bool = False) -> datetime:
        """Load newer listings that other processes stored, and return the database's time.

        Unless `again` is True, the database isn't read if it was read a moment ago.
        """
        ahead = timedelta()
        with suppress(DatabaseUnavailable):
            ahead = await self._looks.get("", fresh=again)
        return self.clock.now() + ahead

    async def _load(self, _: str) -> timedelta:
        """Load newer stored listings, and return how far the database's clock is ahead."""
        async with self.database.read_only() as tx:
            dates = select(listings.c.data_center, listings.c.fetched_at)
            for center, newest in (await tx.execute(dates)).all():
                own = self.listings.get(center)
                if own is not None and own.fetched_at == newest:
                    continue
                rows = select(listings.c.fetched_at, cast(listings.c.organizations, Text))
                its = rows.where(listings.c.data_center == center)
                fetched_at, text = (await tx.execute(its)).one()
                organizations = ORGANIZATIONS.validate_json(text)
                stored = await searchable(Listing(center, organizations, fetched_at))
                # A call in this process may have returned a newer listing in the meantime.
                own = self.listings.get(center)
                if own is None or stored.fetched_at >= own.fetched_at:
                    self.listings[center] = stored
                    self._failures.pop(center, None)
            return await tx.now() - self.clock.now()


async def searchable(listing: Listing) -> Listing:
    """Prepare the texts to search in a thread, because a large listing would delay other people."""
    await asyncio.to_thread(lambda: [place.searchable for place in listing.places])
    return listing
